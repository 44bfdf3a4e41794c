// program: what each program of this folder does once the runtime has devices, or none. Its main lies apart: one for
// the runtime that is there, one that first puts simulated devices behind a fake of it.
#pragma once

namespace alloclab::device::check {

/// The exit status.
int program(int argc, char** argv);

}  // namespace alloclab::device::check
