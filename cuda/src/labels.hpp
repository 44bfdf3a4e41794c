// labels: the names of uses, each kept once. Choose it where a record of every use must name it and few names are many
// uses'. Cost: O(length) to find one, no heap for one that is known; what nobody refers to goes when there are twice as
// many as there were in use. Threads: single. Full: the answer is `unnamed work`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <unordered_set>

namespace alloclab::device {

/// `what "called" on by`, where empty parts stay away.
struct label {
    std::string what;
    std::string called;
    std::string by;
    mutable std::uint32_t seen = 0;  // by the last sweep
};

class labels {
public:
    labels() : known_(least) {}
    labels(const labels&) = delete;
    labels& operator=(const labels&) = delete;

    /// Stays where it is for as long as each sweep is told of it. `refer(visit)` must call `visit(l)` for each label
    /// that is referred to; it is called when there are too many.
    template <class Refer>
    const label* find_or_add(std::string_view what, std::string_view called, std::string_view by,
                             const Refer& refer) noexcept {
        const parts name{what, called, by};
        if (last_ != nullptr && same{}(name, *last_)) return last_;
        if (const auto found = known_.find(name); found != known_.end()) return last_ = &*found;
        try {
            if (known_.size() >= limit_) sweep(refer);
            return last_ = &*known_.insert(label{std::string(what), std::string(called), std::string(by)}).first;
        } catch (const std::bad_alloc&) {
            return &unnamed_;
        }
    }

    [[nodiscard]] std::size_t live() const noexcept { return known_.size(); }

private:
    static constexpr std::size_t least = 1024;

    struct parts {
        std::string_view what, called, by;
    };
    static parts parts_of(const parts& p) noexcept { return p; }
    static parts parts_of(const label& l) noexcept { return {l.what, l.called, l.by}; }
    struct hashed {
        using is_transparent = void;
        std::size_t operator()(const auto& name) const noexcept {
            const parts p = parts_of(name);
            const std::hash<std::string_view> hash;
            return (hash(p.called) * 31 + hash(p.by)) * 31 + hash(p.what);
        }
    };
    struct same {
        using is_transparent = void;
        bool operator()(const auto& a, const auto& b) const noexcept {
            const parts p = parts_of(a);
            const parts q = parts_of(b);
            return p.called == q.called && p.what == q.what && p.by == q.by;
        }
    };

    template <class Refer>
    void sweep(const Refer& refer) noexcept {
        ++sweeps_;
        refer([&](const label& l) { l.seen = sweeps_; });
        std::erase_if(known_, [&](const label& l) { return l.seen != sweeps_; });
        limit_ = std::max(least, 2 * known_.size());
        last_ = nullptr;
    }

    std::unordered_set<label, hashed, same> known_;
    const label* last_ = nullptr;                  // of known_
    const label unnamed_{"unnamed work", {}, {}};  // short enough to take no heap
    std::size_t limit_ = least;
    std::uint32_t sweeps_ = 0;
};

}  // namespace alloclab::device
