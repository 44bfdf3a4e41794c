// What the kernels' tests stand on: random leaves in several layouts, each tensor in a block of exactly its size, and
// comparison with a reference in double.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/graph.hpp"
#include "alloclab/tensor/kernels.hpp"
#include "alloclab/tensor/ops.hpp"

namespace alloclab::tensor::test {

/// The relative error of one rounding to float.
inline constexpr double unit = 0x1p-24;

/// How a leaf lies in memory: contiguous; dimensions 0 and 1 exchanged; dimensions 1 and 2 exchanged; or a part of
/// something larger.
enum class layout { plain, transposed, permuted, sliced };
inline constexpr std::array layouts{layout::plain, layout::transposed, layout::permuted, layout::sliced};
/// Those whose rows are contiguous.
inline constexpr std::array row_layouts{layout::plain, layout::permuted, layout::sliced};

struct bound {
    double value;
    double tolerance;
};
using index = std::array<std::int64_t, 4>;

class kernel_test : public ::testing::Test {
protected:
    tensor* leaf(type t, shape s, layout l = layout::plain, float range = 1) {
        const auto [a, b, d, e] = s.ne;
        switch (l) {
            case layout::transposed:
                return transpose(c, leaf(t, {b, a, d, e}, layout::plain, range));
            case layout::permuted:
                return permute(c, leaf(t, {a, d, b, e}, layout::plain, range), {0, 2, 1, 3});
            case layout::sliced: {
                tensor* whole = leaf(t, {a + 3, b + 1, d + 2, e}, layout::plain, range);
                return view(c, whole, s, {whole->nb[1], whole->nb[2], whole->nb[3]}, bytes_of(t) + whole->nb[1]);
            }
            case layout::plain:
                break;
        }
        std::uniform_real_distribution<float> uniform(-range, range);
        if (t == type::f16) return leaf_of<std::uint16_t>(t, s, [&](std::size_t) { return to_half(uniform(random_)); });
        if (t == type::f32) return leaf_of<float>(t, s, [&](std::size_t) { return uniform(random_); });
        return leaf_of<std::int32_t>(t, s, [&](std::size_t) { return static_cast<std::int32_t>(random_() % 5); });
    }
    /// Element i of the leaf is value(i).
    template <class T, class Value>
    tensor* leaf_of(type t, shape s, Value value) {
        tensor* made = c.new_tensor(t, s);
        std::vector<std::byte>& bytes = contents_[made];
        bytes.resize(made->bytes());
        for (std::size_t i = 0; i < made->elements(); ++i) {
            const T element = value(i);
            std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
        }
        return made;
    }

    /// Computes `t` with all data `shift` bytes behind a cache line; what is not written stays NaN.
    tensor* run(tensor* t, std::size_t shift = 0) {
        graph* g = c.new_graph(16);
        g->expand(t);
        for (const auto& [made, bytes] : contents_)
            if (!bytes.empty()) std::memcpy(give(*made, shift), bytes.data(), bytes.size());
        for (tensor* node : g->nodes()) {
            if (node->is_alias()) {
                const tensor& seen = *node->sources[node->op == op::copy ? 1 : 0];
                node->data = static_cast<std::byte*>(seen.data) + (node->op == op::copy ? 0 : node->params.offset);
            } else {
                std::memset(give(*node, shift), 0xff, node->bytes());
            }
            compute(*node);
        }
        return t;
    }

    static double at(const tensor& t, const index& i) {
        const auto* p = static_cast<const std::byte*>(t.data);
        for (std::size_t d = 0; d < 4; ++d) p += static_cast<std::size_t>(i[d]) * t.nb[d];
        if (t.type == type::f16) return static_cast<double>(to_float(read<std::uint16_t>(p)));
        return t.type == type::f32 ? static_cast<double>(read<float>(p)) : read<std::int32_t>(p);
    }
    static double at(const tensor* t, std::int64_t a, std::int64_t b = 0, std::int64_t d = 0, std::int64_t e = 0) {
        return at(*t, {a, b, d, e});
    }

    template <class Visit>
    static void each(const tensor& t, Visit visit) {
        for (index i{0, 0, 0, 0}; i[3] < t.ne[3]; ++i[3])
            for (i[2] = 0; i[2] < t.ne[2]; ++i[2])
                for (i[1] = 0; i[1] < t.ne[1]; ++i[1])
                    for (i[0] = 0; i[0] < t.ne[0]; ++i[0]) visit(i);
    }

    /// Computes `t` and compares each element with expected(index), which returns a bound.
    template <class Expected>
    void expect(tensor* t, layout l, Expected expected) {
        run(t);
        std::size_t wrong = 0;
        each(*t, [&](const index& i) {
            const auto [value, tolerance] = expected(i);
            if (std::abs(at(*t, i) - value) <= tolerance || wrong > 3) return;
            ++wrong;
            ADD_FAILURE() << name_of(t->op) << " " << ::testing::PrintToString(t->ne) << ", layout "
                          << static_cast<int>(l) << ", at " << ::testing::PrintToString(i) << ": " << at(*t, i)
                          << " instead of " << value << " +- " << tolerance;
        });
    }

    /// The elements as they lie in memory, in element order.
    static std::vector<std::uint32_t> bits(const tensor& t) {
        std::vector<std::uint32_t> all;
        each(t, [&](const index& i) {
            const auto* p = static_cast<const std::byte*>(t.data);
            for (std::size_t d = 0; d < 4; ++d) p += static_cast<std::size_t>(i[d]) * t.nb[d];
            all.push_back(t.type == type::f16 ? read<std::uint16_t>(p) : read<std::uint32_t>(p));
        });
        return all;
    }

    malloc_source source;
    context c{{.growing = growth{}}, any_source(source)};

private:
    static constexpr std::align_val_t line{64};
    struct free_line {
        void operator()(std::byte* block) const { ::operator delete(block, line); }
    };

    template <class T>
    static T read(const std::byte* p) {
        T value;
        std::memcpy(&value, p, sizeof(T));
        return value;
    }
    // The block ends where the tensor does, so that a sanitizer sees a read past it.
    void* give(tensor& t, std::size_t shift) {
        auto* block = static_cast<std::byte*>(::operator new(shift + t.bytes(), line));
        blocks_.emplace_back(block);
        t.data = block + shift;
        return t.data;
    }

    std::map<tensor*, std::vector<std::byte>> contents_;
    std::vector<std::unique_ptr<std::byte, free_line>> blocks_;
    std::mt19937 random_{7};
};

}  // namespace alloclab::tensor::test
