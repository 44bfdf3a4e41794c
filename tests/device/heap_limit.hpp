// heap_limit: makes operator new fail on purpose, in the program that links heap_limit.cpp. Threads: single.
#pragma once

namespace alloclab::device {

/// How many more calls of operator new succeed; negative: all of them.
extern int heap_left;

}  // namespace alloclab::device
