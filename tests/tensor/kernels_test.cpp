// Kernels against straightforward references in double. Each tolerance bounds the roundings of the kernel's own float
// arithmetic; sources are compared as they are after conversion, so that half weights add nothing.
#include "alloclab/tensor/kernels.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels_support.hpp"

namespace alloclab::tensor::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::array<shape, 6> shapes{shape{1}, {3, 1, 2}, {17, 3}, {33, 5, 2, 3}, {64, 2}, {131, 1, 1, 2}};

double real(std::int64_t n) { return static_cast<double>(n); }

/// Of a dot product of `n` terms with 8 chains and 3 joins: each term sees its product and n/8 + 4 additions rounded.
double dot_tolerance(std::int64_t n, double magnitude) { return (real(n) / 8 + 6) * unit * magnitude; }

double half_value(unsigned half) {
    const int exponent = static_cast<int>(half >> 10 & 31);
    const double mantissa = half & 1023;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}
bool is_special(unsigned half) { return (half >> 10 & 31) == 31; }

TEST(halves, every_half_has_its_value_and_comes_back) {
    for (unsigned h = 0; h < 65536; ++h) {
        const auto half = static_cast<std::uint16_t>(h);
        const float value = to_float(half);
        if (!is_special(h)) {
            ASSERT_EQ(static_cast<double>(value), half_value(h)) << h;
            ASSERT_EQ(std::signbit(value), h >= 0x8000) << h;
            ASSERT_EQ(to_half(value), half) << h;
        } else if ((h & 1023) == 0) {
            ASSERT_EQ(value, h < 0x8000 ? infinity : -infinity);
            ASSERT_EQ(to_half(value), half);
        } else {
            ASSERT_TRUE(std::isnan(value)) << h;
            ASSERT_EQ(to_half(value), half | 0x200U) << "a NaN keeps its sign and payload and turns quiet";
        }
    }
}

TEST(halves, rounding_is_to_nearest_and_ties_go_to_even) {
    for (unsigned h = 0; h < 0x7bff; ++h) {
        const auto middle = static_cast<float>((half_value(h) + half_value(h + 1)) / 2);
        for (const unsigned sign : {0U, 0x8000U}) {
            const auto rounded = [&](float value) { return to_half(sign == 0 ? value : -value) ^ sign; };
            ASSERT_EQ(rounded(middle), h % 2 == 0 ? h : h + 1) << h;
            ASSERT_EQ(rounded(std::nextafter(middle, 0.0F)), h) << h;
            ASSERT_EQ(rounded(std::nextafter(middle, infinity)), h + 1) << h;
        }
    }
}

TEST(halves, overflow_gives_infinity_and_underflow_a_signed_zero) {
    EXPECT_EQ(to_half(65504.0F), 0x7bff);
    EXPECT_EQ(to_half(std::nextafter(65520.0F, 0.0F)), 0x7bff);
    EXPECT_EQ(to_half(65520.0F), 0x7c00);
    EXPECT_EQ(to_half(-1e38F), 0xfc00);
    EXPECT_EQ(to_half(0x1p-25F), 0) << "half of the smallest, a tie";
    EXPECT_EQ(to_half(std::nextafter(0x1p-25F, 1.0F)), 1);
    EXPECT_EQ(to_half(-1e-30F), 0x8000);
    EXPECT_EQ(to_half(std::numeric_limits<float>::denorm_min()), 0);
    EXPECT_EQ(to_half(-0.0F), 0x8000);
    EXPECT_GT(to_half(std::bit_cast<float>(0x7f800001U)), 0x7c00) << "a NaN whose payload is cut off stays a NaN";
}

using kernels = kernel_test;

TEST_F(kernels, bulk_conversion_of_halves_agrees_with_the_conversion_of_one) {
    for (const std::int64_t first : {0, 1, 2, 3}) {  // each half in each place of a vector
        const std::int64_t n = 65536 - first;
        tensor* halves = leaf_of<std::uint16_t>(type::f16, {n}, [&](std::size_t i) {
            return static_cast<std::uint16_t>(i + static_cast<std::size_t>(first));
        });
        tensor* floats = run(copy(c, halves, leaf(type::f32, {n})));
        const auto seen = bits(*floats);
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const auto half = static_cast<std::uint16_t>(i + static_cast<std::size_t>(first));
            ASSERT_EQ(seen[i], std::bit_cast<std::uint32_t>(to_float(half))) << half;
        }
    }
}

TEST_F(kernels, get_rows_picks_rows_of_either_float_type) {
    for (const type t : {type::f32, type::f16})
        for (const layout l : {layout::plain, layout::transposed, layout::sliced}) {
            tensor* table = leaf(t, {33, 5}, l);
            tensor* ids = view(c, leaf(type::i32, {2, 7}), {1, 7}, {8, 56, 56}, 4);
            tensor* every_other = permute(c, ids, {1, 0, 2, 3});
            expect(get_rows(c, table, every_other), l, [&](const index& i) {
                return bound{at(table, i[0], static_cast<std::int64_t>(at(every_other, i[1]))), 0};
            });
        }
}

TEST_F(kernels, get_rows_answers_an_id_outside_the_table_with_nan) {
    const std::array<std::int32_t, 4> given{-1, 2, 3, std::numeric_limits<std::int32_t>::min()};
    tensor* ids = leaf_of<std::int32_t>(type::i32, {4}, [&](std::size_t i) { return given[i]; });
    tensor* t = run(get_rows(c, leaf(type::f16, {5, 3}), ids));
    for (std::int64_t row = 0; row < 4; ++row)
        for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(at(t, i, row)), row != 1);
}

TEST_F(kernels, add_and_mul_repeat_the_second) {
    const shape whole{12, 6, 4, 2};
    for (const shape& part : {whole, shape{12}, shape{1}, shape{4, 3, 2}, shape{1, 6}, shape{12, 1, 4, 1}})
        for (const layout la : layouts)
            for (const layout lb : layouts) {
                tensor* a = leaf(type::f32, whole, la);
                tensor* b = leaf(type::f32, part, lb);
                const auto y = [&](const index& i) {
                    return at(b, i[0] % b->ne[0], i[1] % b->ne[1], i[2] % b->ne[2], i[3] % b->ne[3]);
                };
                expect(add(c, a, b), la, [&](const index& i) {
                    const double value = at(*a, i) + y(i);
                    return bound{value, unit * std::abs(value)};
                });
                expect(mul(c, a, b), la, [&](const index& i) {
                    const double value = at(*a, i) * y(i);
                    return bound{value, unit * std::abs(value)};
                });
            }
}

TEST_F(kernels, scale_multiplies_each_element) {
    for (const shape& s : shapes)
        for (const layout l : layouts) {
            tensor* a = leaf(type::f32, s, l);
            expect(scale(c, a, -0.3F), l, [&](const index& i) {
                const double value = static_cast<double>(-0.3F) * at(*a, i);
                return bound{value, unit * std::abs(value)};
            });
        }
}

// An argument u of exp that is off by some units in its last place moves the result by as many times u.
TEST_F(kernels, silu_and_gelu_follow_their_formulas) {
    for (const shape& s : shapes)
        for (const layout l : layouts) {
            tensor* a = leaf(type::f32, s, l, 9);
            expect(silu(c, a), l, [&](const index& i) {
                const double x = at(*a, i), value = x / (1 + std::exp(-x));
                return bound{value, 6 * unit * std::abs(value)};
            });
            expect(gelu(c, a), l, [&](const index& i) {
                const double x = at(*a, i), u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
                const double value = x * (u < 0 ? 1 / (1 + std::exp(-2 * u)) : 0.5 * (1 + std::tanh(u)));
                return bound{value, (10 + 12 * std::abs(u)) * unit * std::abs(value)};
            });
        }
}

TEST_F(kernels, silu_and_gelu_stay_finite_far_out) {
    const std::array<float, 4> given{-3e4F, -200, 200, 3e4F};
    tensor* a = leaf_of<float>(type::f32, {4}, [&](std::size_t i) { return given[i]; });
    for (tensor* t : {silu(c, a), gelu(c, a)})
        expect(t, layout::plain, [&](const index& i) { return bound{std::max(0.0, at(*a, i)), 0}; });
}

TEST_F(kernels, norms_centre_and_scale_each_row) {
    constexpr float eps = 1e-3F;
    for (const shape& s : shapes)
        for (const layout l : layouts) {
            tensor* a = leaf(type::f32, s, l);
            const double n = real(s.ne[0]);
            expect(rms_norm(c, a, eps), l, [&](const index& i) {
                double squares = 0;
                for (std::int64_t k = 0; k < s.ne[0]; ++k) squares += std::pow(at(a, k, i[1], i[2], i[3]), 2);
                const double value = at(*a, i) / std::sqrt(squares / n + static_cast<double>(eps));
                return bound{value, 3 * unit * std::abs(value)};
            });
            expect(layer_norm(c, a, eps), l, [&](const index& i) {
                double mean = 0, squares = 0;
                for (std::int64_t k = 0; k < s.ne[0]; ++k) mean += at(a, k, i[1], i[2], i[3]) / n;
                for (std::int64_t k = 0; k < s.ne[0]; ++k) squares += std::pow(at(a, k, i[1], i[2], i[3]) - mean, 2);
                const double value = (at(*a, i) - mean) / std::sqrt(squares / n + static_cast<double>(eps));
                return bound{value, 2 * unit * std::abs(value) + 1e-12};
            });
        }
}

TEST_F(kernels, layer_norm_of_a_large_offset_keeps_the_deviation) {
    tensor* a = leaf_of<float>(type::f32, {101}, [](std::size_t i) { return 1e6F + static_cast<float>(i); });
    const double deviation = std::sqrt(850.0);  // of 0 to 100
    expect(layer_norm(c, a, 0), layout::plain, [&](const index& i) {
        const double value = real(i[0] - 50) / deviation;
        return bound{value, 2 * unit * std::abs(value) + 1e-9};
    });
}

TEST_F(kernels, rope_turns_pairs_half_the_dimensions_apart) {
    const std::array<std::int32_t, 3> given{0, 1000, -7};
    tensor* positions = leaf_of<std::int32_t>(type::i32, {3}, [&](std::size_t i) { return given[i]; });
    for (const auto& [d, turned] : {std::pair{6, 6}, {7, 4}, {5, 0}, {160, 150}})
        for (const layout l : layouts) {
            tensor* a = leaf(type::f32, {d, 5, 3}, l);
            expect(rope(c, a, positions, turned, 500.0F), l, [&, n = turned](const index& i) {
                const double x = at(*a, i);
                if (i[0] >= n) return bound{x, 0};
                const bool low = i[0] < n / 2;
                const double other = at(a, low ? i[0] + n / 2 : i[0] - n / 2, i[1], i[2]);
                const double angle = at(positions, i[2]) * std::pow(500.0, -2.0 * real(i[0] % (n / 2)) / n);
                const double value = x * std::cos(angle) + (low ? -other : other) * std::sin(angle);
                return bound{value, 4 * unit * (std::abs(x) + std::abs(other))};
            });
        }
}

TEST_F(kernels, softmax_of_scaled_and_masked_rows) {
    constexpr float factor = 3.0F;
    for (const shape& s : shapes)
        for (const layout l : layouts)
            for (const bool masked : {false, true}) {
                tensor* a = leaf(type::f32, s, l, 5);
                tensor* mask = masked ? leaf(type::f32, {s.ne[0], s.ne[1]}, l, 4) : nullptr;
                expect(softmax(c, a, mask, factor), l, [&](const index& i) {
                    const auto exponent = [&](std::int64_t k) {
                        return static_cast<double>(factor) * at(a, k, i[1], i[2], i[3]) +
                               (masked ? at(mask, k, i[1]) : 0);
                    };
                    double sum = 0;
                    for (std::int64_t k = 0; k < s.ne[0]; ++k) sum += std::exp(exponent(k));
                    const double value = std::exp(exponent(i[0])) / sum;
                    return bound{value, 4 * (15 + 4 + 19) * unit * value};  // three roundings of at most 38, then exp
                });
            }
}

TEST_F(kernels, softmax_gives_masked_places_nothing_and_a_wholly_masked_row_zeros) {
    tensor* a = leaf(type::f32, {5, 3, 2});
    tensor* mask = leaf_of<float>(
        type::f32, {5, 3}, [](std::size_t i) { return i / 5 == 1 || (i / 5 == 2 && i % 5 != 3) ? -infinity : 0.0F; });
    tensor* t = run(softmax(c, a, mask, 1));
    for (std::int64_t head = 0; head < 2; ++head)
        for (std::int64_t i = 0; i < 5; ++i) {
            EXPECT_GT(at(t, i, 0, head), 0);
            EXPECT_EQ(at(t, i, 1, head), 0);
            EXPECT_EQ(at(t, i, 2, head), i == 3 ? 1 : 0);
        }
}

TEST_F(kernels, softmax_neither_overflows_nor_hides_a_nan) {
    const std::array<float, 6> given{3e38F, -3e38F, 3e38F, 1, std::nanf(""), -infinity};
    tensor* t = run(softmax(c, leaf_of<float>(type::f32, {3, 2}, [&](std::size_t i) { return given[i]; }), nullptr, 1));
    EXPECT_EQ(at(t, 0), 0.5);
    EXPECT_EQ(at(t, 1), 0);
    EXPECT_EQ(at(t, 2), 0.5);
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(at(t, i, 1)));
}

TEST_F(kernels, matmul_multiplies_rows_of_both) {
    for (const std::int64_t k : {1, 3, 8, 17, 33, 128, 300})
        for (const std::int64_t n : {1, 2, 3, 17, 33})
            for (const std::int64_t m : {1, 2, 17, 35})
                for (const type t : {type::f32, type::f16}) {
                    const layout l = row_layouts[static_cast<std::size_t>(k + n + m) % row_layouts.size()];
                    tensor* w = leaf(t, {k, n}, l);
                    tensor* x = leaf(type::f32, {k, m}, l);
                    expect(matmul(c, w, x), l, [&](const index& i) {
                        double sum = 0, magnitude = 0;
                        for (std::int64_t j = 0; j < k; ++j) {
                            const double product = at(w, j, i[0]) * at(x, j, i[1]);
                            sum += product;
                            magnitude += std::abs(product);
                        }
                        return bound{sum, dot_tolerance(k, magnitude)};
                    });
                }
}

TEST_F(kernels, matmul_shares_weights_between_the_queries_of_a_group) {
    for (const type t : {type::f32, type::f16})
        for (const layout l : row_layouts) {
            tensor* w = leaf(t, {19, 5, 2, 1}, l);
            tensor* x = leaf(type::f32, {19, 3, 6, 2}, l);
            expect(matmul(c, w, x), l, [&](const index& i) {
                double sum = 0, magnitude = 0;
                for (std::int64_t j = 0; j < 19; ++j) {
                    const double product = at(w, j, i[0], i[2] / 3) * at(x, j, i[1], i[2], i[3]);
                    sum += product;
                    magnitude += std::abs(product);
                }
                return bound{sum, dot_tolerance(19, magnitude)};
            });
        }
}

TEST_F(kernels, an_element_of_a_product_has_the_same_bits_wherever_it_stands_in_it) {
    constexpr std::int64_t k = 301, n = 35, m = 35;
    for (const type t : {type::f32, type::f16}) {
        tensor* w = leaf(t, {k, n});
        tensor* x = leaf(type::f32, {k, m});
        const auto whole = bits(*run(matmul(c, w, x)));
        for (std::int64_t i = 0; i < n; i += 5)
            for (std::int64_t j = 0; j < m; ++j) {
                tensor* row = view(c, w, {k}, static_cast<std::size_t>(i) * w->nb[1]);
                tensor* column = view(c, x, {k}, static_cast<std::size_t>(j) * x->nb[1]);
                ASSERT_EQ(bits(*run(matmul(c, row, column)))[0], whole[static_cast<std::size_t>(j * n + i)]);
            }
    }
}

TEST_F(kernels, conv1d_slides_the_kernel_over_the_padded_signal) {
    for (const std::int64_t width : {1, 3, 4})
        for (const std::int64_t in : {1, 3, 50})
            for (const auto& [stride, padding] : {std::pair{1, 1}, {2, 1}, {3, 0}, {1, 5}})
                for (const type t : {type::f32, type::f16}) {
                    const layout l = layouts[static_cast<std::size_t>(width + in + stride) % layouts.size()];
                    tensor* kernel = leaf(t, {width, in, 19});
                    tensor* signal = leaf(type::f32, {37, in}, l);
                    tensor* result = conv1d(c, kernel, signal, stride, padding);
                    ASSERT_EQ(result->ne[0], (37 + 2 * padding - width) / stride + 1);
                    expect(result, l, [&, stride = stride, padding = padding](const index& i) {
                        double sum = 0, magnitude = 0;
                        for (std::int64_t channel = 0; channel < in; ++channel)
                            for (std::int64_t tap = 0; tap < width; ++tap) {
                                const std::int64_t place = i[0] * stride + tap - padding;
                                if (place < 0 || place >= 37) continue;
                                const double product = at(kernel, tap, channel, i[1]) * at(signal, place, channel);
                                sum += product;
                                magnitude += std::abs(product);
                            }
                        return bound{sum, dot_tolerance(width * in, magnitude)};
                    });
                }
}

TEST_F(kernels, cont_lays_out_any_view_in_element_order) {
    for (const type t : {type::f32, type::f16, type::i32})
        for (const shape& s : shapes)
            for (const layout l : layouts) {
                tensor* a = leaf(t, s, l);
                tensor* laid_out = cont(c, a);
                EXPECT_TRUE(laid_out->contiguous());
                expect(laid_out, l, [&](const index& i) { return bound{at(*a, i), 0}; });
            }
}

TEST_F(kernels, copy_converts_and_keeps_element_order_between_shapes) {
    for (const type from : {type::f32, type::f16})
        for (const type to : {type::f32, type::f16})
            for (const layout la : layouts)
                for (const layout lb : layouts) {
                    tensor* a = leaf(from, {6, 5, 4}, la);
                    tensor* b = leaf(to, {10, 3, 2, 2}, lb);
                    tensor* t = run(copy(c, a, b));
                    std::vector<double> expected;
                    each(*a, [&](const index& i) {
                        const double x = at(*a, i);
                        expected.push_back(to == type::f16 ? half_value(to_half(static_cast<float>(x))) : x);
                    });
                    std::size_t next = 0;
                    each(*t, [&](const index& i) { ASSERT_EQ(at(*b, i), expected[next++]); });
                }
}

TEST_F(kernels, copy_writes_nothing_beside_what_it_is_given) {
    tensor* cache = leaf_of<std::uint16_t>(type::f16, {8, 4}, [](std::size_t) { return to_half(2); });
    tensor* part = view(c, cache, {3, 2}, {2 * cache->nb[1], cache->nb[2], cache->nb[3]}, 2 * cache->nb[0]);
    tensor* t = run(copy(c, leaf(type::f32, {2, 3}), part));
    EXPECT_EQ(t->data, part->data);
    each(*cache, [&](const index& i) {
        const bool inside = i[0] >= 2 && i[0] < 5 && i[1] % 2 == 0;
        EXPECT_EQ(at(*cache, i) == 2, !inside) << i[0] << ", " << i[1];
    });
}

TEST_F(kernels, concat_joins_along_any_dimension) {
    for (const type t : {type::f32, type::f16, type::i32})
        for (std::int32_t d = 0; d < 4; ++d)
            for (const layout l : layouts) {
                const auto along = static_cast<std::size_t>(d);
                shape longer{5, 4, 3, 2};
                longer.ne[along] += 2;
                tensor* a = leaf(t, {5, 4, 3, 2}, l);
                tensor* b = leaf(t, longer, l);
                expect(concat(c, a, b, d), l, [&](const index& i) {
                    index in_b = i;
                    in_b[along] -= a->ne[along];
                    return bound{in_b[along] < 0 ? at(*a, i) : at(*b, in_b), 0};
                });
            }
}

TEST_F(kernels, a_tensor_with_a_dimension_of_0_is_computed_by_doing_nothing) {
    tensor* none = leaf(type::f32, {0, 3});
    tensor* no_rows = leaf(type::f32, {5, 0});
    tensor* no_ids = leaf(type::i32, {0});
    for (tensor* t :
         {add(c, none, leaf(type::f32, {1})), mul(c, none, none),
          matmul(c, leaf(type::f32, {4, 2, 0}), leaf(type::f32, {4, 3, 0})), scale(c, no_rows, 2), rms_norm(c, none, 0),
          layer_norm(c, no_rows, 0), softmax(c, none, nullptr, 1), silu(c, none), gelu(c, no_rows),
          get_rows(c, leaf(type::f16, {5, 3}), no_ids), rope(c, leaf(type::f32, {4, 2, 0}), no_ids, 4, 10),
          matmul(c, leaf(type::f16, {5, 3}), no_rows), matmul(c, no_rows, leaf(type::f32, {5, 3})),
          conv1d(c, leaf(type::f32, {3, 2, 0}), leaf(type::f32, {9, 2}), 1, 1), cont(c, transpose(c, none)),
          copy(c, none, leaf(type::f16, {3, 0})), concat(c, no_rows, no_rows, 1), reshape(c, none, {7, 0})})
        EXPECT_EQ(run(t)->elements(), 0u) << name_of(t->op);
}

TEST_F(kernels, a_sum_over_nothing_is_0) {
    const auto zero = [](const index&) { return bound{0, 0}; };
    expect(matmul(c, leaf(type::f32, {0, 3}), leaf(type::f32, {0, 2})), layout::plain, zero);
    expect(conv1d(c, leaf(type::f32, {3, 0, 2}), leaf(type::f32, {9, 0}), 1, 1), layout::plain, zero);
    expect(conv1d(c, leaf(type::f32, {3, 2, 2}), leaf(type::f32, {0, 2}), 1, 2), layout::plain, zero);
}

TEST_F(kernels, joining_with_an_empty_tensor_keeps_the_other) {
    tensor* some = leaf(type::f32, {5, 2});
    const auto same = [&](const index& i) { return bound{at(*some, i), 0}; };
    expect(concat(c, some, leaf(type::f32, {5, 0}), 1), layout::plain, same);
    expect(concat(c, leaf(type::f32, {0, 2}), some, 0), layout::plain, same);
}

TEST_F(kernels, results_have_the_same_bits_wherever_the_data_lies) {
    tensor* a = leaf(type::f32, {67, 5, 3});
    tensor* b = leaf(type::f32, {67, 5, 3}, layout::sliced);
    tensor* halves = leaf(type::f16, {67, 9}, layout::sliced);
    tensor* ids = leaf(type::i32, {3});
    for (tensor* t :
         {add(c, a, b), mul(c, b, a), scale(c, b, 0.7F), silu(c, b), gelu(c, b), rms_norm(c, b, 1e-5F),
          layer_norm(c, b, 1e-5F), rope(c, b, ids, 66, 1e4F), softmax(c, b, leaf(type::f32, {67, 5}), 0.3F),
          get_rows(c, halves, ids), matmul(c, halves, b), matmul(c, leaf(type::f32, {67, 9}), a),
          conv1d(c, leaf(type::f16, {3, 9, 20}), leaf(type::f32, {67, 9}), 2, 1), cont(c, permute(c, a, {2, 0, 1, 3})),
          copy(c, b, leaf(type::f16, {67, 5, 3})), concat(c, a, b, 2)}) {
        const auto expected = bits(*run(t));
        for (const std::size_t shift : {4U, 8U, 16U, 60U})
            EXPECT_EQ(bits(*run(t, shift)), expected) << name_of(t->op) << shift;
    }
}

TEST_F(kernels, work_counts_multiply_adds_twice_and_the_bytes_that_move) {
    const auto expect_work = [](const tensor* t, double flops, double bytes) {
        EXPECT_EQ(work_of(*t).flops, flops) << name_of(t->op);
        EXPECT_EQ(work_of(*t).bytes, bytes) << name_of(t->op);
    };
    tensor* w = leaf(type::f16, {32, 16});
    tensor* x = leaf(type::f32, {32, 8});
    expect_work(matmul(c, w, x), 2 * 32 * 16 * 8, 2 * 32 * 16 + 4 * 32 * 8 + 4 * 16 * 8);
    expect_work(conv1d(c, leaf(type::f16, {3, 8, 5}), x, 1, 1), 2 * 3 * 8 * 5 * 32, 2 * 120 + 4 * 256 + 4 * 160);
    expect_work(get_rows(c, w, leaf(type::i32, {4})), 0, 4 * 32 * 2 + 4 * 4 + 4 * 32 * 4);
    expect_work(copy(c, x, leaf(type::f16, {256})), 0, 4 * 256 + 2 * 256);
    expect_work(add(c, x, leaf(type::f32, {32})), 256, 4 * 256 + 4 * 32 + 4 * 256);
    expect_work(transpose(c, x), 0, 0);
    expect_work(x, 0, 0);
}

}  // namespace
}  // namespace alloclab::tensor::test
