#include "use_map.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "alloclab/bytes.hpp"

namespace alloclab::device {

namespace {
std::uintptr_t end_of(const byte_range& r) noexcept { return sum(r.begin, r.bytes); }
bool heard(const vector_clock& clock, const memory_use& use) noexcept { return clock.heard(use.who) >= use.at; }
}  // namespace

use_map::use_map() {
    constexpr std::size_t actors_in_one_race = 8;  // beyond that only while there is heap
    races_.reserve(actors_in_one_race);
}

std::span<const race> use_map::enter(const memory_use& use, const vector_clock& clock,
                                     const byte_range& bytes) noexcept {
    races_.clear();
    const std::uintptr_t end = end_of(bytes);
    try {
        auto range = first_from(bytes.begin);
        for (std::uintptr_t at = bytes.begin; at < end; ++range) {
            if (range == ranges_.end() || range->first > at) {
                range = add(range, at, range == ranges_.end() ? end : std::min(end, range->first));
            } else if (range->second.end > end) {
                split(range, end);
            }
            at = range->second.end;
            enter_one(range->second, range->first, use, clock, bytes.block);
            range = join_with_previous(range);
        }
        if (range != ranges_.end()) join_with_previous(range);
    } catch (const std::bad_alloc&) {
        drop(bytes.begin, end);
    }
    return races_;
}

void use_map::forget(const byte_range& bytes) noexcept {
    if (bytes.bytes == 0) return;
    const std::uintptr_t end = end_of(bytes);
    try {
        auto range = first_from(bytes.begin);
        while (range != ranges_.end() && range->first < end) {
            if (range->second.end > end) split(range, end);
            range = remove(range);
        }
    } catch (const std::bad_alloc&) {
        drop(bytes.begin, end);
    }
}

void use_map::enter_one(history& known, std::uintptr_t begin, const memory_use& use, const vector_clock& clock,
                        std::uintptr_t block) {
    const auto conflict = [&](const memory_use& earlier) {
        found({.later = use, .earlier = earlier, .where = {begin, known.end - begin, block}});
    };
    if (known.write.does == use_kind::free && use.does != use_kind::allocate) return conflict(known.write);

    const bool after_write = heard(clock, known.write);
    if (use.does == use_kind::read) {
        if (!after_write) conflict(known.write);
        std::erase_if(known.reads, [&](const memory_use& read) { return heard(clock, read); });
        const auto by_actor = [](const memory_use& a, const memory_use& b) { return a.who < b.who; };
        known.reads.insert(std::upper_bound(known.reads.begin(), known.reads.end(), use, by_actor), use);
        known.write_heard |= after_write;
        return;
    }
    for (const memory_use& read : known.reads) {
        if (!heard(clock, read)) conflict(read);
    }
    if (!known.write_heard && !after_write) conflict(known.write);
    known.write = use;
    known.reads.clear();
    known.write_heard = false;
}

void use_map::found(const race& r) {
    const auto same_actor = [&](const race& other) { return other.earlier.who == r.earlier.who; };
    const auto before = std::find_if(races_.begin(), races_.end(), same_actor);
    if (before == races_.end()) {
        races_.push_back(r);
    } else if (before->earlier.at < r.earlier.at) {
        *before = r;
    } else if (before->earlier == r.earlier && end_of(before->where) == r.where.begin) {
        before->where.bytes += r.where.bytes;
    }
}

/// The first range at or beyond the address, where one that lies across it is split.
use_map::ranges::iterator use_map::first_from(std::uintptr_t address) {
    const auto range = ranges_.lower_bound(address);
    if ((range != ranges_.end() && range->first == address) || range == ranges_.begin()) return range;
    const auto previous = std::prev(range);
    if (previous->second.end <= address) return range;
    split(previous, address);
    return std::next(previous);
}

/// A range with no history, in the gap before that one.
use_map::ranges::iterator use_map::add(ranges::iterator before, std::uintptr_t begin, std::uintptr_t end) {
    if (spare_.empty()) {
        const auto added = ranges_.try_emplace(before, begin);
        added->second.end = end;
        return added;
    }
    ranges::node_type node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = begin;
    history& known = node.mapped();
    known.end = end;
    known.write = {};
    known.reads.clear();
    known.write_heard = false;
    return ranges_.insert(before, std::move(node));
}

void use_map::split(ranges::iterator range, std::uintptr_t at) {
    const auto behind = add(std::next(range), at, range->second.end);
    range->second.end = at;
    behind->second.write = range->second.write;
    behind->second.write_heard = range->second.write_heard;
    behind->second.reads = range->second.reads;
}

/// Joins it with what is before if their histories are equal. The range that then holds it.
use_map::ranges::iterator use_map::join_with_previous(ranges::iterator range) noexcept {
    if (range == ranges_.begin()) return range;
    const auto previous = std::prev(range);
    history& a = previous->second;
    const history& b = range->second;
    if (a.end != range->first || a.write != b.write || a.reads != b.reads) {
        return range;
    }
    a.end = b.end;
    remove(range);
    return previous;
}

use_map::ranges::iterator use_map::remove(ranges::iterator range) noexcept {
    const auto next = std::next(range);
    ranges::node_type node = ranges_.extract(range);
    try {
        spare_.push_back(std::move(node));
    } catch (const std::bad_alloc&) {  // then it is not kept
        node = {};
    }
    return next;
}

/// Forgets every range that lies in these bytes, if only partly: what is left when there is no heap to split one.
void use_map::drop(std::uintptr_t begin, std::uintptr_t end) noexcept {
    auto range = ranges_.lower_bound(begin);
    if (range != ranges_.begin() && std::prev(range)->second.end > begin) --range;
    while (range != ranges_.end() && range->first < end) range = remove(range);
}

}  // namespace alloclab::device
