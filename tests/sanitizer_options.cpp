// What sanitized test programs run with, however they are started; ASAN_OPTIONS and its like still override it.
// - A request as large as PTRDIFF_MAX is answered with nullptr, as by the C library: that is a law under test.
// - SIGSEGV keeps its meaning, so that a death test sees the same death in every tree.

// Known to the run-times by these names; unused in a tree without sanitizers. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
const char* __asan_default_options();
const char* __ubsan_default_options();
const char* __tsan_default_options();

const char* __asan_default_options() {
    return "detect_leaks=1:allocator_may_return_null=1:handle_segv=0:check_initialization_order=1:"
           "detect_stack_use_after_return=1";
}
const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }
const char* __tsan_default_options() {
    return "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1:handle_segv=0";
}
}  // NOLINTEND(bugprone-reserved-identifier)
