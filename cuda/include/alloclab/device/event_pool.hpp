// event_pool, by its name on the device side. It lies in tensor/, since the engine orders its evals by it.
#pragma once

#include "alloclab/tensor/event_pool.hpp"

namespace alloclab::device {

using tensor::event_pool;

}  // namespace alloclab::device
