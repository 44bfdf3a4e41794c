// What all of alloclab.h shares: the version and the words for its errors.
#pragma GCC visibility push(default)
#include <alloclab/alloclab.h>
#pragma GCC visibility pop

static_assert(alloclab_header_version == ALLOCLAB_VERSION, "alloclab.h has the version of another release");

int alloclab_version() { return alloclab_header_version; }

const char* alloclab_error_text(int code) {
    switch (code) {
        case alloclab_ok:
            return "no error";
        case alloclab_null_argument:
            return "NULL where a handle, a name or an out argument is needed";
        case alloclab_unknown_strategy:
            return "no strategy of that name; alloclab_slots_strategy lists them";
        case alloclab_unavailable:
            return "the strategy needs a library that this system lacks";
        case alloclab_bad_size:
            return "a slot has 1 to 1152 bytes";
        case alloclab_bad_alignment:
            return "the alignment is a power of two from 1 to 16";
        case alloclab_bad_options:
            return "options are NULL, \"\" or \"slots=N\" with N a decimal number from 1";
        case alloclab_too_many_slots:
            return "the strategy is bounded and has fewer slots than options ask for";
        case alloclab_out_of_memory:
            return "the memory of the handle cannot be had";
        case alloclab_not_supported:
            return "the strategy cannot do this";
        default:
            return "no such error";
    }
}
