#include "alloclab/tensor/context.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace alloclab::tensor {

namespace {

constexpr std::size_t owned_alignment = alignof(std::max_align_t);
constexpr std::size_t owned_slack = context::alignment - owned_alignment;

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

void context::take_buffer(std::size_t bytes) noexcept {
    const std::size_t with_slack = sum(bytes, owned_slack);
    void* memory = metadata_.source().allocate(with_slack, owned_alignment);
    ready_ = memory != nullptr;
    if (!ready_) return;
    owned_ = {static_cast<std::byte*>(memory), with_slack};
    metadata_.start_in(owned_.subspan(padding(reinterpret_cast<std::uintptr_t>(memory), alignment), bytes));
}

void context::give_back_buffer() noexcept {
    metadata_.release();  // chunks first: the last taken goes first
    metadata_.source().deallocate(owned_.data(), owned_.size(), owned_alignment);
}

void context::throw_exhausted(std::size_t needed, std::size_t align) const {
    throw context_exhausted(needed, metadata_.available_bytes(align), metadata_.used_bytes(),
                            metadata_.capacity_bytes());
}

std::size_t context::bytes_with_data(std::size_t data_bytes) const noexcept {
    return sum(bytes_of_tensor_, align_up(at_least_one(data_bytes), alignment));
}

void context::refuse(type t, const shape& s, bool with_data) const {
    const std::size_t data_bytes = s.bytes(t);
    if (!is_size(data_bytes))
        throw shape_error("a tensor of " + std::string(alloclab::tensor::name_of(t)) + " " + shape_text(s) +
                          " has a negative dimension or more than PTRDIFF_MAX bytes");
    throw_exhausted(with_data ? bytes_with_data(data_bytes) : bytes_of_tensor_);
}

// The whole of what try_new_node does at first sight: for empty tensors, new chunks and refusals.
tensor* context::place(std::size_t bytes, op o, type t, const shape& s, tensor* a, tensor* b, tensor* c) noexcept {
    void* memory = is_size(s.bytes(t)) ? metadata_.allocate(bytes, alignment) : nullptr;
    if (memory == nullptr) return nullptr;
    std::array<std::size_t, 4> nb{bytes_of(t)};
    for (std::size_t d = 1; d < 4; ++d) nb[d] = nb[d - 1] * static_cast<std::size_t>(s.ne[d - 1]);
    return write(memory, o, t, s, nb, a, b, c);
}

tensor* context::try_new_tensor(type t, const shape& s) noexcept {
    if (no_alloc_) return try_new_node(op::none, t, s, nullptr);
    tensor* made = place(bytes_with_data(s.bytes(t)), op::none, t, s, nullptr, nullptr, nullptr);
    if (made != nullptr) made->data = reinterpret_cast<std::byte*>(made) + bytes_of_tensor_;
    return made;
}

tensor* context::new_tensor(type t, const shape& s) {
    tensor* made = try_new_tensor(t, s);
    if (made == nullptr) refuse(t, s, !no_alloc_);
    return made;
}

tensor* context::new_input(type t, const shape& s) {
    tensor* made = new_tensor(t, s);
    made->input = true;
    return made;
}

tensor* context::new_view(tensor* a, const shape& s, const std::array<std::size_t, 4>& strides, std::size_t offset) {
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
