// The C interface as a C11 program sees it, linked with either library: every function on every strategy, every kind of
// wrong input, and threads. With "absent" as its argument this process finds no libmimalloc.
#define _GNU_SOURCE  // RTLD_NEXT. NOLINT(bugprone-reserved-identifier)
#include <alloclab/alloclab.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { many = 1100, largest = 1152, threads = 4, cycles = 3000, held = 4 };

static int failures = 0;
static bool hide_mimalloc = false;

static void expect(bool holds, const char* strategy, int line, const char* text) {
    if (holds) return;
    if (++failures > 20) return;
    fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, strategy, text);
}
#define EXPECT(strategy, condition) expect((condition), (strategy), __LINE__, #condition)

// Stands before the C library's, for the library under test too.
void* dlopen(const char* file, int flags) {
    void* (*next)(const char*, int) = NULL;
    void* found = dlsym(RTLD_NEXT, "dlopen");
    if (hide_mimalloc && file != NULL && strstr(file, "mimalloc") != NULL) return NULL;
    memcpy(&next, &found, sizeof next);
    return next(file, flags);
}

static bool has_mimalloc(void) { return dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL) != NULL; }

/// The object, or NULL where the strategy needs a library that is not here.
static alloclab_slots* make(const char* name, size_t size, size_t alignment) {
    alloclab_slots* slots = NULL;
    const int error = alloclab_slots_create(name, size, alignment, NULL, &slots);
    const bool missing = strstr(name, "mimalloc") != NULL && !has_mimalloc();
    EXPECT(name, error == (missing ? alloclab_unavailable : alloclab_ok));
    EXPECT(name, (slots != NULL) == (error == alloclab_ok));
    return slots;
}

static size_t fill(alloclab_slots* slots, void* live[many]) {
    size_t n = 0;
    while (n < many && (live[n] = alloclab_slots_acquire(slots)) != NULL) ++n;
    return n;
}

static void slots_are_apart_aligned_and_whole(const char* name, size_t size, size_t alignment) {
    void* live[many];
    alloclab_slots* slots = make(name, size, alignment);
    if (slots == NULL) return;
    const size_t bytes = alloclab_slots_bytes(slots);
    EXPECT(name, bytes >= size && bytes <= largest && (size < 64 || 2 * bytes < 3 * size));

    const size_t n = fill(slots, live);
    EXPECT(name, n == (alloclab_slots_capacity(slots) != 0 ? alloclab_slots_capacity(slots) : many));
    for (size_t i = 0; i < n; ++i) {
        EXPECT(name, (uintptr_t)live[i] % alignment == 0);
        memset(live[i], (int)(i % 256), bytes);
        memcpy(live[i], &i, sizeof i);
    }
    for (size_t i = 0; i < n; ++i) {
        const unsigned char* rest = (unsigned char*)live[i] + sizeof i;
        EXPECT(name, memcmp(live[i], &i, sizeof i) == 0);
        EXPECT(name, *rest == i % 256 && memcmp(rest, rest + 1, bytes - sizeof i - 1) == 0);
    }
    for (size_t i = 0; i < n; ++i) alloclab_slots_release(slots, live[i]);
    alloclab_slots_release(slots, NULL);
    EXPECT(name, fill(slots, live) == n);
    for (size_t i = 0; i < n; ++i) alloclab_slots_release(slots, live[n - 1 - i]);
    alloclab_slots_destroy(slots);
}

static void capabilities_answer_or_say_that_they_are_none(const char* name) {
    void* live[many];
    alloclab_slots* slots = make(name, 96, 16);
    if (slots == NULL) return;
    EXPECT(name, strcmp(alloclab_slots_name(slots), name) == 0);
    EXPECT(name, alloclab_slots_bytes(slots) == 96);
    EXPECT(name, alloclab_slots_threads(slots) == alloclab_single || alloclab_slots_threads(slots) == alloclab_shared);
    const bool bounded = alloclab_slots_capacity(slots) != 0;

    const size_t n = fill(slots, live);
    bool owns = false;
    const int told = alloclab_slots_owns(slots, live[0], &owns);
    EXPECT(name, told == alloclab_ok || (told == alloclab_not_supported && !bounded));
    EXPECT(name, owns == (told == alloclab_ok));
    owns = true;
    EXPECT(name, alloclab_slots_owns(slots, &owns, &owns) == told && owns == (told != alloclab_ok));

    alloclab_usage use = {77, 77, 77};
    const int measured = alloclab_slots_usage(slots, &use);
    EXPECT(name, measured == alloclab_ok || (measured == alloclab_not_supported && !bounded));
    EXPECT(name, use.live == (measured == alloclab_ok ? n : 77));
    EXPECT(name, measured != alloclab_ok || use.reserved_bytes >= n * 96);

    const int reset = alloclab_slots_reset(slots);
    EXPECT(name, reset == alloclab_ok || (reset == alloclab_not_supported && !bounded));
    if (reset == alloclab_ok) {
        EXPECT(name, alloclab_slots_usage(slots, &use) == alloclab_ok && use.live == 0);
        EXPECT(name, fill(slots, live) == n);
    }
    for (size_t i = 0; i < n; ++i) alloclab_slots_release(slots, live[i]);
    alloclab_slots_destroy(slots);
}

static void options_ask_for_a_number_of_slots(const char* name) {
    alloclab_slots* slots = make(name, 96, 16);
    if (slots == NULL) return;
    const size_t capacity = alloclab_slots_capacity(slots);
    alloclab_slots_destroy(slots);

    const char* met[] = {"", "slots=1", "slots=007", "slots=64"};
    for (size_t i = 0; i < sizeof met / sizeof *met; ++i) {
        EXPECT(name, alloclab_slots_create(name, 96, 16, met[i], &slots) == alloclab_ok);
        EXPECT(name, alloclab_slots_capacity(slots) == capacity);
        alloclab_slots_destroy(slots);
    }

    // More where the strategy has more, else refused; an unbounded one holds any number.
    const int larger = alloclab_slots_create(name, 96, 16, "slots=65", &slots);
    EXPECT(name, larger == (strstr(name, "scan_pool") != NULL ? alloclab_too_many_slots : alloclab_ok));
    EXPECT(name, (slots != NULL) == (larger == alloclab_ok));
    if (slots != NULL) {
        void* live[many];
        const size_t n = fill(slots, live);
        EXPECT(name, n == (capacity != 0 ? alloclab_slots_capacity(slots) : many) && n >= 65);
        for (size_t i = 0; i < n; ++i) alloclab_slots_release(slots, live[i]);
        alloclab_slots_destroy(slots);
    }
    const int any = alloclab_slots_create(name, 96, 16, "slots=18446744073709551615", &slots);
    EXPECT(name, any == (capacity != 0 ? alloclab_too_many_slots : alloclab_ok));
    EXPECT(name, (slots == NULL) == (capacity != 0));
    alloclab_slots_destroy(slots);
}

struct own_share {
    alloclab_slots* slots;
    size_t bytes;
    unsigned char stamp;
    int wrong;
};

static void* take_turns(void* argument) {
    struct own_share* mine = argument;
    for (int round = 0; round < cycles; ++round) {
        unsigned char* live[held];
        for (int i = 0; i < held; ++i) {
            live[i] = alloclab_slots_acquire(mine->slots);
            if (live[i] != NULL) memset(live[i], mine->stamp, mine->bytes);
            else ++mine->wrong;
        }
        for (int i = 0; i < held; ++i) {
            if (live[i] == NULL) continue;
            if (live[i][0] != mine->stamp || live[i][mine->bytes - 1] != mine->stamp) ++mine->wrong;
            alloclab_slots_release(mine->slots, live[i]);
        }
    }
    return NULL;
}

static void threads_never_share_a_slot(const char* name) {
    alloclab_slots* slots = make(name, 96, 16);
    if (slots == NULL) return;
    if (alloclab_slots_threads(slots) == alloclab_shared) {
        pthread_t thread[threads];
        struct own_share share[threads];
        for (int i = 0; i < threads; ++i) {
            share[i] = (struct own_share){slots, 96, (unsigned char)(i + 1), 0};
            EXPECT(name, pthread_create(&thread[i], NULL, take_turns, &share[i]) == 0);
        }
        for (int i = 0; i < threads; ++i) {
            pthread_join(thread[i], NULL);
            EXPECT(name, share[i].wrong == 0);
        }
        alloclab_usage use = {0, 0, 0};
        EXPECT(name, alloclab_slots_usage(slots, &use) == alloclab_not_supported || use.live == 0);
    }
    alloclab_slots_destroy(slots);
}

static void wrong_calls_are_answered(void) {
    const char* all = "wrong calls";
    const char* pool = "static_pool";
    alloclab_slots* slots = NULL;
    bool owns = true;
    alloclab_usage use = {77, 77, 77};

    EXPECT(all, alloclab_slots_create(pool, 96, 16, NULL, NULL) == alloclab_null_argument);
    const struct {
        const char *name, *options;
        size_t size, alignment;
        int error;
    } wrong[] = {
        {NULL, NULL, 96, 16, alloclab_null_argument},
        {"", NULL, 96, 16, alloclab_unknown_strategy},
        {"no_such_pool", NULL, 96, 16, alloclab_unknown_strategy},
        {"static_poo", NULL, 96, 16, alloclab_unknown_strategy},
        {"static_pool ", NULL, 96, 16, alloclab_unknown_strategy},
        {"STATIC_POOL", NULL, 96, 16, alloclab_unknown_strategy},
        {"no_such_pool", NULL, 0, 16, alloclab_unknown_strategy},
        {"no_such_pool", NULL, SIZE_MAX, 16, alloclab_unknown_strategy},
        {pool, NULL, 0, 16, alloclab_bad_size},
        {pool, NULL, largest + 1, 16, alloclab_bad_size},
        {pool, NULL, SIZE_MAX, 16, alloclab_bad_size},
        {pool, NULL, 96, 0, alloclab_bad_alignment},
        {pool, NULL, 96, 3, alloclab_bad_alignment},
        {pool, NULL, 96, 24, alloclab_bad_alignment},
        {pool, NULL, 96, 32, alloclab_bad_alignment},
        {pool, NULL, 96, SIZE_MAX / 2 + 1, alloclab_bad_alignment},
        {pool, "slots", 96, 16, alloclab_bad_options},
        {pool, "slots=", 96, 16, alloclab_bad_options},
        {pool, "slots=0", 96, 16, alloclab_bad_options},
        {pool, "slots=-1", 96, 16, alloclab_bad_options},
        {pool, "slots=+1", 96, 16, alloclab_bad_options},
        {pool, "slots= 1", 96, 16, alloclab_bad_options},
        {pool, "slots=1 ", 96, 16, alloclab_bad_options},
        {pool, "slots=1,", 96, 16, alloclab_bad_options},
        {pool, "slots=1,slots=1", 96, 16, alloclab_bad_options},
        {pool, "slots=0x10", 96, 16, alloclab_bad_options},
        {pool, "slots=1e1", 96, 16, alloclab_bad_options},
        {pool, "slots=18446744073709551616", 96, 16, alloclab_bad_options},
        {pool, " slots=1", 96, 16, alloclab_bad_options},
        {pool, "Slots=1", 96, 16, alloclab_bad_options},
        {pool, "blocks=1", 96, 16, alloclab_bad_options},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        slots = (alloclab_slots*)&owns;
        const int error =
            alloclab_slots_create(wrong[i].name, wrong[i].size, wrong[i].alignment, wrong[i].options, &slots);
        EXPECT(wrong[i].options != NULL ? wrong[i].options : "create", error == wrong[i].error && slots == NULL);
    }

    alloclab_slots_destroy(NULL);
    alloclab_slots_release(NULL, NULL);
    alloclab_slots_release(NULL, &owns);
    EXPECT(all, alloclab_slots_acquire(NULL) == NULL);
    EXPECT(all, alloclab_slots_owns(NULL, &owns, &owns) == alloclab_null_argument && owns);
    EXPECT(all, alloclab_slots_reset(NULL) == alloclab_null_argument);
    EXPECT(all, alloclab_slots_usage(NULL, &use) == alloclab_null_argument && use.live == 77);
    EXPECT(all, alloclab_slots_name(NULL) == NULL);
    EXPECT(all, alloclab_slots_threads(NULL) == alloclab_single);
    EXPECT(all, alloclab_slots_capacity(NULL) == 0 && alloclab_slots_bytes(NULL) == 0);

    slots = make(pool, 96, 16);
    EXPECT(all, alloclab_slots_owns(slots, &owns, NULL) == alloclab_null_argument);
    EXPECT(all, alloclab_slots_owns(slots, NULL, &owns) == alloclab_ok && !owns);
    EXPECT(all, alloclab_slots_usage(slots, NULL) == alloclab_null_argument);
    alloclab_slots_destroy(slots);
}

static void errors_and_versions_have_words(void) {
    const char* none = alloclab_error_text(-1);
    EXPECT("version", alloclab_version() == alloclab_header_version);
    for (int a = alloclab_ok; a <= alloclab_not_supported; ++a) {
        EXPECT("error", strlen(alloclab_error_text(a)) > 0 && strcmp(alloclab_error_text(a), none) != 0);
        for (int b = alloclab_ok; b < a; ++b)
            EXPECT("error", strcmp(alloclab_error_text(a), alloclab_error_text(b)) != 0);
    }
    EXPECT("error", strcmp(alloclab_error_text(alloclab_not_supported + 1), none) == 0);
}

int main(int count, char** arguments) {
    hide_mimalloc = count > 1 && strcmp(arguments[1], "absent") == 0;
    size_t strategies = 0;
    for (const char* name; (name = alloclab_slots_strategy(strategies)) != NULL; ++strategies) {
        const size_t sizes[] = {1, 63, 64, 65, 96, 97, 129, 193, 257, 385, 513, 769, largest};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
            for (size_t alignment = 1; alignment <= 16; alignment *= 4)
                slots_are_apart_aligned_and_whole(name, sizes[i], alignment);
        capabilities_answer_or_say_that_they_are_none(name);
        options_ask_for_a_number_of_slots(name);
        threads_never_share_a_slot(name);
    }
    EXPECT("list", strategies > 0 && alloclab_slots_strategy(SIZE_MAX) == NULL);
    wrong_calls_are_answered();
    errors_and_versions_have_words();
    printf("%zu strategies, %d failures\n", strategies, failures);
    return failures != 0;
}
