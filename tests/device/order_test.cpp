#include "order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <new>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heap_limit.hpp"

namespace alloclab::device {
namespace {

constexpr std::uintptr_t block = 0x7f0000000000;

/// Two streams and what they do to one block of 4096 bytes.
class two_streams : public ::testing::Test {
protected:
    std::size_t copy_out(actor a) { return touch(a, access::read, "copy_to_host", "logits"); }
    std::size_t multiply(actor a) { return touch(a, access::write, "matmul", "ffn_up.3"); }
    std::size_t touch(actor a, access does, std::string_view what, std::string_view called,
                      const byte_range& bytes = {block, 4096, block}) {
        order.begin_work(a);
        return told(order.use(a, bytes, does, what, called));
    }
    std::size_t told(std::span<const race> races) {
        text.clear();
        std::array<char, 400> into{};
        for (const race& r : races) text += std::string(order.describe(r, into)) + "\n";
        return races.size();
    }

    class order order;
    actor decode = order.add_stream(R"(stream "decode 1")");
    actor copies = order.add_stream(R"(stream "copies")");
    vector_clock closing;
    std::string text;  // of the last races
};

TEST_F(two_streams, a_wait_for_the_event_behind_a_use_orders_it) {
    copy_out(copies);
    ASSERT_TRUE(order.record(copies, closing, R"(event "closing 2")"));
    order.wait(decode, closing);
    EXPECT_EQ(multiply(decode), 0u) << text;
}

TEST_F(two_streams, a_missing_wait_is_told_with_both_uses_and_the_event) {
    copy_out(copies);
    ASSERT_TRUE(order.record(copies, closing, R"(event "closing 2")"));
    ASSERT_EQ(multiply(decode), 1u);
    EXPECT_EQ(text,
              "race: matmul \"ffn_up.3\" on stream \"decode 1\" writes 0x7f0000000000+0..4096, which copy_to_host "
              "\"logits\" on stream \"copies\" read before; event \"closing 2\", recorded behind it, was not waited "
              "for\n");
}

TEST_F(two_streams, a_use_that_no_event_is_behind_is_told_as_that) {
    ASSERT_TRUE(order.record(decode, closing, R"(event "too early")"));
    multiply(decode);
    ASSERT_TRUE(order.record(decode, closing)) << "without a name, in no report";
    ASSERT_EQ(touch(copies, access::read, "copy_to_host", {}, {block + 64, 128, block}), 1u);
    EXPECT_EQ(text,
              "race: copy_to_host on stream \"copies\" reads 0x7f0000000000+64..192, which matmul \"ffn_up.3\" on "
              "stream \"decode 1\" wrote before; no event was recorded behind it\n");
}

TEST_F(two_streams, the_first_event_behind_the_use_is_named_while_it_is_among_the_last_ones) {
    vector_clock event;
    const auto work_and_record = [&](int number) {
        order.begin_work(copies);
        ASSERT_TRUE(order.record(copies, event, "event " + std::to_string(number)));
    };
    for (int i = 0; i < 40; ++i) work_and_record(i);
    copy_out(copies);
    for (int i = 40; i < 45; ++i) work_and_record(i);
    ASSERT_EQ(multiply(decode), 1u);
    EXPECT_NE(text.find("; event 40, recorded"), std::string::npos) << text;

    copy_out(copies);  // races with the write before it, and is the read that follows
    for (int i = 45; i < 100; ++i) work_and_record(i);
    ASSERT_EQ(multiply(decode), 1u);
    EXPECT_NE(text.find("; event 84, recorded"), std::string::npos) << text;
}

TEST_F(two_streams, of_records_with_no_work_between_the_first_is_named) {
    copy_out(copies);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(order.record(copies, closing, "event " + std::to_string(i)));
    ASSERT_EQ(multiply(decode), 1u);
    EXPECT_NE(text.find("; event 0, recorded"), std::string::npos) << text;
}

TEST_F(two_streams, uses_that_are_called_alike_are_told_apart_by_their_streams) {
    multiply(decode);
    ASSERT_EQ(multiply(copies), 1u);
    EXPECT_EQ(text.substr(0, text.find(" before")),
              "race: matmul \"ffn_up.3\" on stream \"copies\" writes 0x7f0000000000+0..4096, which matmul "
              "\"ffn_up.3\" on stream \"decode 1\" wrote");
}

TEST_F(two_streams, uses_of_one_kind_are_told_apart_by_what_they_are_called) {
    touch(decode, access::write, "matmul", "q", {block, 8, block});
    touch(decode, access::write, "matmul", "k", {block + 8, 8, block});
    ASSERT_EQ(touch(copies, access::read, "copy", "q", {block, 8, block}), 1u);
    EXPECT_NE(text.find("which matmul \"q\" on"), std::string::npos) << text;
    ASSERT_EQ(touch(copies, access::read, "copy", "k", {block + 8, 8, block}), 1u);
    EXPECT_NE(text.find("which matmul \"k\" on"), std::string::npos) << text;
}

TEST_F(two_streams, where_the_block_is_not_known_a_report_counts_from_the_first_byte_in_conflict) {
    touch(decode, access::write, "matmul", "x", {block + 64, 128});
    ASSERT_EQ(touch(copies, access::read, "copy", "x", {block, 4096}), 1u);
    EXPECT_NE(text.find(" reads 0x7f0000000040+0..128,"), std::string::npos) << text;
}

TEST_F(two_streams, a_record_after_the_wait_does_not_change_it) {
    ASSERT_TRUE(order.record(copies, closing, "event"));
    order.wait(decode, closing);
    copy_out(copies);
    ASSERT_TRUE(order.record(copies, closing, "event"));
    EXPECT_EQ(multiply(decode), 1u);
}

TEST_F(two_streams, a_record_that_is_replaced_orders_the_waits_made_before) {
    copy_out(copies);
    ASSERT_TRUE(order.record(copies, closing, "event"));
    order.wait(decode, closing);
    ASSERT_TRUE(order.record(decode, closing, "event"));
    EXPECT_EQ(multiply(decode), 0u) << text;
}

TEST_F(two_streams, what_is_given_to_a_stream_comes_after_what_the_host_did_and_heard) {
    EXPECT_EQ(touch(actor::host, access::write, "the host", "input"), 0u);
    EXPECT_EQ(copy_out(copies), 0u) << text;
    EXPECT_EQ(touch(actor::host, access::write, "the host", "input"), 1u);
    EXPECT_EQ(text.substr(0, text.find(", which")), "race: the host \"input\" writes 0x7f0000000000+0..4096");

    copy_out(copies);
    ASSERT_TRUE(order.record(copies, closing, "event"));
    EXPECT_FALSE(order.has_heard(decode, closing));
    order.wait(actor::host, closing);
    EXPECT_TRUE(order.has_heard(decode, closing)) << "by the host";
    EXPECT_EQ(multiply(decode), 0u) << text;
}

TEST_F(two_streams, what_the_host_does_after_it_gave_work_is_unordered_with_it) {
    copy_out(copies);
    EXPECT_EQ(touch(actor::host, access::read, "the host", "input"), 0u) << "both read";
    EXPECT_EQ(touch(actor::host, access::write, "the host", "input"), 1u);
    order.join(actor::host, copies);
    EXPECT_EQ(touch(actor::host, access::write, "the host", "input"), 0u) << text;
}

TEST_F(two_streams, a_join_is_a_wait_for_all_so_far) {
    copy_out(copies);
    order.join(decode, copies);
    EXPECT_EQ(multiply(decode), 0u) << text;
    EXPECT_EQ(copy_out(copies), 1u) << "it was one way";
}

TEST_F(two_streams, a_use_after_a_free_names_who_freed_and_who_used_whatever_orders_them) {
    const byte_range bytes{block, 4096, block};
    order.begin_work(copies);
    ASSERT_EQ(told(order.free(copies, bytes, "deallocate", "kv")), 0u);
    ASSERT_TRUE(order.record(copies, closing, "event"));
    order.wait(decode, closing);
    ASSERT_EQ(multiply(decode), 1u);
    EXPECT_EQ(text,
              "use after free: matmul \"ffn_up.3\" on stream \"decode 1\" writes 0x7f0000000000+0..4096, which "
              "deallocate \"kv\" on stream \"copies\" freed before\n");
    order.begin_work(decode);
    EXPECT_EQ(told(order.reborn(decode, bytes, "allocate")), 0u) << text;
    EXPECT_EQ(multiply(decode), 0u) << text;
    ASSERT_EQ(copy_out(copies), 1u) << "it has not heard of the new life";
    EXPECT_EQ(text.substr(0, 6), "race: ");
    order.forget(bytes);
    EXPECT_EQ(copy_out(copies), 0u) << text;
}

TEST_F(two_streams, a_text_that_does_not_fit_is_cut) {
    multiply(decode);
    order.begin_work(copies);
    const auto races = order.use(copies, {block, 1}, access::read, "copy_to_host", "logits");
    ASSERT_EQ(races.size(), 1u);
    std::array<char, 20> into{};
    EXPECT_EQ(order.describe(races[0], into), "race: copy_to_host \"");
    EXPECT_EQ(order.describe(races[0], {}), "");
}

TEST_F(two_streams, the_number_of_a_retired_stream_returns_once_the_host_has_heard_of_all_its_work) {
    multiply(decode);
    ASSERT_TRUE(order.record(decode, closing, "event"));
    order.begin_work(decode);
    order.retire(decode);
    EXPECT_EQ(multiply(copies), 1u) << "what a retired stream did still counts";
    order.wait(actor::host, closing);
    const actor other = order.add_stream("stream 3");
    EXPECT_NE(other, decode) << "its last work may still run";
    order.join(actor::host, decode);
    EXPECT_EQ(order.add_stream("stream 4"), decode);
    EXPECT_EQ(copy_out(decode), 1u) << "a new stream has heard of the host's alone, not of copies";
    EXPECT_NE(text.find(" on stream 4 reads"), std::string::npos) << text;
}

TEST_F(two_streams, streams_that_come_and_go_take_no_more_and_more) {
    actor last{};
    for (int i = 0; i < 1000; ++i) {
        last = order.add_stream("stream");
        multiply(last);
        order.join(actor::host, last);
        order.retire(last);
    }
    EXPECT_EQ(static_cast<int>(last), 3);
}

TEST_F(two_streams, names_nobody_refers_to_any_more_go) {
    multiply(decode);
    ASSERT_TRUE(order.record(decode, closing, R"(event "of a name that is on the heap")"));
    for (int i = 0; i < 100'000; ++i) {
        order.begin_work(copies);
        order.use(copies, {1, 1}, access::write, "step", std::to_string(i));
        EXPECT_LE(order.live_labels(), 1024u);
    }
    ASSERT_EQ(copy_out(copies), 1u);
    EXPECT_EQ(text.substr(text.find("which")),
              "which matmul \"ffn_up.3\" on stream \"decode 1\" wrote before; event \"of a name that is on the heap\", "
              "recorded behind it, was not waited for\n");
    EXPECT_EQ(order.live_ranges(), 2u);
}

TEST_F(two_streams, a_loop_takes_no_heap_after_its_first_round) {
    const auto round = [&] {
        multiply(decode);
        ASSERT_TRUE(order.record(decode, closing, "event"));
        order.wait(copies, closing);
        copy_out(copies);
        ASSERT_TRUE(order.record(copies, closing, "event"));
        order.wait(decode, closing);
        ASSERT_EQ(text, "");
    };
    round();
    heap_left = 1'000'000;
    for (int i = 0; i < 1000; ++i) round();
    const int taken = 1'000'000 - heap_left;
    heap_left = -1;
    EXPECT_EQ(taken, 0);
}

TEST_F(two_streams, without_heap_a_record_fails_and_a_stream_is_not_made_and_no_race_is_made_up) {
    multiply(decode);
    heap_left = 0;
    const bool recorded = order.record(decode, closing, "event");
    EXPECT_THROW(static_cast<void>(order.add_stream("a stream whose name does not fit into the string itself")),
                 std::bad_alloc);
    heap_left = -1;
    EXPECT_FALSE(recorded);
    EXPECT_TRUE(order.has_heard(copies, closing)) << "it stands behind nothing";

    ASSERT_TRUE(order.record(decode, closing, "event"));
    order.wait(copies, closing);
    heap_left = 0;
    order.begin_work(copies);
    const std::size_t races = order.use(copies, {block + 1, 1}, access::read, "peek", "never named").size();
    heap_left = -1;
    EXPECT_EQ(races, 0u);
    const actor third = order.add_stream("stream 3");
    EXPECT_EQ(multiply(third), 0u) << "what is not known is no race: " << text;
    EXPECT_EQ(multiply(copies), 1u);
}

// --- against a model that keeps for each byte every use and for each actor every work it has heard of

constexpr std::size_t most_works = 4096;
constexpr std::uintptr_t bytes_in_all = 48;

class plain_order {
public:
    using works = std::bitset<most_works>;

    struct byte_state {
        std::size_t write = most_works;  // none
        bool free = false;
        std::vector<std::size_t> reads;
    };

    std::size_t begin_work(std::size_t a) {
        if (a != 0) heard[a] |= heard[0];
        heard[a].set(past.size());
        past.push_back(heard[a]);
        return past.size() - 1;
    }
    /// The works in conflict, for each byte from `begin`.
    std::vector<std::vector<std::size_t>> use(std::size_t work, use_kind does, std::uintptr_t begin,
                                              std::uintptr_t end) {
        std::vector<std::vector<std::size_t>> conflicts;
        for (std::uintptr_t at = begin; at < end; ++at) {
            byte_state& b = bytes[at];
            auto& here = conflicts.emplace_back();
            if (b.free && does != use_kind::allocate) {
                here.push_back(b.write);
                continue;
            }
            if (b.write != most_works && !past[work][b.write]) here.push_back(b.write);
            if (does == use_kind::read) {
                b.reads.push_back(work);
                continue;
            }
            for (const std::size_t read : b.reads) {
                if (!past[work][read]) here.push_back(read);
            }
            b = {.write = work, .free = does == use_kind::free, .reads = {}};
        }
        return conflicts;
    }

    std::vector<works> heard;  // by actor
    std::vector<works> past;   // of each work, itself among it
    std::array<byte_state, bytes_in_all> bytes;
};

/// Random works of the host and four streams, with random waits; streams go and others come.
class random_program {
public:
    explicit random_program(std::uint32_t seed) : random_(seed) {
        model_.heard.resize(1);
        for (int i = 0; i < 4; ++i) add_stream();
    }

    void step() {
        const std::size_t event = pick(events_.size());
        const std::size_t stream = 1 + pick(4);
        const std::size_t what = pick(160);
        if (what < 45) record(stream, event);
        else if (what < 100) wait(stream, event);
        else if (what < 105) wait(0, event);
        else if (what < 110) join(pick(5), stream);
        else if (what < 112) replace_stream(stream);
        else if (what < 115) forget();
        else work(pick(5));
    }

    std::size_t works() const { return model_.past.size(); }
    std::size_t uses = 0;
    std::size_t uses_with_races = 0;

private:
    std::size_t pick(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }

    void add_stream() {
        actors_.push_back(order_.add_stream("stream"));
        model_.heard.push_back(model_.heard[0]);
    }
    void replace_stream(std::size_t a) {
        order_.retire(actors_[a]);
        actors_[a] = order_.add_stream("stream");
        model_.heard[a] = model_.heard[0];
    }
    std::pair<std::uintptr_t, std::uintptr_t> range() {
        const std::uintptr_t begin = pick(bytes_in_all);
        return {begin, begin + 1 + pick(std::min<std::size_t>(12, bytes_in_all - begin))};
    }
    void forget() {
        const auto [begin, end] = range();
        order_.forget({1 + begin, end - begin});
        for (std::uintptr_t at = begin; at < end; ++at) model_.bytes[at] = {};
    }

    void record(std::size_t a, std::size_t event) {
        ASSERT_TRUE(order_.record(actors_[a], events_[event], "event"));
        model_events_[event] = model_.heard[a];
    }
    void wait(std::size_t a, std::size_t event) {
        const bool heard = (model_events_[event] & ~(model_.heard[a] | model_.heard[0])).none();
        EXPECT_EQ(order_.has_heard(actors_[a], events_[event]), heard);
        order_.wait(actors_[a], events_[event]);
        model_.heard[a] |= model_events_[event];
    }
    void join(std::size_t later, std::size_t earlier) {
        order_.join(actors_[later], actors_[earlier]);
        model_.heard[later] |= model_.heard[earlier];
    }
    void work(std::size_t a) {
        order_.begin_work(actors_[a]);
        const std::size_t number = model_.begin_work(a);
        work_of_[{actors_[a], ++ticks_[actors_[a]]}] = number;
        for (std::size_t uses_left = 1 + pick(2); uses_left != 0; --uses_left) use(a, number);
    }
    void use(std::size_t a, std::size_t number) {
        const auto [begin, end] = range();
        const std::size_t what = pick(60);
        const use_kind does = what < 36   ? use_kind::read
                              : what < 57 ? use_kind::write
                              : what < 58 ? use_kind::free
                                          : use_kind::allocate;
        const byte_range bytes{1 + begin, end - begin};
        const auto found = does == use_kind::free       ? order_.free(actors_[a], bytes, "free")
                           : does == use_kind::allocate ? order_.reborn(actors_[a], bytes, "allocate")
                           : does == use_kind::read     ? order_.use(actors_[a], bytes, access::read, "read")
                                                        : order_.use(actors_[a], bytes, access::write, "write");
        const auto conflicts = model_.use(number, does, begin, end);
        ++uses;
        if (!found.empty()) ++uses_with_races;
        for (const race& r : found) EXPECT_EQ(r.later.who, actors_[a]);
        check(found, begin, conflicts);
    }

    /// Every race is one in each of its bytes, and every conflict is behind some race's earlier use.
    void check(std::span<const race> found, std::uintptr_t begin,
               const std::vector<std::vector<std::size_t>>& conflicts) const {
        for (const race& r : found) {
            for (std::uintptr_t at = r.where.begin; at < r.where.begin + r.where.bytes; ++at) {
                const auto& here = conflicts.at(at - 1 - begin);
                EXPECT_NE(std::find(here.begin(), here.end(), work_of(r.earlier)), here.end());
            }
        }
        for (const auto& here : conflicts) {
            for (const std::size_t conflict : here) {
                EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                                        [&](const race& r) { return model_.past[work_of(r.earlier)][conflict]; }));
            }
        }
    }
    std::size_t work_of(const memory_use& use) const { return work_of_.at({use.who, use.at}); }

    std::mt19937 random_;
    class order order_;
    plain_order model_;
    std::vector<actor> actors_{actor::host};
    std::array<vector_clock, 4> events_;
    std::array<plain_order::works, 4> model_events_;
    std::map<actor, tick> ticks_;
    std::map<std::pair<actor, tick>, std::size_t> work_of_;
};

TEST(order, finds_what_a_model_with_every_use_of_every_byte_finds) {
    for (std::uint32_t seed = 1; seed <= 6 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        random_program program(seed);
        while (program.works() < most_works && !::testing::Test::HasFailure()) program.step();
        EXPECT_GT(program.uses_with_races, program.uses / 5);
        EXPECT_LT(program.uses_with_races, program.uses * 4 / 5);
    }
}

}  // namespace
}  // namespace alloclab::device
