#include "order.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <utility>

namespace alloclab::device {

namespace {

/// What is written behind each other into a buffer, as much as fits.
class line {
public:
    explicit line(std::span<char> into) noexcept : into_(into) {}

    line& operator<<(std::string_view text) noexcept {
        const std::size_t fits = std::min(text.size(), into_.size() - written_);
        std::copy_n(text.data(), fits, into_.data() + written_);
        written_ += fits;
        return *this;
    }
    line& operator<<(const label& l) noexcept {
        *this << l.what;
        if (!l.called.empty()) *this << " \"" << l.called << "\"";
        if (!l.by.empty()) *this << " on " << l.by;
        return *this;
    }
    line& operator<<(const byte_range& r) noexcept {
        const std::uintptr_t block = r.block != 0 ? r.block : r.begin;
        const std::size_t offset = r.begin - block;
        std::array<char, 80> text{};
        std::snprintf(text.data(), text.size(), "%#" PRIxPTR "+%zu..%zu", block, offset, offset + r.bytes);
        return *this << text.data();
    }
    [[nodiscard]] std::string_view text() const noexcept { return {into_.data(), written_}; }

private:
    std::span<char> into_;
    std::size_t written_ = 0;
};

constexpr std::string_view present(use_kind k) noexcept {
    constexpr std::array<std::string_view, 4> verbs{"reads", "writes", "frees", "allocates"};
    return verbs[static_cast<std::size_t>(k)];
}
constexpr std::string_view past(use_kind k) noexcept {
    constexpr std::array<std::string_view, 4> verbs{"read", "wrote", "freed", "allocated"};
    return verbs[static_cast<std::size_t>(k)];
}

}  // namespace

order::order() {
    actor_state host;
    host.clock.widen(1);
    actors_.push_back(std::move(host));
}

actor order::add_stream(std::string_view name) {
    const vector_clock& host = state(actor::host).clock;
    // A number whose work everybody has heard of, since what the host heard counts for all, can stand for new work.
    for (std::size_t i = 1; i < actors_.size(); ++i) {
        const auto number = static_cast<actor>(i);
        actor_state& old = actors_[i];
        if (!old.retired || host.heard(number) < old.clock.heard(number)) continue;
        old.name = name;
        old.clock = host;  // as wide: it takes no heap
        old.retired = false;
        return number;
    }
    const auto number = static_cast<actor>(actors_.size());
    for (actor_state& a : actors_) a.clock.widen(actors_.size() + 1);
    actor_state added{.name = std::string(name), .clock = host, .records = {}};
    actors_.push_back(std::move(added));
    return number;
}

void order::retire(actor stream) noexcept { state(stream).retired = true; }

void order::begin_work(actor a) noexcept {
    vector_clock& clock = state(a).clock;
    if (a != actor::host) clock.join(state(actor::host).clock);
    clock.step(a);
}

bool order::record(actor stream, vector_clock& into, std::string_view event) noexcept {
    actor_state& s = state(stream);
    try {
        into = s.clock;
    } catch (const std::bad_alloc&) {
        return false;
    }
    if (event.empty()) return true;
    const tick behind = s.clock.heard(stream);
    const tick last = s.records_made != 0 ? s.records[(s.records_made - 1) % records_kept].behind : 0;
    if (last == behind) return true;  // the first one behind a work is the one to name
    s.records[s.records_made % records_kept] = {behind, label_for(event, {}, {})};
    ++s.records_made;
    return true;
}

void order::wait(actor a, const vector_clock& event) noexcept { state(a).clock.join(event); }

void order::join(actor later, actor earlier) noexcept { state(later).clock.join(state(earlier).clock); }

bool order::has_heard(actor a, const vector_clock& event) const noexcept {
    const vector_clock& own = state(a).clock;
    const vector_clock& host = state(actor::host).clock;
    for (std::size_t i = 0; i < event.width(); ++i) {
        const auto number = static_cast<actor>(i);
        if (std::max(own.heard(number), host.heard(number)) < event.heard(number)) return false;
    }
    return true;
}

std::span<const race> order::use(actor a, const byte_range& bytes, access does, std::string_view what,
                                 std::string_view called) noexcept {
    return enter(does == access::read ? use_kind::read : use_kind::write, a, bytes, what, called);
}

std::span<const race> order::free(actor a, const byte_range& bytes, std::string_view what,
                                  std::string_view called) noexcept {
    return enter(use_kind::free, a, bytes, what, called);
}

std::span<const race> order::reborn(actor a, const byte_range& bytes, std::string_view what,
                                    std::string_view called) noexcept {
    return enter(use_kind::allocate, a, bytes, what, called);
}

std::span<const race> order::enter(use_kind does, actor a, const byte_range& bytes, std::string_view what,
                                   std::string_view called) noexcept {
    const actor_state& by = state(a);
    const label* const name = label_for(what, called, by.name);
    return uses_.enter({.at = by.clock.heard(a), .called = name, .who = a, .does = does}, by.clock, bytes);
}

void order::forget(const byte_range& bytes) noexcept { uses_.forget(bytes); }

const label* order::label_for(std::string_view what, std::string_view called, std::string_view by) noexcept {
    return labels_.find_or_add(what, called, by, [this](const auto& visit) {
        uses_.for_each_label(visit);
        for (const actor_state& a : actors_) {
            for (std::size_t i = 0; i < std::min(a.records_made, records_kept); ++i) visit(*a.records[i].event);
        }
    });
}

std::string_view order::describe(const race& r, std::span<char> into) const noexcept {
    line text(into);
    text << (r.after_free() ? "use after free: " : "race: ") << *r.later.called << " " << present(r.later.does) << " "
         << r.where << ", which " << *r.earlier.called << " " << past(r.earlier.does) << " before";
    if (r.after_free()) return text.text();
    if (const label* const event = first_record_behind(r.earlier)) {
        text << "; " << *event << ", recorded behind it, was not waited for";
    } else {
        text << "; no event was recorded behind it";
    }
    return text.text();
}

const label* order::first_record_behind(const memory_use& use) const noexcept {
    const actor_state& s = state(use.who);
    for (std::size_t i = s.records_made - std::min(s.records_made, records_kept); i < s.records_made; ++i) {
        const recorded& r = s.records[i % records_kept];
        if (r.behind >= use.at) return r.event;
    }
    return nullptr;
}

std::size_t order::live_ranges() const noexcept { return uses_.live_ranges(); }

std::size_t order::live_labels() const noexcept { return labels_.live(); }

}  // namespace alloclab::device
