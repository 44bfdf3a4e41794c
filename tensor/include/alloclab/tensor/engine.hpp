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
//
// With several frames an eval is submitted, and runs while the host builds the next one: each has a context,
// temporaries, buffers and a stream of its own, closed by an event, for which the host waits when the frame comes round
// again. Until then outputs stay in host memory, where they are once the eval was waited for. Choose two where the host
// has work beside the device's, more where evals are small. Caches and what else evals write they use in the order of
// the evals.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alloclab/bytes.hpp"
#include "alloclab/concepts.hpp"
#include "alloclab/extra/offload_scope.hpp"
#include "alloclab/tensor/backend.hpp"
#include "alloclab/tensor/context.hpp"
#include "alloclab/tensor/eval_frame.hpp"
#include "alloclab/tensor/event_pool.hpp"
#include "alloclab/tensor/offload_errors.hpp"
#include "alloclab/tensor/planner.hpp"

namespace alloclab::tensor {

struct engine_options {
    std::size_t context_bytes = std::size_t{1} << 20;  ///< of an eval's context, before it grows
    growth growing = {};
    bool reset_context = true;  ///< one context a frame, reset for each eval; false: a new one for each
    std::size_t frames = 1;     ///< evals in flight; with 1, and 0, each is over when `submit` returns
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

    /// The device must outlive the engine. Throws std::bad_alloc.
    explicit engine(Device& device, const engine_options& options = {}) : engine(device, options, whole{}) {
        for (std::size_t i = 0; i < options_.frames && options_.frames > 1; ++i)
            frames_.emplace_back(i, device_.default_stream()).stream = device_.create_stream();
    }
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    /// Waits for what was submitted.
    ~engine() {
        for (frame& f : frames_) device_.synchronize(f.stream);
        leaves_.reset();
        for (tensor* t : uploaded_) drop(t);
        device_.deallocate(only_.device_buffer);
        for (frame& f : frames_) {
            device_.deallocate(f.device_buffer);
            events_.release(f.closing);
            if (f.stream != device_.default_stream()) device_.destroy(f.stream);
        }
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
            extra_type* extra = acquire(only_.extras, lifetime::persistent, t);
            if (extra == nullptr) {
                device_.deallocate(memory);
                throw offload_exhausted("extra", 1, 0);
            }
            extra->place(0, memory);
            t->extra = extra;
            uploaded_.push_back(t);
            must(device_.copy_to_device(memory, t->data, t->bytes(), only_.stream), "a copy to the device");
        }
        must(device_.synchronize(only_.stream), "to synchronize");
    }

    /// Starts an eval; one at a time. With several frames it takes the next one in turn, and waits until that one's
    /// last eval is through. Throws context_exhausted, device_refused.
    [[nodiscard]] eval begin_eval() { return eval(*this); }
    /// Waits for all that was submitted. Throws device_refused.
    void synchronize() {
        wait(only_);
        for (frame& f : frames_) wait(f);
    }

    [[nodiscard]] contexts<Slots, Buffers>& context_source() noexcept { return contexts_; }
    /// Of the uploaded leaves and, with one frame, of the temporaries.
    [[nodiscard]] Extras& extras() noexcept { return only_.extras; }
    /// Of all frames.
    [[nodiscard]] struct usage extras_usage() const noexcept requires measured<Extras> {
        struct usage all = only_.extras.usage();
        for (const frame& f : frames_) all = all + f.extras.usage();
        return all;
    }
    [[nodiscard]] const planner& plan() const noexcept { return planner_; }
    [[nodiscard]] const event_pool<Device>& events() const noexcept { return events_; }

private:
    using frame = eval_frame<Extras, Device>;
    struct whole {};  // from here on the destructor gives back what the constructor took

    engine(Device& device, const engine_options& options, whole)
        : device_(device), options_(options), events_(device), only_(0, device.default_stream()) {
        leaves_.emplace(device_, events_, frames_);
    }

    void must(bool done, std::string_view what) const {
        if (!done) refuse(what);
    }
    [[noreturn, gnu::cold]] void refuse(std::string_view what) const {
        std::string text = std::string(Device::name) + " refused " + std::string(what);
        if (const std::string_view why = device_.last_error(); !why.empty()) text.append(": ").append(why);
        throw device_refused(text);
    }
    [[nodiscard]] static extra_type& extra_of(const tensor& t) noexcept { return *static_cast<extra_type*>(t.extra); }

    extra_type* acquire(Extras& extras, lifetime life, [[maybe_unused]] tensor* t) noexcept {
        if constexpr (embedded_extra_strategy<Extras>) return extras.acquire(life, context::behind(t));
        else return extras.acquire(life);
    }
    void drop(tensor* t) noexcept {
        device_.deallocate(extra_of(*t).data(0));
        only_.extras.release(&extra_of(*t));
        t->extra = nullptr;
    }

    [[nodiscard]] bool overlaps() const noexcept { return !frames_.empty(); }
    [[nodiscard]] frame& begin() {
        if (only_.context == nullptr) return begin_anew();
        only_.context->reset();
        return only_;
    }
    // Several frames, or a new context for each eval.
    [[nodiscard, gnu::noinline]] frame& begin_anew() {
        frame& f = overlaps() ? next_frame() : only_;
        if (f.context != nullptr) f.context->reset();
        else
            f.context = contexts_.make({.bytes = options_.context_bytes,
                                        .buffer = {},
                                        .growing = options_.growing,
                                        .no_alloc = true,
                                        .bytes_behind_tensor = bytes_behind_tensor});
        return f;
    }
    [[nodiscard]] frame& next_frame() {
        frame& f = frames_[turn_];
        if (f.closing != typename Device::event{} && !device_.done(f.closing))
            must(device_.synchronize(f.closing), "to wait for an event");
        turn_ = (turn_ + 1) % frames_.size();
        f.host_ready = f.device_ready = 0;
        f.submitted = f.copying = f.new_extras = false;
        // The frame's bracket is around the eval's own, so that temporaries live until the device is through with them.
        f.extras.end_eval();
        f.extras.begin_eval();
        if (!options_.reset_context) f.context.reset();
        return f;
    }
    [[gnu::cold]] void end(frame& f) noexcept {
        if (!overlaps()) return f.context.reset();
        if (f.closing == typename Device::event{}) f.closing = events_.acquire();
        const bool closes = f.closing != typename Device::event{} && device_.record(f.closing, f.stream);
        if (!closes) device_.synchronize(f.stream);
    }
    void wait(frame& f) {
        must(device_.synchronize(f.stream), "to synchronize");
        f.submitted = f.copying = false;
    }

    void place(frame& f, const graph& g) {
        planner_.plan(g);
        if (planner_.bytes() > f.host_ready) make_host_room(f);
        for (const placement& p : planner_.placements()) p.of->data = f.host_buffer.get() + p.offset;
        for (tensor* t : g.nodes()) {
            if (t->op == op::view) t->data = at(t->sources[0]->data, t->params.offset);
            else if (t->op == op::copy) t->data = t->sources[1]->data;
        }
    }
    [[gnu::cold]] void make_host_room(frame& f) {
        if (f.submitted) wait(f);
        if (planner_.bytes() > f.host_bytes) {
            if constexpr (checks_order<Device>)
                if (overlaps() && f.host_bytes != 0)
                    device_.host_touches(f.host_buffer.get(), f.host_bytes, Device::writes,
                                         "a buffer that is given up");
            f.host_buffer.reset();
            f.host_bytes = f.host_ready = 0;
            f.host_buffer.reset(
                static_cast<std::byte*>(::operator new (planner_.bytes(), std::align_val_t{planner::alignment})));
            f.host_bytes = planner_.bytes();
        }
        f.host_ready = f.host_bytes;
        if constexpr (checks_order<Device>) {
            if (!overlaps()) return;
            for (const placement& p : planner_.placements())
                if (p.of->input)
                    device_.host_touches(f.host_buffer.get() + p.offset, p.bytes, Device::writes,
                                         label("host bytes of", name_of(f, *p.of), *p.of));
        }
    }

    void attach(frame& f, const graph& g) {
        const auto nodes = g.nodes();
        auto next = std::find_if(nodes.begin(), nodes.end(), [](const tensor* t) { return t->offload; });
        if (next != nodes.end() && planner_.bytes() > f.device_ready) make_device_room(f);
        for (; next != nodes.end(); ++next) {
            tensor* t = *next;
            if (!t->offload) continue;
            extra_type* extra = acquire(f.extras, lifetime::temporary, t);
            if (extra == nullptr) throw offload_exhausted("extra", 1, 0);
            t->extra = extra;
            extra->place(0, t->is_alias() ? device_address(f, *t) : mirror(f, *t));
        }
    }
    // A frame's stream is the only one that uses its buffer, so no other one has to stop for it.
    [[gnu::cold]] void make_device_room(frame& f) {
        f.new_extras = true;
        if (planner_.bytes() > f.device_bytes) {
            f.device_bytes = f.device_ready = 0;
            void* const old = std::exchange(f.device_buffer, nullptr);
            if (overlaps()) {
                device_.deallocate(old, f.stream);
                f.device_buffer = device_.allocate(planner_.bytes(), f.stream);
            } else {
                device_.deallocate(old);
                f.device_buffer = device_.allocate(planner_.bytes());
            }
            if (f.device_buffer == nullptr)
                throw offload_exhausted("device memory", planner_.bytes(), device_.available_bytes());
            f.device_bytes = planner_.bytes();
        }
        f.device_ready = f.device_bytes;
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
    [[nodiscard]] void* mirror(const frame& f, const tensor& root) const noexcept {
        return at(f.device_buffer, static_cast<std::size_t>(static_cast<std::byte*>(root.data) - f.host_buffer.get()));
    }
    // nullptr for what looks at a leaf that is not on the device.
    [[nodiscard]] void* device_address(const frame& f, const tensor& t) const noexcept {
        const tensor& root = t.root();
        if (root.op == op::none && !root.input && root.extra == nullptr) return nullptr;
        void* base = at_home_on_device(root) ? extra_of(root).data(0) : mirror(f, root);
        return at(base, static_cast<std::size_t>(static_cast<std::byte*>(t.data) - static_cast<std::byte*>(root.data)));
    }

    // Makes the memory that `source` looks at readable on the side of its reader.
    void bring(frame& f, const graph& g, const tensor& source, bool to_device) {
        const tensor& root = source.root();
        const bool on_device = at_home_on_device(root);
        if (on_device == to_device) return;
        if (root.op == op::none && !root.input) {
            // An uploaded leaf is the same on both sides until a copy has written to it on the device.
            if (to_device) throw shape_error("an offloaded tensor reads a leaf that was not uploaded");
            if (std::erase(written_, &root) != 0) fetch(f, root);
            return;
        }
        std::uint8_t& brought = brought_[planner_.index_of(g, root)];
        if (std::exchange(brought, std::uint8_t{1}) != 0) return;
        if (!to_device) return fetch(f, root);
        must(call(f, root,
                  [&](auto... called) {
                      return device_.copy_to_device(mirror(f, root), root.data, root.bytes(), f.stream, called...);
                  }),
             "a copy to the device");
        f.copying = true;
    }
    void fetch(frame& f, const tensor& root) {
        copy_home(f, root);
        wait(f);
    }
    void copy_home(frame& f, const tensor& root) {
        begin_use(f, root);
        must(call(f, root,
                  [&](auto... called) {
                      return device_.copy_to_host(root.data, extra_of(root).data(0), root.bytes(), f.stream, called...);
                  }),
             "a copy to the host");
    }

    void submit(frame& f, const graph& g) {
        try {
            if (overlaps()) leaves_->look_at(g);
            enqueue(f, g);
            if (!overlaps()) wait(f);
        } catch (...) {
            device_.synchronize(f.stream);  // what was given to it must not be overtaken, and no event says how far
            f.submitted = f.copying = false;
            throw;
        }
    }
    void enqueue(frame& f, const graph& g) {
        brought_.assign(planner_.placements().size(), 0);
        f.submitted = true;
        if constexpr (checks_order<Device>)
            if (overlaps() && f.new_extras) tell_of_new_extras(f, g);
        if (planner_.bytes() > f.device_ready && anything_on_device(g)) make_device_room(f);
        f.new_extras = false;
        const auto nodes = g.nodes();
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const tensor* t = nodes[i];
            if (t->op == op::view) continue;
            const bool on_device = runs_on_device(*t);
            // The target of a copy is written, not read, but its other bytes must be where the write goes.
            for (const tensor* source : t->sources)
                if (source != nullptr) bring(f, g, *source, on_device);
            if (on_device) launch(f, *t);
            else compute_on_host(f, *t);
            if (t->op == op::copy) written(g, t->root(), on_device);
            end_uses(f, i);
        }
        for (const tensor* t : nodes)
            if (t->output && at_home_on_device(t->root())) copy_home(f, t->root());
        end_uses(f, nodes.size());
        if (overlaps()) f.host_ready = f.device_ready = 0;
    }
    [[nodiscard]] static bool anything_on_device(const graph& g) noexcept {
        return std::any_of(g.nodes().begin(), g.nodes().end(), [](const tensor* t) { return runs_on_device(*t); });
    }
    void begin_use(frame& f, const tensor& root) {
        if (overlaps()) must(leaves_->begin(f, root), "to wait for another frame's event");
    }
    void end_uses(frame& f, std::size_t node) {
        if (overlaps()) must(leaves_->end(f, node), "to record an event");
    }

    void launch(frame& f, const tensor& t) {
        tensor on_device = t;
        std::array<tensor, max_sources> sources;
        on_device.data = device_address(f, t);
        begin_use(f, t.root());
        for (std::size_t i = 0; i < max_sources; ++i) {
            if (t.sources[i] == nullptr) continue;
            sources[i] = *t.sources[i];
            sources[i].data = device_address(f, *t.sources[i]);
            on_device.sources[i] = &sources[i];
            begin_use(f, t.sources[i]->root());
        }
        must(call(f, t, [&](auto... called) { return device_.launch(on_device, f.stream, called...); }),
             alloclab::tensor::name_of(t.op));
        if constexpr (checks_order<Device>) {
            if (!overlaps()) return;
            tell_of_extra(f, t);
            for (const tensor* source : t.sources)
                if (source != nullptr) tell_of_extra(f, source->root());
        }
    }
    // The planner may give it bytes that an earlier tensor, still being copied to the device, had.
    void compute_on_host(frame& f, const tensor& t) {
        if (f.copying) wait(f);
        if constexpr (checks_order<Device>) {
            device_.host_touches(t.data, t.bytes(), Device::writes, name_of(f, t));
            for (const tensor* source : t.sources)
                if (source != nullptr)
                    device_.host_touches(source->data, source->bytes(), Device::reads, name_of(f, t));
        }
        compute(t);
    }

    // The name goes along where the device takes one.
    template <class Call>
    [[nodiscard]] bool call([[maybe_unused]] const frame& f, [[maybe_unused]] const tensor& t, Call made) const {
        if constexpr (checks_order<Device>) return made(name_of(f, t));
        else return made();
    }
    [[nodiscard]] static std::string_view name_of(const frame& f, const tensor& t) noexcept {
        return f.context->name_of(&t);
    }
    void tell_of_new_extras(const frame& f, const graph& g) noexcept {
        for (const tensor* t : g.nodes())
            if (t->offload)
                device_.host_touches(t->extra, sizeof(extra_type), Device::writes,
                                     label("extra of", name_of(f, *t), *t));
    }
    void tell_of_extra(const frame& f, const tensor& t) noexcept {
        if (t.extra != nullptr)
            device_.also_touches(f.stream, t.extra, sizeof(extra_type), Device::reads,
                                 label("extra of", name_of(f, t), t));
    }

    // What another side has of `root` is old from now on.
    void written(const graph& g, const tensor& root, bool on_device) {
        if (root.op != op::none || root.input) brought_[planner_.index_of(g, root)] = 0;
        else if (on_device && std::find(written_.begin(), written_.end(), &root) == written_.end())
            written_.push_back(&root);
    }

    Device& device_;
    engine_options options_;
    bool keeps_context_ = options_.reset_context && options_.frames <= 1;
    contexts<Slots, Buffers> contexts_;
    event_pool<Device> events_;
    frame only_;                // the one frame; of several only the persistent extras' home
    std::deque<frame> frames_;  // empty where there is one
    std::size_t turn_ = 0;
    std::optional<shared_leaves<Extras, Device>> leaves_;
    last_order order_;
    planner planner_;
    std::vector<tensor*> uploaded_;
    std::vector<const tensor*> written_;  // uploaded leaves whose host copy is old
    std::vector<std::uint8_t> brought_;   // by placement: copied to the other side in this eval
};

/// One pass; the end of its life ends it. Tensors, graphs and extras made in it are gone then; with several frames they
/// stay until the frame comes round again, and so do the outputs' bytes.
template <slot_strategy Slots, any_extra_strategy Extras, device_backend Device, memory_source Buffers>
class engine<Slots, Extras, Device, Buffers>::eval {
public:
    eval(const eval&) = delete;
    eval& operator=(const eval&) = delete;
    ~eval() {
        if (!engine_.keeps_context_) engine_.end(frame_);
    }

    /// Where this eval's tensors and graph are made.
    [[nodiscard]] alloclab::tensor::context& context() noexcept { return *frame_.context; }
    /// A graph of at most `max_nodes` nodes that reuses the order of the one that the last eval made here. Throws
    /// context_exhausted.
    graph* new_graph(std::size_t max_nodes) {
        graph* made = context().new_graph(max_nodes);
        made->follow(engine_.order_);
        return made;
    }
    /// Places every result in the activation buffer, whose memory the data pointers then show. Inputs may be written
    /// from now on. Throws std::bad_alloc.
    void plan(const graph& g) { engine_.place(frame_, g); }
    /// Gives each node marked `offload` a temporary extra that says where it lies on the device. Throws
    /// offload_exhausted.
    void attach(const graph& g) { engine_.attach(frame_, g); }
    /// Gives the device all of its nodes and the copies of the outputs to host memory, and computes the host's nodes,
    /// for which it waits where these need something of the device. The graph must be planned and attached, inputs
    /// written. Throws shape_error when an offloaded node reads a leaf that was not uploaded, device_refused.
    void submit(const graph& g) { engine_.submit(frame_, g); }
    /// Outputs are in host memory afterwards. Throws device_refused.
    void wait() { engine_.wait(frame_); }
    /// Both.
    void execute(const graph& g) {
        submit(g);
        if (engine_.overlaps()) wait();
    }
    /// Ends the temporary extras now, with several frames as soon as the device is through with them; the end of the
    /// eval does it otherwise.
    void detach() noexcept { temporaries_.reset(); }
    /// The first three, for a graph without inputs to be written in between.
    void run(const graph& g) {
        plan(g);
        attach(g);
        execute(g);
    }

private:
    friend class engine;
    explicit eval(engine& e) : engine_(e), frame_(e.begin()), temporaries_(std::in_place, frame_.extras) {}

    engine& engine_;
    frame& frame_;
    std::optional<offload_scope<Extras>> temporaries_;
};

}  // namespace alloclab::tensor
