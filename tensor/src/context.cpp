#include "alloclab/tensor/context.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace alloclab::tensor {

namespace {

// A buffer that starts anywhere, shortened to what lies behind the next multiple of the alignment.
std::span<std::byte> aligned(std::span<std::byte> buffer) noexcept {
    const std::size_t gap = padding(reinterpret_cast<std::uintptr_t>(buffer.data()), context::alignment);
    return gap < buffer.size() ? buffer.subspan(gap) : std::span<std::byte>{};
}

constexpr std::size_t owned_alignment = alignof(std::max_align_t);
constexpr std::size_t owned_slack = context::alignment - owned_alignment;

constexpr std::size_t tensor_bytes(std::size_t behind) noexcept {
    return align_up(sum(sizeof(tensor), behind), context::alignment);
}

std::string shape_text(const shape& s) {
    return "[" + std::to_string(s.ne[0]) + ", " + std::to_string(s.ne[1]) + ", " + std::to_string(s.ne[2]) + ", " +
           std::to_string(s.ne[3]) + "]";
}

}  // namespace

context_exhausted::context_exhausted(std::size_t needed_bytes, std::size_t available_bytes, std::size_t used_bytes,
                                     std::size_t capacity_bytes)
    : needed(needed_bytes),
      available(available_bytes),
      used(used_bytes),
      capacity(capacity_bytes),
      text_(std::make_shared<const std::string>("context exhausted: needed " + std::to_string(needed_bytes) +
                                                " bytes, available " + std::to_string(available_bytes) + ", used " +
                                                std::to_string(used_bytes) + " of " + std::to_string(capacity_bytes))) {
}

context_exhausted::context_exhausted(std::string_view strategy, std::size_t in_use, std::size_t slots,
                                     std::size_t buffer_bytes)
    : needed(buffer_bytes),
      slots_in_use(in_use),
      slot_capacity(slots),
      text_(std::make_shared<const std::string>(
          "no context from " + std::string(strategy) + ": " +
          (slots == 0 ? "the source is exhausted"
                      : std::to_string(in_use) + " of " + std::to_string(slots) + " slots in use") +
          ", buffer of " + std::to_string(buffer_bytes) + " bytes")) {}

// The first buffer is taken before the arena is made, so that the arena sees it as given.
context::context(const context_options& options, any_source source) noexcept
    : owned_([&]() -> std::span<std::byte> {
          if (options.buffer.data() != nullptr || options.bytes == 0) return {};
          const std::size_t bytes = sum(options.bytes, owned_slack);
          void* memory = source.allocate(bytes, owned_alignment);
          return {static_cast<std::byte*>(memory), memory != nullptr ? bytes : 0};
      }()),
      metadata_(
          [&]() -> std::span<std::byte> {
              const std::span<std::byte> first = aligned(owned_.empty() ? options.buffer : owned_);
              return owned_.empty() ? first : first.first(options.bytes);
          }(),
          options.growing, source),
      bytes_of_tensor_(tensor_bytes(options.bytes_behind_tensor)),
      no_alloc_(options.no_alloc),
      ready_(options.buffer.data() != nullptr || options.bytes == 0 || !owned_.empty()) {}

context::~context() {
    metadata_.release();
    metadata_.source().deallocate(owned_.data(), owned_.size(), owned_alignment);
}

void context::throw_exhausted(std::size_t needed, std::size_t align) const {
    throw context_exhausted(needed, metadata_.available_bytes(align), metadata_.used_bytes(),
                            metadata_.capacity_bytes());
}

std::size_t context::bytes_for(type t, const shape& s, bool with_data) const noexcept {
    const std::size_t data_bytes = s.bytes(t);
    if (!is_size(data_bytes)) return too_many;
    return with_data ? sum(bytes_of_tensor_, align_up(at_least_one(data_bytes), alignment)) : bytes_of_tensor_;
}

tensor* context::place(type t, const shape& s, bool with_data) noexcept {
    void* memory = metadata_.allocate(bytes_for(t, s, with_data), alignment);
    if (memory == nullptr) return nullptr;
    ++tensors_;
    // Each member is written once: cleared as a whole first, g++ 12 gives a tensor a `rep stos`.
    auto* made = ::new (memory) tensor;
    made->ne = s.ne;
    made->nb[0] = bytes_of(t);
    for (std::size_t d = 1; d < 4; ++d) made->nb[d] = made->nb[d - 1] * static_cast<std::size_t>(s.ne[d - 1]);
    made->sources = {};
    made->data = with_data ? static_cast<std::byte*>(memory) + bytes_of_tensor_ : nullptr;
    made->extra = nullptr;
    made->mark = 0;
    made->params = {};
    made->op = op::none;
    made->type = t;
    made->input = made->output = made->offload = false;
    made->padding = {};
    return made;
}

tensor* context::place_or_throw(type t, const shape& s, bool with_data) {
    if (tensor* made = place(t, s, with_data)) return made;
    if (!is_size(s.bytes(t)))
        throw shape_error("a tensor of " + std::string(alloclab::tensor::name_of(t)) + " " + shape_text(s) +
                          " has a negative dimension or more than PTRDIFF_MAX bytes");
    throw_exhausted(bytes_for(t, s, with_data));
}

tensor* context::new_tensor(type t, shape s) { return place_or_throw(t, s, !no_alloc_); }
tensor* context::try_new_tensor(type t, shape s) noexcept { return place(t, s, !no_alloc_); }

tensor* context::new_input(type t, shape s) {
    tensor* made = new_tensor(t, s);
    made->input = true;
    return made;
}

tensor* context::new_node(op o, type t, shape s, tensor* a, tensor* b, tensor* c) {
    tensor* made = place_or_throw(t, s, false);
    made->op = o;
    made->sources = {a, b, c};
    return made;
}

tensor* context::new_view(tensor* a, shape s, const std::array<std::size_t, 4>& strides, std::size_t offset) {
    const std::size_t elements = s.count();
    std::size_t end = offset;
    if (elements > 0) {
        for (std::size_t d = 0; d < 4; ++d) end = sum(end, product(static_cast<std::size_t>(s.ne[d] - 1), strides[d]));
        end = sum(end, bytes_of(a->type));
    }
    if (!is_size(elements) || end > a->bytes())
        throw shape_error("a view of " + shape_text(s) + " from byte " + std::to_string(offset) +
                          " reaches past the end of " + shape_text({a->ne[0], a->ne[1], a->ne[2], a->ne[3]}) + ", " +
                          std::to_string(a->bytes()) + " bytes");
    tensor* made = new_node(op::view, a->type, s, a);
    made->nb = strides;
    made->params.offset = offset;
    if (a->data != nullptr) made->data = static_cast<std::byte*>(a->data) + offset;
    return made;
}

graph* context::try_new_graph(std::size_t max_nodes) noexcept {
    const std::size_t header = sizeof(graph);
    void* memory = metadata_.allocate(align_up(sum(header, product(max_nodes, sizeof(tensor*))), alignment), alignment);
    if (memory == nullptr) return nullptr;
    auto** nodes = reinterpret_cast<tensor**>(static_cast<std::byte*>(memory) + header);
    return ::new (memory) graph(nodes, max_nodes);
}

graph* context::new_graph(std::size_t max_nodes) {
    graph* made = try_new_graph(max_nodes);
    if (made == nullptr) throw_exhausted(required_bytes(0, max_nodes));
    return made;
}

std::size_t context::required_bytes(std::size_t tensors, std::size_t graph_nodes, std::size_t behind) noexcept {
    const std::size_t graph_bytes = align_up(sum(sizeof(graph), product(graph_nodes, sizeof(tensor*))), alignment);
    const std::size_t all = sum(product(tensors, tensor_bytes(behind)), graph_bytes);
    return is_size(all) ? all : too_many;
}

void* context::allocate(std::size_t bytes, std::size_t align) noexcept { return metadata_.allocate(bytes, align); }

void context::set_name(const tensor* t, std::string_view name) {
    if (name.empty()) {
        for (name_entry** link = &names_; *link != nullptr;)
            if ((*link)->of == t) *link = (*link)->next;
            else link = &(*link)->next;
        return;
    }
    const std::size_t bytes = sum(sizeof(name_entry), name.size());
    void* memory = metadata_.allocate(bytes, alignof(name_entry));
    if (memory == nullptr) throw_exhausted(bytes, alignof(name_entry));
    char* text = static_cast<char*>(memory) + sizeof(name_entry);
    std::copy(name.begin(), name.end(), text);
    names_ = ::new (memory) name_entry{names_, t, {text, name.size()}};
}

std::string_view context::name_of(const tensor* t) const noexcept {
    for (const name_entry* entry = names_; entry != nullptr; entry = entry->next)
        if (entry->of == t) return entry->text;
    return {};
}

void context::reset() noexcept {
    metadata_.reset();
    names_ = nullptr;
    tensors_ = 0;
}

struct usage context::usage() const noexcept {
    struct usage seen = metadata_.usage();
    seen.live = tensors_;
    if (!owned_.empty()) {
        ++seen.source_calls;
        seen.reserved_bytes += owned_slack;
    }
    return seen;
}

}  // namespace alloclab::tensor
