// engine: the eval loop of a real runtime, over any context strategy, extra strategy and device: take or reset a
// context, build the graph, plan activation memory, give each offloaded tensor an extra, execute, end the eval.
//
//   { auto eval = engine.begin_eval();               // a context, and the bracket of the temporaries
//     graph* g = eval.new_graph(nodes);             // and tensors in eval.context()
//     eval.plan(*g); eval.attach(*g); eval.execute(*g);  // or eval.run(*g)
//   }                                                // temporary extras have lived until here
//
// Where things lie: every planned tensor has its place in a host buffer and, when anything is offloaded, the same place
// in a device buffer. A tensor is computed on its side; a reader on the other side gets it copied over, once per eval.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "alloclab/tensor/backend.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/planner.hpp"

namespace alloclab::tensor {

/// An extra, or memory on the device, could not be had. The text says what and how much.
class offload_exhausted : public std::bad_alloc {
public:
    offload_exhausted(const char* what_for, std::size_t needed, std::size_t available) noexcept {
        std::snprintf(text_, sizeof text_, "offload exhausted: no %s (needed %zu, available %zu)", what_for, needed,
                      available);
    }
    [[nodiscard]] const char* what() const noexcept override { return text_; }

private:
    char text_[128];
};

/// The device refused a call that it should have taken. The text says which.
class device_refused : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct engine_options {
    std::size_t context_bytes = std::size_t{1} << 20;  ///< of an eval's context, before it grows
    growth growing = {};
    bool reset_context = true;  ///< one context, reset for each eval; false: a new one for each
};

/// One thread at a time. `Extras::extra_type` keeps addresses by device, of which this one is 0: see tensor_extra.
template <slot_strategy Slots, any_extra_strategy Extras, device_backend Device, memory_source Buffers = malloc_source>
class engine {
public:
    using extra_type = typename Extras::extra_type;
    /// What a context needs as `bytes_behind_tensor` so that its tensors may get an extra.
    static constexpr std::size_t bytes_behind_tensor = [] {
        if constexpr (embedded_extra_strategy<Extras>) return Extras::bytes_in_tensor;
        else return std::size_t{0};
    }();

    class eval;

    /// The device must outlive the engine.
    explicit engine(Device& device, const engine_options& options = {}) : device_(device), options_(options) {}
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine() {
        for (tensor* t : uploaded_) drop(t);
        device_.deallocate(device_buffer_);
    }

    /// Copies leaves with data to the device and gives them persistent extras; needed before an offloaded tensor may
    /// read them. One that has an extra is there already, and belongs to one engine. They must come from contexts with
    /// `bytes_behind_tensor` and outlive the engine. Throws offload_exhausted; those before the failing one are
    /// uploaded then. O(bytes).
    void upload(std::span<tensor* const> leaves) {
        for (tensor* t : leaves) {
            if (t->extra != nullptr) continue;
            void* memory = device_.allocate(t->bytes());
            if (memory == nullptr) throw offload_exhausted("device memory", t->bytes(), device_.available_bytes());
            extra_type* extra = acquire(lifetime::persistent, t);
            if (extra == nullptr) {
                device_.deallocate(memory);
                throw offload_exhausted("extra", 1, 0);
            }
            extra->place(0, memory);
            t->extra = extra;
            uploaded_.push_back(t);
            must(device_.copy_to_device(memory, t->data, t->bytes(), stream()), "a copy to the device");
        }
        must(device_.synchronize(stream()), "to synchronize");
    }

    /// Starts an eval; one at a time. Throws context_exhausted.
    [[nodiscard]] eval begin_eval() { return eval(*this); }

    [[nodiscard]] contexts<Slots, Buffers>& context_source() noexcept { return contexts_; }
    [[nodiscard]] Extras& extras() noexcept { return extras_; }
    [[nodiscard]] const planner& plan() const noexcept { return planner_; }

private:
    struct aligned_delete {
        void operator()(std::byte* p) const noexcept { ::operator delete (p, std::align_val_t{planner::alignment}); }
    };

    static void must(bool done, std::string_view what) {
        if (!done) throw device_refused(std::string(Device::name) + " refused " + std::string(what));
    }
    [[nodiscard]] typename Device::stream stream() noexcept { return device_.default_stream(); }
    [[nodiscard]] static extra_type& extra_of(const tensor& t) noexcept { return *static_cast<extra_type*>(t.extra); }

    extra_type* acquire(lifetime life, [[maybe_unused]] tensor* t) noexcept {
        if constexpr (embedded_extra_strategy<Extras>) return extras_.acquire(life, context::behind(t));
        else return extras_.acquire(life);
    }
    void drop(tensor* t) noexcept {
        device_.deallocate(extra_of(*t).data(0));
        extras_.release(&extra_of(*t));
        t->extra = nullptr;
    }

    void place(const graph& g) {
        planner_.plan(g);
        if (planner_.bytes() > host_bytes_) {
            host_buffer_.reset();
            host_bytes_ = 0;
            host_buffer_.reset(
                static_cast<std::byte*>(::operator new (planner_.bytes(), std::align_val_t{planner::alignment})));
            host_bytes_ = planner_.bytes();
        }
        for (const placement& p : planner_.placements()) p.of->data = host_buffer_.get() + p.offset;
        for (tensor* t : g.nodes()) {
            if (t->op == op::view) t->data = at(t->sources[0]->data, t->params.offset);
            else if (t->op == op::copy) t->data = t->sources[1]->data;
        }
    }

    void attach(const graph& g) {
        for (tensor* t : g.nodes()) {
            if (!t->offload) continue;
            if (planner_.bytes() > device_bytes_) grow_device_buffer();
            extra_type* extra = acquire(lifetime::temporary, t);
            if (extra == nullptr) throw offload_exhausted("extra", 1, 0);
            t->extra = extra;
            extra->place(0, t->is_alias() ? device_address(*t) : mirror(*t));
        }
    }

    void grow_device_buffer() {
        device_.deallocate(std::exchange(device_buffer_, nullptr));
        device_bytes_ = 0;
        device_buffer_ = device_.allocate(planner_.bytes());
        if (device_buffer_ == nullptr)
            throw offload_exhausted("device memory", planner_.bytes(), device_.available_bytes());
        device_bytes_ = planner_.bytes();
    }

    // A root is at home where it is computed; a leaf on the device once it has been uploaded.
    [[nodiscard]] static bool at_home_on_device(const tensor& root) noexcept {
        return root.op == op::none ? root.extra != nullptr : root.offload != 0;
    }
    // What writes into another tensor's memory runs where that memory is.
    [[nodiscard]] static bool runs_on_device(const tensor& t) noexcept {
        return t.op == op::copy ? at_home_on_device(t.root()) : t.offload != 0;
    }
    // Without data, as in metadata-only models, a view has none either.
    [[nodiscard]] static void* at(void* base, std::size_t offset) noexcept {
        return base != nullptr ? static_cast<std::byte*>(base) + offset : nullptr;
    }
    [[nodiscard]] void* mirror(const tensor& root) const noexcept {
        return at(device_buffer_, static_cast<std::size_t>(static_cast<std::byte*>(root.data) - host_buffer_.get()));
    }
    // nullptr for what looks at a leaf that is not on the device.
    [[nodiscard]] void* device_address(const tensor& t) const noexcept {
        const tensor& root = t.root();
        if (root.op == op::none && !root.input && root.extra == nullptr) return nullptr;
        void* base = at_home_on_device(root) ? extra_of(root).data(0) : mirror(root);
        return at(base, static_cast<std::size_t>(static_cast<std::byte*>(t.data) - static_cast<std::byte*>(root.data)));
    }

    // Makes the memory that `source` looks at readable on the side of its reader.
    void bring(const graph& g, const tensor& source, bool to_device) {
        const tensor& root = source.root();
        const bool on_device = at_home_on_device(root);
        if (on_device == to_device) return;
        if (root.op == op::none && !root.input) {
            // An uploaded leaf is the same on both sides until a copy has written to it on the device.
            if (to_device) throw shape_error("an offloaded tensor reads a leaf that was not uploaded");
            if (std::erase(written_, &root) != 0) fetch(root);
            return;
        }
        std::uint8_t& brought = brought_[planner_.index_of(g, root)];
        if (std::exchange(brought, std::uint8_t{1}) != 0) return;
        if (to_device)
            must(device_.copy_to_device(mirror(root), root.data, root.bytes(), stream()), "a copy to the device");
        else fetch(root);
    }
    void fetch(const tensor& root) {
        must(device_.copy_to_host(root.data, extra_of(root).data(0), root.bytes(), stream()), "a copy to the host");
        must(device_.synchronize(stream()), "to synchronize");
    }

    void execute(const graph& g) {
        brought_.assign(planner_.placements().size(), 0);
        if (planner_.bytes() > device_bytes_ && anything_on_device(g)) grow_device_buffer();
        for (const tensor* t : g.nodes()) {
            if (t->op == op::view) continue;
            const bool on_device = runs_on_device(*t);
            // The target of a copy is written, not read, but its other bytes must be where the write goes.
            for (const tensor* source : t->sources)
                if (source != nullptr) bring(g, *source, on_device);
            if (on_device) launch(*t);
            else compute(*t);
            if (t->op == op::copy) written(g, t->root(), on_device);
        }
        for (const tensor* t : g.nodes())
            if (t->output && at_home_on_device(t->root())) fetch(t->root());
        must(device_.synchronize(stream()), "to synchronize");
    }
    [[nodiscard]] static bool anything_on_device(const graph& g) noexcept {
        return std::any_of(g.nodes().begin(), g.nodes().end(), [](const tensor* t) { return runs_on_device(*t); });
    }

    void launch(const tensor& t) {
        tensor on_device = t;
        std::array<tensor, max_sources> sources;
        on_device.data = device_address(t);
        for (std::size_t i = 0; i < max_sources; ++i) {
            if (t.sources[i] == nullptr) continue;
            sources[i] = *t.sources[i];
            sources[i].data = device_address(*t.sources[i]);
            on_device.sources[i] = &sources[i];
        }
        must(device_.launch(on_device, stream()), alloclab::tensor::name_of(t.op));
    }

    // What another side has of `root` is old from now on.
    void written(const graph& g, const tensor& root, bool on_device) {
        if (root.op != op::none || root.input) brought_[planner_.index_of(g, root)] = 0;
        else if (on_device && std::find(written_.begin(), written_.end(), &root) == written_.end())
            written_.push_back(&root);
    }

    Device& device_;
    engine_options options_;
    contexts<Slots, Buffers> contexts_;
    context_ptr context_;
    Extras extras_;
    last_order order_;
    planner planner_;
    std::unique_ptr<std::byte, aligned_delete> host_buffer_;
    std::size_t host_bytes_ = 0;
    void* device_buffer_ = nullptr;
    std::size_t device_bytes_ = 0;
    std::vector<tensor*> uploaded_;
    std::vector<const tensor*> written_;  // uploaded leaves whose host copy is old
    std::vector<std::uint8_t> brought_;   // by placement: copied to the other side in this eval
};

/// One pass; the end of its life ends it. Tensors, graphs and extras made in it are gone then.
template <slot_strategy Slots, any_extra_strategy Extras, device_backend Device, memory_source Buffers>
class engine<Slots, Extras, Device, Buffers>::eval {
public:
    eval(const eval&) = delete;
    eval& operator=(const eval&) = delete;
    ~eval() {
        if (!engine_.options_.reset_context) engine_.context_.reset();
    }

    /// Where this eval's tensors and graph are made.
    [[nodiscard]] alloclab::tensor::context& context() noexcept { return *engine_.context_; }
    /// A graph of at most `max_nodes` nodes that reuses the order of the one that the last eval made here. Throws
    /// context_exhausted.
    graph* new_graph(std::size_t max_nodes) {
        graph* made = context().new_graph(max_nodes);
        made->follow(engine_.order_);
        return made;
    }
    /// Places every result in the activation buffer, whose memory the data pointers then show. Inputs may be written
    /// from now on. Throws std::bad_alloc.
    void plan(const graph& g) { engine_.place(g); }
    /// Gives each node marked `offload` a temporary extra that says where it lies on the device. Throws
    /// offload_exhausted.
    void attach(const graph& g) { engine_.attach(g); }
    /// Computes every node. Outputs are in host memory afterwards. The graph must be planned and attached; inputs
    /// written. Throws shape_error when an offloaded node reads a leaf that was not uploaded.
    void execute(const graph& g) { engine_.execute(g); }
    /// Ends the temporary extras now; the end of the eval does it otherwise.
    void detach() noexcept { temporaries_.reset(); }
    /// The first three, for a graph without inputs to be written in between.
    void run(const graph& g) {
        plan(g);
        attach(g);
        execute(g);
    }

private:
    friend class engine;
    explicit eval(engine& e) : engine_(e), temporaries_(std::in_place, e.extras_) {
        if (e.context_ != nullptr) {
            e.context_->reset();
            return;
        }
        e.context_ = e.contexts_.make({.bytes = e.options_.context_bytes,
                                       .buffer = {},
                                       .growing = e.options_.growing,
                                       .no_alloc = true,
                                       .bytes_behind_tensor = bytes_behind_tensor});
    }

    engine& engine_;
    std::optional<offload_scope<Extras>> temporaries_;
};

}  // namespace alloclab::tensor
