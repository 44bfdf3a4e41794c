// alloclab.h: the strategies of this library for C11, and for C++ and other languages that call C.
// Choose it where templates cannot go; the C++ headers are the same strategies inlined.
// Cost: a call through a pointer each for acquire and release, and a slot takes the next size of alloclab_slots_bytes.
// Threads: create, destroy and reset need the object to themselves, the rest is as alloclab_slots_threads says.
// Full: acquire answers NULL. Nothing here throws or prints, and nothing allocates but create and the strategy itself.
// Grows by new functions and new error codes alone: what is here keeps its meaning, and structures their members.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Of this header: major * 10000 + minor * 100 + patch.
enum { alloclab_header_version = 100 };

/// Of the library that is loaded, in the same form.
int alloclab_version(void);

/// What most functions return. An out argument is written when that is `alloclab_ok`; create writes NULL otherwise.
enum alloclab_error {
    alloclab_ok = 0,
    alloclab_null_argument,     ///< NULL where a handle, a name or an out argument is needed
    alloclab_unknown_strategy,  ///< no strategy of that name
    alloclab_unavailable,       ///< the strategy needs a library that this system lacks
    alloclab_bad_size,          ///< 0 bytes, or more than the largest slot
    alloclab_bad_alignment,     ///< no power of two from 1 to 16
    alloclab_bad_options,       ///< not NULL, "" or "slots=N" with N a decimal number from 1
    alloclab_too_many_slots,    ///< a bounded strategy was asked for more slots than it has
    alloclab_out_of_memory,     ///< the memory of the handle cannot be had
    alloclab_not_supported      ///< the strategy cannot do this
};

/// The code in words, in static storage; "no such error" for a number that is none.
const char* alloclab_error_text(int code);

// ---- slots: storage for objects of one size

/// A strategy, and behind these members its state, which is the library's own.
typedef struct alloclab_slots alloclab_slots;
struct alloclab_slots {
    void* (*acquire)(alloclab_slots* self);             ///< as alloclab_slots_acquire, which calls it
    void (*release)(alloclab_slots* self, void* slot);  ///< as alloclab_slots_release, which calls it
};

/// Whether several threads may use one object at the same time.
enum alloclab_threads { alloclab_single = 0, alloclab_shared = 1 };

/// What a strategy knows of itself.
typedef struct alloclab_usage {
    size_t live;            ///< slots handed out and not released
    size_t reserved_bytes;  ///< bytes held for slots, used or not
    size_t source_calls;    ///< calls to the source of its memory so far
} alloclab_usage;

/// The name of a strategy, in static storage: "heap_malloc" at 0, and so on; NULL from the end of the list on.
/// Those that this system lacks a library for are listed too.
const char* alloclab_slots_strategy(size_t index);

/// Makes an object that hands out slots of at least `size` bytes at addresses that are multiples of `alignment`.
/// @param size       1 to 1152 bytes; rounded up as alloclab_slots_bytes tells
/// @param alignment  a power of two from 1 to 16
/// @param options    NULL, "" or "slots=N": pools, and the static part of hybrids, have 64 slots, or 1024 from N = 65
///                   on; a strategy that could not hold N slots at a time is refused
/// @param out        the object, until it is given to alloclab_slots_destroy
/// @return alloclab_ok, or why there is none
int alloclab_slots_create(const char* strategy, size_t size, size_t alignment, const char* options,
                          alloclab_slots** out);

/// Gives everything back; live slots of a pool are gone with it, those of a heap must be released before. Threads that
/// used a shared object must be done with it, and may live on. NULL does nothing.
void alloclab_slots_destroy(alloclab_slots* slots);

/// An uninitialised slot; NULL when the strategy is exhausted, or without an object. O(1) but for the controls.
inline void* alloclab_slots_acquire(alloclab_slots* slots) { return slots ? slots->acquire(slots) : slots; }

/// Gives a slot back; it must be live here. NULL does nothing, as either argument.
inline void alloclab_slots_release(alloclab_slots* slots, void* slot) {
    if (slots) slots->release(slots, slot);
}

/// Whether the pointer lies inside this object's slots, live or free.
/// @return alloclab_not_supported from strategies that cannot tell, the heaps
int alloclab_slots_owns(const alloclab_slots* slots, const void* pointer, bool* out);

/// Forgets every live slot and keeps the memory.
/// @return alloclab_not_supported from strategies that cannot, the heaps
int alloclab_slots_reset(alloclab_slots* slots);

/// Exact while no other thread is inside.
/// @return alloclab_not_supported from strategies that do not count
int alloclab_slots_usage(const alloclab_slots* slots, alloclab_usage* out);

/// The name that it was made by; NULL without an object.
const char* alloclab_slots_name(const alloclab_slots* slots);

/// An enum alloclab_threads; alloclab_single without an object.
int alloclab_slots_threads(const alloclab_slots* slots);

/// The most slots that can be live at a time; 0 where there is no bound, or without an object.
size_t alloclab_slots_capacity(const alloclab_slots* slots);

/// Bytes of each slot, all of them usable: the size asked for, rounded up to 64, 96, 128, 192, 256, 384, 512, 768 or
/// 1152, so from 64 on less than half of what was asked for is added. 0 without an object.
size_t alloclab_slots_bytes(const alloclab_slots* slots);

#ifdef __cplusplus
}
#endif
