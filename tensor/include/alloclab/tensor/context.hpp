// context: where the tensors and graphs of one model or one eval live: metadata bumped from a buffer, forgotten by
// reset, given back when the context dies. `contexts` puts the three choices together: where the header's slot comes
// from (a slot strategy), where the buffer comes from (a source, or the caller) and how it grows.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "alloclab/arena.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/source/any_source.hpp"
#include "alloclab/source/malloc.hpp"
#include "alloclab/tensor/graph.hpp"
#include "alloclab/tensor/tensor.hpp"

namespace alloclab::tensor {

/// A context, its buffer or its slot could not be had. The text says all that is known: bytes needed, available, used
/// and capacity; slots in use and slots there are.
class context_exhausted : public std::bad_alloc {
public:
    /// Metadata did not fit into a context.
    context_exhausted(std::size_t needed, std::size_t available, std::size_t used, std::size_t capacity);
    /// No slot for a context; `slot_capacity` is 0 where the strategy has no fixed number.
    context_exhausted(std::string_view strategy, std::size_t slots_in_use, std::size_t slot_capacity,
                      std::size_t buffer_bytes);
    [[nodiscard]] const char* what() const noexcept override { return text_->c_str(); }

    std::size_t needed = 0, available = 0, used = 0, capacity = 0, slots_in_use = 0, slot_capacity = 0;

private:
    std::shared_ptr<const std::string> text_;  // a throw must not copy a string
};

struct context_options {
    std::size_t bytes = 0;                ///< of the first buffer; see `context::required_bytes`
    std::span<std::byte> buffer = {};     ///< the caller's, used instead of an owned one; must outlive the context
    growth growing = fixed;               ///< `growth{}` for a chain of chunks whose addresses stay
    bool no_alloc = true;                 ///< false: each leaf's data lies in the buffer too
    std::size_t bytes_behind_tensor = 0;  ///< room behind each tensor, for extras embedded in it
};

/// The header in the slot. One context belongs to one thread at a time; contexts share nothing.
class context {
public:
    /// Alignment of the buffer's start and of every tensor in it. A caller's buffer that starts elsewhere is aligned up
    /// and loses those bytes; an owned one never has less than was asked for.
    static constexpr std::size_t alignment = 64;

    /// Takes the buffer; `ready()` tells whether it could be had.
    context(const context_options& options, any_source source) noexcept;
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    ~context() {
        if (owned_.data() != nullptr) give_back_buffer();
    }
    [[nodiscard]] bool ready() const noexcept { return ready_; }

    /// A leaf without data (with data in the buffer unless `no_alloc`). O(1).
    /// Throws shape_error for a size that overflows, context_exhausted when it does not fit; nothing has changed then.
    tensor* new_tensor(type t, const shape& s);
    /// nullptr where new_tensor throws.
    [[nodiscard]] tensor* try_new_tensor(type t, const shape& s) noexcept;
    /// A leaf that is written before each run: the planner gives it memory.
    tensor* new_input(type t, const shape& s);
    /// A tensor computed by `o` from `a` (and `b`, `c`), contiguous, no data yet. Used by ops.hpp.
    tensor* new_node(op o, type t, const shape& s, tensor* a, tensor* b = nullptr, tensor* c = nullptr);
    /// nullptr where new_node throws.
    [[nodiscard]] tensor* try_new_node(op o, type t, const shape& s, tensor* a, tensor* b = nullptr,
                                       tensor* c = nullptr) noexcept;
    /// A look at `a` from `offset` bytes on; throws shape_error when it would reach past the end of `a`, be it empty.
    tensor* new_view(tensor* a, const shape& s, const std::array<std::size_t, 4>& strides, std::size_t offset);

    /// A graph of at most `max_nodes` nodes; throws context_exhausted. try_: nullptr.
    graph* new_graph(std::size_t max_nodes);
    [[nodiscard]] graph* try_new_graph(std::size_t max_nodes) noexcept;

    /// Bytes from the buffer; nullptr when they cannot be had. `align` at most 4096.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align) noexcept;

    /// Gives `t`, which lives here, a name; the text is copied. "" forgets it: O(named), and needs no memory. Throws
    /// context_exhausted; the old name stays then.
    void set_name(const tensor* t, std::string_view name);
    /// "" when it has none. O(named tensors): names are for people and errors.
    [[nodiscard]] std::string_view name_of(const tensor* t) const noexcept;

    /// Forgets all tensors, graphs and names; keeps the memory (see arena::reset). O(1).
    void reset() noexcept;

    [[nodiscard]] std::size_t used_bytes() const noexcept { return metadata_.used_bytes(); }
    [[nodiscard]] std::size_t capacity_bytes() const noexcept { return metadata_.capacity_bytes(); }
    [[nodiscard]] std::size_t tensors() const noexcept { return tensors_; }
    [[nodiscard]] struct usage usage() const noexcept;
    [[nodiscard]] bool no_alloc() const noexcept { return no_alloc_; }
    /// The room behind a tensor of this context that was asked for by `bytes_behind_tensor`.
    [[nodiscard]] static void* behind(tensor* t) noexcept { return t + 1; }

    /// Exactly the bytes that so many tensors (of which the `no_alloc` kind) and one graph need; a context of that size
    /// fits them with no byte missing and none to spare (llama.cpp#22404). `too_many` when that cannot be counted.
    [[nodiscard]] static std::size_t required_bytes(std::size_t tensors, std::size_t graph_nodes,
                                                    std::size_t bytes_behind_tensor = 0) noexcept;

private:
    struct name_entry {
        name_entry* next;
        const tensor* of;
        std::string_view text;
    };
    static constexpr std::size_t tensor_bytes(std::size_t behind) noexcept {
        return align_up(sum(sizeof(tensor), behind), alignment);
    }
    void take_buffer(std::size_t bytes) noexcept;
    void give_back_buffer() noexcept;
    [[nodiscard]] std::size_t bytes_with_data(std::size_t data_bytes) const noexcept;
    tensor* write(void* memory, op o, type t, const shape& s, const std::array<std::size_t, 4>& nb, tensor* a,
                  tensor* b, tensor* c) noexcept;
    [[nodiscard, gnu::cold]] tensor* place(std::size_t bytes, op o, type t, const shape& s, tensor* a, tensor* b,
                                           tensor* c) noexcept;
    [[noreturn, gnu::cold]] void refuse(type t, const shape& s, bool with_data) const;
    [[noreturn]] void throw_exhausted(std::size_t needed, std::size_t align = alignment) const;

    std::span<std::byte> owned_;
    arena<any_source> metadata_;
    name_entry* names_ = nullptr;
    std::size_t tensors_ = 0;
    std::size_t bytes_of_tensor_;  // with the room behind it
    bool no_alloc_ = true;
    bool ready_ = true;
};

// Inlined with its destructor: over a caller's buffer, which begins at its next multiple of the alignment, both
// together are a few dozen instructions. Tensors with nothing behind them, the usual ones, are told apart, since
// rounding their size anew would be a sixteenth of it all.
inline context::context(const context_options& options, any_source source) noexcept
    : metadata_(
          [&]() -> std::span<std::byte> {
              const std::size_t gap = padding(reinterpret_cast<std::uintptr_t>(options.buffer.data()), alignment);
              if (gap >= options.buffer.size()) return {};
              return options.buffer.subspan(gap);
          }(),
          options.growing, source),
      bytes_of_tensor_(options.bytes_behind_tensor == 0 ? tensor_bytes(0) : tensor_bytes(options.bytes_behind_tensor)),
      no_alloc_(options.no_alloc) {
    if (options.buffer.data() == nullptr && options.bytes != 0) take_buffer(options.bytes);
}

// Each member is written once: cleared as a whole first, g++ 12 gives a tensor a `rep stos`.
inline tensor* context::write(void* memory, op o, type t, const shape& s, const std::array<std::size_t, 4>& nb,
                              tensor* a, tensor* b, tensor* c) noexcept {
    ++tensors_;
    auto* made = ::new (memory) tensor;
    for (std::size_t d = 0; d < 4; ++d) made->ne[d] = s.ne[d];
    for (std::size_t d = 0; d < 4; ++d) made->nb[d] = nb[d];
    made->sources[0] = a;
    made->sources[1] = b;
    made->sources[2] = c;
    made->data = nullptr;
    made->extra = nullptr;
    made->mark = 0;
    made->params.offset = 0;
    made->op = o;
    made->type = t;
    made->input = made->output = made->offload = false;
    made->padding = {};
    return made;
}

// Inlined, so that no shape goes through memory; the copies are for those who need its address, or it would yet.
inline tensor* context::try_new_node(op o, type t, const shape& s, tensor* a, tensor* b, tensor* c) noexcept {
    if (std::array<std::size_t, 4> nb; try_strides(t, s, nb)) [[likely]]
        if (void* memory = metadata_.bump(bytes_of_tensor_, alignment)) [[likely]]
            return write(memory, o, t, s, nb, a, b, c);
    return place(bytes_of_tensor_, o, t, shape(s), a, b, c);
}

inline tensor* context::new_node(op o, type t, const shape& s, tensor* a, tensor* b, tensor* c) {
    tensor* made = try_new_node(o, t, s, a, b, c);
    if (made == nullptr) [[unlikely]]
        refuse(t, shape(s), false);
    return made;
}

/// Owns a context and knows the way home.
struct context_deleter {
    void* home = nullptr;
    void (*give_back)(void* home, context*) noexcept = nullptr;
    void operator()(context* c) const noexcept { give_back(home, c); }
};
using context_ptr = std::unique_ptr<context, context_deleter>;

/// Makes contexts whose headers come from `Slots` and whose buffers come from `Buffers`. Must outlive its contexts.
/// Threads: as the weaker of the two.
template <slot_strategy Slots, memory_source Buffers = malloc_source>
requires std::same_as<typename Slots::value_type, context>
class contexts {
public:
    static constexpr std::string_view name = Slots::name;
    static constexpr thread_use threads = weaker(Slots::threads, Buffers::threads);

    contexts() = default;
    explicit contexts(Buffers buffers) : buffers_(std::move(buffers)) {}
    contexts(const contexts&) = delete;
    contexts& operator=(const contexts&) = delete;

    /// Throws context_exhausted, which then names the strategy, when no slot or no buffer is left; the strategy is
    /// unchanged then.
    [[nodiscard]] context_ptr make(const context_options& options) {
        context_ptr made = try_make(options);
        if (made == nullptr) throw context_exhausted(name, slots_in_use(), slot_capacity(), options.bytes);
        return made;
    }
    /// Empty where make throws.
    [[nodiscard, gnu::always_inline]] context_ptr try_make(const context_options& options) noexcept {
        const auto construct = [&](void* slot) noexcept {
            auto* c = ::new (slot) context(options, any_source(buffers_));
            if (c->ready()) return true;
            c->~context();
            return false;
        };
        void* slot = nullptr;
        if constexpr (locks_over_buffer<Slots>) {
            slot = slots_.acquire_then(construct);
        } else {
            slot = slots_.acquire();
            if (slot != nullptr && !construct(slot)) {
                slots_.release(slot);
                slot = nullptr;
            }
        }
        return context_ptr(static_cast<context*>(slot),
                           {this, [](void* home, context* c) noexcept { static_cast<contexts*>(home)->give_back(c); }});
    }

    [[nodiscard]] Slots& slots() noexcept { return slots_; }
    [[nodiscard]] const Slots& slots() const noexcept { return slots_; }
    [[nodiscard]] Buffers& buffers() noexcept { return buffers_; }

private:
    void give_back(context* c) noexcept {
        if constexpr (locks_over_buffer<Slots>) {
            slots_.release_after(c, [](void* slot) { static_cast<context*>(slot)->~context(); });
        } else {
            c->~context();
            slots_.release(c);
        }
    }
    [[nodiscard]] std::size_t slots_in_use() const noexcept {
        if constexpr (measured<Slots>) return slots_.usage().live;
        else return 0;
    }
    [[nodiscard]] static constexpr std::size_t slot_capacity() noexcept {
        if constexpr (bounded<Slots>) return Slots::capacity;
        else return 0;
    }

    Slots slots_;
    [[no_unique_address]] Buffers buffers_;
};

}  // namespace alloclab::tensor
