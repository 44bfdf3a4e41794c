// The shared C library as something that is opened at run time: it replaces nothing, has the registry's strategies,
// exports what its header declares, and may be closed while threads that used it live on.
#include <alloclab/alloclab.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <thread>

#include "alloclab/registry.hpp"

namespace alloclab {
namespace {

/// The library, open until the end of its scope.
class opened {
public:
    opened() : library_(::dlopen(ALLOCLAB_C_LIBRARY, RTLD_NOW | RTLD_LOCAL), &::dlclose) {
        EXPECT_NE(library_, nullptr) << ::dlerror();
    }
    template <class Function>
    [[nodiscard]] Function* find(const char* name) const {
        auto* found = reinterpret_cast<Function*>(::dlsym(library_.get(), name));
        EXPECT_NE(found, nullptr) << name;
        return found;
    }

private:
    std::unique_ptr<void, int (*)(void*)> library_;
};
#define FIND(library, name) (library).find<decltype(name)>(#name)

alloclab_slots* make(const opened& library, const char* strategy) {
    alloclab_slots* slots = nullptr;
    EXPECT_EQ(FIND(library, alloclab_slots_create)(strategy, 96, 16, nullptr, &slots), alloclab_ok);
    return slots;
}

TEST(c_interface, opened_at_run_time_it_has_the_strategies_of_the_registry_as_they_describe_themselves) {
    const opened library;
    std::size_t index = 0;
    context_strategies<std::array<std::byte, 96>>::for_each([&](auto tag) {
        using strategy = typename decltype(tag)::type;
        const char* name = FIND(library, alloclab_slots_strategy)(index++);
        ASSERT_EQ(std::string(name), strategy::name);
        if (!available<strategy>()) return;
        alloclab_slots* slots = make(library, name);
        EXPECT_EQ(FIND(library, alloclab_slots_threads)(slots) == alloclab_shared,
                  strategy::threads == thread_use::shared);
        EXPECT_EQ(FIND(library, alloclab_slots_capacity)(slots), describe<strategy>().capacity);
        FIND(library, alloclab_slots_destroy)(slots);
    });
    EXPECT_EQ(FIND(library, alloclab_slots_strategy)(index), nullptr);
}

TEST(c_interface, opening_it_replaces_no_allocation_function) {
    constexpr std::array names{"malloc",        "calloc", "realloc", "free",   "posix_memalign",
                               "aligned_alloc", "_Znwm",  "_Znam",   "_ZdlPv", "_ZdaPv"};
    const auto all = [&] {
        std::array<void*, names.size()> found{};
        for (std::size_t i = 0; i < names.size(); ++i) found[i] = ::dlsym(RTLD_DEFAULT, names[i]);
        return found;
    };
    const auto before = all();
    const opened library;
    EXPECT_EQ(all(), before);
    for (const char* name : names) {
        void* seen_from_it = ::dlsym(RTLD_DEFAULT, name);
        Dl_info in{};
        ASSERT_NE(::dladdr(seen_from_it, &in), 0);
        EXPECT_EQ(std::string(in.dli_fname).find("alloclab_c"), std::string::npos) << name;
    }

    alloclab_slots* slots = make(library, "heap_malloc");
    std::free(FIND(library, alloclab_slots_acquire)(slots));
    FIND(library, alloclab_slots_release)(slots, std::malloc(96));
    FIND(library, alloclab_slots_destroy)(slots);
}

TEST(c_interface, exports_the_functions_of_its_header_and_nothing_else) {
    std::ifstream header(ALLOCLAB_C_HEADER);
    std::string text{std::istreambuf_iterator<char>(header), {}};
    text = std::regex_replace(text, std::regex("//[^\n]*"), "");
    std::set<std::string> declared;
    const std::regex function(R"((alloclab_\w+)\()");
    for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at) declared.insert((*at)[1]);
    ASSERT_GE(declared.size(), 14U);

    std::set<std::string> exported;
    const std::unique_ptr<FILE, int (*)(FILE*)> nm(
        ::popen("'" ALLOCLAB_NM "' -D --defined-only --format=posix '" ALLOCLAB_C_LIBRARY "'", "r"), &::pclose);
    ASSERT_NE(nm, nullptr);
    std::array<char, 4096> line{};
    while (std::fgets(line.data(), line.size(), nm.get()) != nullptr)
        exported.insert(std::string(line.data()).substr(0, std::string(line.data()).find(' ')));
    EXPECT_EQ(exported, declared);
}

TEST(c_interface, a_thread_that_used_it_may_end_after_it_is_closed) {
    for (int round = 0; round < 20; ++round) {
        std::latch used(1), closed(1);
        std::thread user;
        {
            const opened library;
            user = std::thread([&] {
                for (const char* strategy : {"magazine_pool", "magazine_heap", "owner_pool", "locked_hybrid"}) {
                    alloclab_slots* slots = make(library, strategy);
                    void* slot = FIND(library, alloclab_slots_acquire)(slots);
                    EXPECT_NE(slot, nullptr);
                    FIND(library, alloclab_slots_release)(slots, slot);
                    FIND(library, alloclab_slots_destroy)(slots);
                }
                used.count_down();
                closed.wait();
            });
            used.wait();
        }
        closed.count_down();
        user.join();
    }
}

}  // namespace
}  // namespace alloclab
