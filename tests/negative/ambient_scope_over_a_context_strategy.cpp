// A scope brackets evals; a slot strategy has none.
// expect: any_extra_strategy|eval_bracket
#include "alloclab/context/static_pool.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "alloclab/extra/per_tensor.hpp"

using namespace alloclab;
#ifndef MENDED
using strategy = static_pool<int, 8>;
#else
using strategy = per_tensor<int>;
#endif
ambient_offload_scope<strategy>* scope;
