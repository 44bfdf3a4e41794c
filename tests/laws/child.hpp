// child: runs code in a forked child, with a time limit, since a lock that the child finds held hangs it for ever.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace alloclab::laws {

enum class child_end { succeeded, failed, hung };

/// Forks; the child ends with whether `work()` is true.
template <class Work>
[[nodiscard]] child_end in_child(Work work, std::chrono::seconds limit = std::chrono::seconds{20}) {
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(work() ? 0 : 1);
    if (child < 0) return child_end::failed;
    const auto give_up = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > give_up) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
            return child_end::hung;
        }
        std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? child_end::succeeded : child_end::failed;
}

/// Threads that repeat `work(number)` until the object dies.
class busy_threads {
public:
    template <class Work>
    busy_threads(std::size_t count, Work work) {
        for (std::size_t i = 0; i < count; ++i)
            threads_.emplace_back([this, work, i] {
                while (!stop_.load()) work(i);
            });
    }
    ~busy_threads() {
        stop_ = true;
        for (std::thread& t : threads_) t.join();
    }
    busy_threads(const busy_threads&) = delete;
    busy_threads& operator=(const busy_threads&) = delete;

private:
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

}  // namespace alloclab::laws
