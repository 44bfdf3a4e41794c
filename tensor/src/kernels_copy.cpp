// Moving elements: runs that are adjacent in element order on both sides, converted on the way.
#include <limits>

#include "half.hpp"
#include "kernels.hpp"

namespace alloclab::tensor::kernels {

namespace {

struct elements {
    std::byte* first;
    std::size_t step;
    enum type type;
};

template <class From, class To, class Convert>
void move_each(elements from, elements to, std::int64_t n, Convert convert) noexcept {
    with_row<From>(from.first, from.step, [&](auto in) {
        if (to.step == sizeof(To)) {
            To* out = reinterpret_cast<To*>(to.first);
            for (std::int64_t i = 0; i < n; ++i) out[i] = convert(in[i]);
        } else {
            for (std::int64_t i = 0; i < n; ++i)
                *reinterpret_cast<To*>(to.first + static_cast<std::size_t>(i) * to.step) = convert(in[i]);
        }
    });
}

void move(elements from, elements to, std::int64_t n) noexcept {
    constexpr auto same = [](auto value) { return value; };
    if (from.type == to.type) {
        if (from.step == bytes_of(from.type) && to.step == from.step)
            std::memmove(to.first, from.first, static_cast<std::size_t>(n) * from.step);
        else if (from.type == type::f16) move_each<std::uint16_t, std::uint16_t>(from, to, n, same);
        else if (from.type == type::f32) move_each<float, float>(from, to, n, same);
        else move_each<std::int32_t, std::int32_t>(from, to, n, same);
    } else if (from.type == type::f16 && from.step == sizeof(std::uint16_t) && to.step == sizeof(float)) {
        widen(reinterpret_cast<const std::uint16_t*>(from.first), n, reinterpret_cast<float*>(to.first));
    } else if (from.type == type::f16) {
        move_each<std::uint16_t, float>(from, to, n, [](std::uint16_t half) { return widen(half); });
    } else {
        move_each<float, std::uint16_t>(from, to, n, [](float value) { return narrow(value); });
    }
}

/// Walks elements laid out as in a tensor, in element order, a row at a time at most.
class cursor {
public:
    /// A block as large as `extent` at `first`, laid out as `layout` is.
    cursor(const tensor& extent, const tensor& layout, std::byte* first) noexcept
        : extent_(extent), layout_(layout), row_(first) {}
    explicit cursor(const tensor& t) noexcept : cursor(t, t, static_cast<std::byte*>(t.data)) {}

    [[nodiscard]] elements at() const noexcept {
        return {row_ + static_cast<std::size_t>(column_) * layout_.nb[0], layout_.nb[0], layout_.type};
    }
    [[nodiscard]] std::int64_t left_in_row() const noexcept { return extent_.ne[0] - column_; }
    void advance(std::int64_t n) noexcept {
        column_ += n;
        if (column_ < extent_.ne[0]) return;
        column_ = 0;
        for (std::size_t d = 1; d < 4; ++d) {
            row_ += layout_.nb[d];
            if (++index_[d - 1] < extent_.ne[d]) return;
            row_ -= static_cast<std::size_t>(extent_.ne[d]) * layout_.nb[d];
            index_[d - 1] = 0;
        }
    }

private:
    const tensor& extent_;
    const tensor& layout_;
    std::byte* row_;
    std::int64_t column_ = 0;
    std::array<std::int64_t, 3> index_{};
};

void move_all(cursor from, cursor to, std::size_t count) noexcept {
    for (auto left = static_cast<std::int64_t>(count); left > 0;) {
        const std::int64_t run = std::min(from.left_in_row(), to.left_in_row());
        move(from.at(), to.at(), run);
        from.advance(run);
        to.advance(run);
        left -= run;
    }
}

void move_all(const tensor& from, const tensor& to) noexcept {
    if (from.contiguous() && to.contiguous())
        move({static_cast<std::byte*>(from.data), bytes_of(from.type), from.type},
             {static_cast<std::byte*>(to.data), bytes_of(to.type), to.type}, static_cast<std::int64_t>(to.elements()));
    else move_all(cursor(from), cursor(to), to.elements());
}

}  // namespace

void cont(const tensor& t) noexcept { move_all(*t.sources[0], t); }

void copy(const tensor& t) noexcept { move_all(*t.sources[0], t); }

void concat(const tensor& t) noexcept {
    const tensor& a = *t.sources[0];
    const tensor& b = *t.sources[1];
    const auto d = static_cast<std::size_t>(t.integer(0));
    auto* first = static_cast<std::byte*>(t.data);
    move_all(cursor(a), cursor(a, t, first), a.elements());
    move_all(cursor(b), cursor(b, t, first + static_cast<std::size_t>(a.ne[d]) * t.nb[d]), b.elements());
}

void get_rows(const tensor& t) noexcept {
    const tensor& table = *t.sources[0];
    const tensor& ids = *t.sources[1];
    const strided<std::int32_t> id{static_cast<std::byte*>(ids.data), ids.nb[0]};
    for (std::int64_t i = 0; i < t.ne[1]; ++i) {
        std::byte* to = row_at(t, i, 0, 0);
        if (id[i] >= 0 && id[i] < table.ne[1])
            move({row_at(table, id[i], 0, 0), table.nb[0], table.type}, {to, sizeof(float), type::f32}, t.ne[0]);
        else std::fill_n(reinterpret_cast<float*>(to), t.ne[0], std::numeric_limits<float>::quiet_NaN());
    }
}

}  // namespace alloclab::tensor::kernels
