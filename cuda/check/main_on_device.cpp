#include "program.hpp"

int main(int argc, char** argv) { return alloclab::device::check::program(argc, argv); }
