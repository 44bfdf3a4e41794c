#include "fake_runtime.hpp"

namespace fake = alloclab::device::fake;
using alloclab::device::sim_device;
using alloclab::device::stream;
using alloclab::device::stream_kind;
using fake::runtime;
using fake::serve;
using fake::stream_at;

// --- streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
    return serve<"cudaStreamCreateWithFlags">([&](runtime& r) {
        if ((flags & ~unsigned{cudaStreamNonBlocking}) != 0) return cudaErrorInvalidValue;
        sim_device& d = r.current();
        const auto kind = flags == cudaStreamNonBlocking ? stream_kind::non_blocking : stream_kind::blocking;
        fake::stream_entry entry{.device = fake::this_thread().device, .flags = flags};
        try {
            entry.at = d.create_stream(kind);
        } catch (const std::bad_alloc&) {
            return runtime::refusal(d, cudaErrorMemoryAllocation);
        }
        *s = r.streams.add(entry);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
    return serve<"cudaStreamDestroy", fake::gives_back>([&](runtime& r) {
        const fake::stream_entry* const entry = r.streams.find(s);
        if (entry == nullptr) return cudaErrorInvalidResourceHandle;
        if (entry->captured_by != nullptr && entry->began) r.end(*entry->captured_by);
        sim_device& d = r.device(entry->device);
        const bool done = d.destroy(entry->at);
        r.streams.remove(s);
        return runtime::answer(done, d);
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    return serve<"cudaStreamSynchronize", fake::waits | fake::unsafe>([&](runtime& r) {
        const std::optional<stream_at> at = r.find(s);
        if (!at) return cudaErrorInvalidResourceHandle;
        if (fake::capture* const c = at->captured()) return c->spoil();
        if (const cudaError_t e = r.implicit(*at); e != cudaSuccess) return e;
        return runtime::answer(at->on->synchronize(at->at), *at->on);
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    return serve<"cudaStreamWaitEvent">([&](runtime& r) {
        const std::optional<stream_at> at = r.find(s);
        const fake::event_entry* const event = r.events.find(e);
        if (!at || event == nullptr) return cudaErrorInvalidResourceHandle;
        if (flags != cudaEventWaitDefault) return cudaErrorNotSupported;
        fake::capture* const captured = at->captured();
        fake::capture* const from = event->captured_by.get();
        if (captured != nullptr && captured->invalid) return cudaErrorStreamCaptureInvalidated;
        if (from == nullptr && captured == nullptr) {
            if (const cudaError_t error = r.implicit(*at); error != cudaSuccess) return error;
            return runtime::answer(at->on->wait(at->at, event->at), *at->on);
        }
        if (from == captured) return cudaSuccess;  // a graph does its work in the order in which it was given
        if (from == nullptr) return event->recorded ? captured->spoil(cudaErrorStreamCaptureIsolation) : cudaSuccess;
        if (captured != nullptr) {
            from->spoil();
            return captured->spoil(cudaErrorStreamCaptureMerge);
        }
        if (at->entry == nullptr) return from->spoil(cudaErrorStreamCaptureImplicit);
        if (from->invalid || from->ended) return cudaErrorInvalidValue;
        at->entry->captured_by = event->captured_by;  // the stream joins the capture
        return cudaSuccess;
    });
}

// --- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
    return serve<"cudaEventCreateWithFlags">([&](runtime& r) {
        sim_device& d = r.current();
        const fake::event_entry entry{.device = fake::this_thread().device, .at = d.create_event(), .flags = flags};
        if (entry.at == alloclab::device::event::none) return runtime::refusal(d, cudaErrorMemoryAllocation);
        *e = r.events.add(entry);
        return cudaSuccess;
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
    return serve<"cudaEventDestroy", fake::gives_back>([&](runtime& r) {
        const fake::event_entry* const event = r.events.find(e);
        if (event == nullptr) return cudaErrorInvalidResourceHandle;
        r.device(event->device).destroy(event->at);
        r.events.remove(e);
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    return serve<"cudaEventRecord">([&](runtime& r) {
        const std::optional<stream_at> at = r.find(s);
        fake::event_entry* const event = r.events.find(e);
        if (!at || event == nullptr || event->device != at->device) return cudaErrorInvalidResourceHandle;
        if (fake::capture* const c = at->captured()) {
            if (c->invalid) return cudaErrorStreamCaptureInvalidated;
            event->captured_by = at->entry->captured_by;
            return cudaSuccess;
        }
        if (const cudaError_t error = r.implicit(*at); error != cudaSuccess) return error;
        if (!at->on->record(event->at, at->at)) return runtime::refusal(*at->on);
        event->captured_by = nullptr;
        event->recorded = true;
        return cudaSuccess;
    });
}

namespace {

// What an event answers to those who ask for its completion: nothing, unless it is part of a graph.
cudaError_t captured(const fake::event_entry& event) noexcept {
    if (event.captured_by == nullptr) return cudaSuccess;
    return event.captured_by->spoil(cudaErrorCapturedEvent);
}

}  // namespace

cudaError_t cudaEventQuery(cudaEvent_t e) {
    return serve<"cudaEventQuery", fake::waits | fake::unsafe>([&](runtime& r) {
        const fake::event_entry* const event = r.events.find(e);
        if (event == nullptr) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = captured(*event); error != cudaSuccess) return error;
        sim_device& d = r.device(event->device);
        const std::size_t faults = d.usage().faults;
        if (d.done(event->at)) return cudaSuccess;
        return d.usage().faults == faults ? cudaErrorNotReady : runtime::refusal(d);
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    return serve<"cudaEventSynchronize", fake::waits | fake::unsafe>([&](runtime& r) {
        const fake::event_entry* const event = r.events.find(e);
        if (event == nullptr) return cudaErrorInvalidResourceHandle;
        if (const cudaError_t error = captured(*event); error != cudaSuccess) return error;
        sim_device& d = r.device(event->device);
        return runtime::answer(d.synchronize(event->at), d);
    });
}

// --- captures and graphs

// The per-thread default stream cannot be captured here, though it can with the runtime.
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    return serve<"cudaStreamBeginCapture">([&](runtime& r) {
        const std::optional<stream_at> at = r.find(s);
        if (!at) return cudaErrorInvalidResourceHandle;
        if (at->entry == nullptr) return cudaErrorStreamCaptureUnsupported;
        if (at->captured() != nullptr) return cudaErrorIllegalState;
        at->entry->captured_by =
            std::make_shared<fake::capture>(fake::capture{.mode = mode,
                                                          .thread = std::this_thread::get_id(),
                                                          .device = at->device,
                                                          .blocking = (at->entry->flags & cudaStreamNonBlocking) == 0});
        at->entry->began = true;
        r.captures.push_back(at->entry->captured_by);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
    return serve<"cudaStreamEndCapture">([&](runtime& r) {
        *graph = nullptr;
        const std::optional<stream_at> at = r.find(s);
        if (!at) return cudaErrorInvalidResourceHandle;
        if (at->captured() == nullptr) return cudaErrorIllegalState;
        const std::shared_ptr<fake::capture> c = at->entry->captured_by;
        if (!at->entry->began) return c->spoil(cudaErrorStreamCaptureUnmatched);
        if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
            return cudaErrorStreamCaptureWrongThread;
        r.end(*c);
        if (c->invalid) return cudaErrorStreamCaptureInvalidated;
        *graph = r.graphs.add(std::make_shared<std::vector<fake::node>>(std::move(c->nodes)));
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
    return serve<"cudaStreamIsCapturing">([&](runtime& r) {
        const std::optional<stream_at> at = r.find(s);
        if (!at) return cudaErrorInvalidResourceHandle;
        if (r.is_implicated(*at)) return cudaErrorStreamCaptureImplicit;  // and the capture stays good
        const fake::capture* const c = at->captured();
        *status = c == nullptr ? cudaStreamCaptureStatusNone
                  : c->invalid ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    return serve<"cudaThreadExchangeStreamCaptureMode">([&](runtime&) {
        std::swap(*mode, fake::this_thread().mode);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    return serve<"cudaGraphInstantiate">([&](runtime& r) {
        const auto* const nodes = r.graphs.find(graph);
        if (nodes == nullptr) return cudaErrorInvalidValue;
        *executable = r.executables.add(*nodes);
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return serve<"cudaGraphDestroy", fake::gives_back>(
        [&](runtime& r) { return r.graphs.remove(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return serve<"cudaGraphExecDestroy", fake::gives_back>(
        [&](runtime& r) { return r.executables.remove(executable) ? cudaSuccess : cudaErrorInvalidValue; });
}

// One after the other, also what came from several streams: a legal order of theirs.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t s) {
    return serve<"cudaGraphLaunch">([&](runtime& r) {
        const auto* const nodes = r.executables.find(executable);
        if (nodes == nullptr) return cudaErrorInvalidValue;
        return r.give(s, [all = *nodes](sim_device& d, stream on) {
            for (const fake::node& work : *all)
                if (const cudaError_t e = work(d, on); e != cudaSuccess) return e;
            return cudaSuccess;
        });
    });
}
