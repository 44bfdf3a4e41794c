// The slots of alloclab.h: every slot strategy of the registry, made for a few slot sizes and found by name.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>

#include "alloclab/bytes.hpp"
#include "alloclab/registry.hpp"
#include "slots_object.hpp"

namespace {

using strategies = std::span<const alloclab::slots_traits* const>;

constexpr std::size_t max_alignment = 16;  // what every source has, malloc too

template <std::size_t Bytes>
struct alignas(max_alignment) storage {
    std::byte bytes[Bytes];
};

// Pools, and hybrids with their static part, of another number of slots; a control stays as it was measured.
template <class S, std::size_t N>
struct resized {
    using type = S;
};
template <template <class, std::size_t> class Pool, class T, std::size_t Before, std::size_t N>
requires(!alloclab::describe<Pool<T, Before>>().control) struct resized<Pool<T, Before>, N> {
    using type = Pool<T, N>;
};

template <std::size_t N>
struct with_slots {
    template <class... S>
    struct made_of {
        static constexpr std::array all{&alloclab::slots_object<typename resized<S, N>::type>::traits_of...};
    };
};

template <std::size_t... Bytes>
struct sizes {
    static constexpr std::array<std::size_t, sizeof...(Bytes)> bytes{Bytes...};
    template <std::size_t N>
    static constexpr std::array<strategies, sizeof...(Bytes)> made{strategies(
        alloclab::context_strategies<storage<Bytes>>::template into<with_slots<N>::template made_of>::all)...};
};
// At most half as much again as was asked for; 96 is ggml's context, 1152 an extra for 16 devices.
using slot_sizes = sizes<64, 96, 128, 192, 256, 384, 512, 768, 1152>;
constexpr std::size_t usual_slots = 64, more_slots = 1024;

/// The number behind "slots="; 0 for "", and nothing written when the text is neither.
bool parse(std::string_view options, std::size_t& slots) noexcept {
    constexpr std::string_view key = "slots=";
    slots = 0;
    if (options.empty()) return true;
    if (!options.starts_with(key)) return false;
    options.remove_prefix(key.size());
    const char* end = options.data() + options.size();
    const auto [stop, error] = std::from_chars(options.data(), end, slots);
    return error == std::errc{} && stop == end && slots != 0;
}

const alloclab::slots_traits& traits_of(const alloclab_slots* slots) noexcept {
    return *static_cast<const alloclab::slots_head*>(slots)->traits;
}

// The header's inline functions, for callers that do not inline them: here they have an address.
[[gnu::used]] constexpr void* (*acquire_out_of_line)(alloclab_slots*) = &alloclab_slots_acquire;
[[gnu::used]] constexpr void (*release_out_of_line)(alloclab_slots*, void*) = &alloclab_slots_release;

}  // namespace

const char* alloclab_slots_strategy(std::size_t index) {
    constexpr strategies all = slot_sizes::made<usual_slots>.front();
    return index < all.size() ? all[index]->name : nullptr;
}

int alloclab_slots_create(const char* strategy, std::size_t size, std::size_t alignment, const char* options,
                          alloclab_slots** out) {
    if (out == nullptr) return alloclab_null_argument;
    *out = nullptr;
    if (strategy == nullptr) return alloclab_null_argument;

    std::size_t wanted = 0;
    const bool understood = options == nullptr || parse(options, wanted);
    const auto& of_sizes = wanted <= usual_slots ? slot_sizes::made<usual_slots> : slot_sizes::made<more_slots>;
    const auto fits = std::ranges::lower_bound(slot_sizes::bytes, size) - slot_sizes::bytes.begin();
    const bool too_large = fits == std::ssize(slot_sizes::bytes);
    const strategies all = of_sizes[too_large ? 0 : static_cast<std::size_t>(fits)];
    const auto found = std::ranges::find(all, std::string_view(strategy), &alloclab::slots_traits::name);

    if (found == all.end()) return alloclab_unknown_strategy;
    if (size == 0 || too_large) return alloclab_bad_size;
    if (!alloclab::is_alignment(alignment) || alignment > max_alignment) return alloclab_bad_alignment;
    if (!understood) return alloclab_bad_options;
    const alloclab::slots_traits& traits = **found;
    if (traits.capacity != 0 && wanted > traits.capacity) return alloclab_too_many_slots;
    if (!traits.available()) return alloclab_unavailable;
    *out = traits.create();
    return *out != nullptr ? alloclab_ok : alloclab_out_of_memory;
}

void alloclab_slots_destroy(alloclab_slots* slots) {
    if (slots != nullptr) traits_of(slots).destroy(slots);
}

int alloclab_slots_owns(const alloclab_slots* slots, const void* pointer, bool* out) {
    if (slots == nullptr || out == nullptr) return alloclab_null_argument;
    if (traits_of(slots).owns == nullptr) return alloclab_not_supported;
    *out = traits_of(slots).owns(slots, pointer);
    return alloclab_ok;
}

int alloclab_slots_reset(alloclab_slots* slots) {
    if (slots == nullptr) return alloclab_null_argument;
    if (traits_of(slots).reset == nullptr) return alloclab_not_supported;
    traits_of(slots).reset(slots);
    return alloclab_ok;
}

int alloclab_slots_usage(const alloclab_slots* slots, alloclab_usage* out) {
    if (slots == nullptr || out == nullptr) return alloclab_null_argument;
    if (traits_of(slots).usage == nullptr) return alloclab_not_supported;
    const alloclab::usage now = traits_of(slots).usage(slots);
    *out = {.live = now.live, .reserved_bytes = now.reserved_bytes, .source_calls = now.source_calls};
    return alloclab_ok;
}

const char* alloclab_slots_name(const alloclab_slots* slots) {
    return slots != nullptr ? traits_of(slots).name : nullptr;
}

int alloclab_slots_threads(const alloclab_slots* slots) {
    const bool shared = slots != nullptr && traits_of(slots).threads == alloclab::thread_use::shared;
    return shared ? alloclab_shared : alloclab_single;
}

std::size_t alloclab_slots_capacity(const alloclab_slots* slots) {
    return slots != nullptr ? traits_of(slots).capacity : 0;
}

std::size_t alloclab_slots_bytes(const alloclab_slots* slots) { return slots != nullptr ? traits_of(slots).bytes : 0; }
