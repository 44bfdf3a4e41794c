// The eval loop on the devices that it is measured on: what they count is right, and a race or misuse spoils the cell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "alloclab/device/tensor_extra.hpp"
#include "alloclab/registry.hpp"
#include "eval_loop.hpp"

namespace alloclab::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using contexts = watched<hybrid<tensor::context>>;
using extras = bump_arena<device::tensor_extra>;
template <class Device>
using loop = eval_loop<contexts, extras, Device, counted_buffers>;

eval_options on(const std::string& model, std::size_t frames) {
    return {.model = model, .device = find_device("sim:default"), .frames = frames};
}

template <class Device>
observations seen_of(const eval_options& o) {
    observations seen;
    std::make_unique<loop<Device>>(o)->observe(seen);
    return seen;
}

std::string complaint(const std::function<void()>& measured) {
    try {
        measured();
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    ADD_FAILURE() << "nothing was seen";
    return "";
}

/// Takes waits for events and makes none.
class deaf_device : public accounting_device {
public:
    using accounting_device::accounting_device;
    bool wait(stream, event) noexcept { return true; }
};

/// Frees what nobody has, once in each eval.
class clumsy_device : public accounting_device {
public:
    using accounting_device::accounting_device;
    bool record(event e, stream s) noexcept {
        sim_device::deallocate(this, s);
        return accounting_device::record(e, s);
    }
};

TEST(device_evals_test, evals_in_flight_share_caches_without_a_race) {
    for (const std::size_t frames : {1u, 2u, 4u}) {
        const auto n = seen_of<accounting_device>(on("llama-2-7b-small", frames)).counters;
        EXPECT_EQ(n.at("races"), 0) << frames;
        EXPECT_GT(n.at("device_launches_per_eval"), 10) << frames;
        EXPECT_EQ(n.at("device_allocations_per_eval"), 0) << frames;
        EXPECT_EQ(n.at("device_live_events") > 0, frames > 1) << frames;
        EXPECT_EQ(n.at("device_waits_per_eval") > 0, frames > 1) << frames;
    }
}

TEST(device_evals_test, a_wait_that_is_not_made_fails_the_cell_by_the_name_of_the_race) {
    for (const std::size_t frames : {2u, 4u})
        EXPECT_THAT(complaint([&] { seen_of<deaf_device>(on("llama-2-7b-small", frames)); }),
                    AllOf(HasSubstr("races: "), HasSubstr("on stream 2 reads"), HasSubstr("on stream 1 wrote"),
                          HasSubstr("was not waited for"), Not(HasSubstr("work on"))));
}

TEST(device_evals_test, misuse_of_the_device_fails_the_cell_too) {
    EXPECT_THAT(complaint([] { seen_of<clumsy_device>(on("llama-2-7b-small", 2)); }), HasSubstr("misuse: "));
}

TEST(device_evals_test, a_device_that_accounts_counts_as_one_that_computes_and_takes_the_same_time) {
    const eval_options o = on("llama-2-7b-small", 1);
    const auto accounted = seen_of<accounting_device>(o).counters, computed = seen_of<simulated_device>(o).counters;
    EXPECT_EQ(accounted.at("offloaded"), computed.at("offloaded"));
    EXPECT_EQ(accounted.at("device_ns_per_eval"), computed.at("device_ns_per_eval"));
}

TEST(device_evals_test, a_full_shape_runs_on_it_in_a_time_that_reading_its_weights_takes) {
    const auto n = seen_of<accounting_device>(on("llama-2-7b", 1)).counters;
    EXPECT_GT(n.at("device_peak_bytes"), 13e9);
    const double reading = 13e9 / device::cost_profile{}.memory_bytes * 1e9;
    EXPECT_GT(n.at("device_ns_per_eval"), reading);
    EXPECT_LT(n.at("device_ns_per_eval"), 3 * reading);
    EXPECT_EQ(n.at("races"), 0);
}

TEST(device_evals_test, device_times_are_the_same_in_every_run_and_differ_by_device) {
    eval_options o = on("llama-2-7b", 2);
    const double once = seen_of<accounting_device>(o).counters.at("device_ns_per_eval");
    EXPECT_EQ(seen_of<accounting_device>(o).counters.at("device_ns_per_eval"), once);
    o.device.cost.memory_bytes /= 2;
    EXPECT_GT(seen_of<accounting_device>(o).counters.at("device_ns_per_eval"), 1.5 * once);
}

TEST(device_evals_test, the_parts_are_those_of_the_host_and_an_idle_device_has_no_calls_to_wait_for) {
    auto idle = std::make_unique<eval_loop<hybrid<tensor::context>, extras, idle_device>>(on("llama-2-7b", 4));
    idle->warm_up();
    for (int i = 0; i < 10; ++i) idle->once();
    const auto parts = idle->parts();
    ASSERT_EQ(parts.size(), 5u);
    for (const char* part : {"context", "build", "plan", "extras", "submit"}) EXPECT_GT(parts.at(part), 0) << part;
}

}  // namespace
}  // namespace alloclab::bench
