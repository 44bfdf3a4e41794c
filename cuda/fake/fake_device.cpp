#include <cstdio>

#include "fake_runtime.hpp"

namespace fake = alloclab::device::fake;
using fake::runtime;
using fake::serve;

namespace {

struct known_error {
    cudaError_t error;
    const char* name;
    const char* text;
};

// Those that the fake answers, or that its users ask it to.
constexpr known_error known_errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorCudartUnloading, "cudaErrorCudartUnloading", "driver shutting down"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "the driver is older than the runtime"},
    {cudaErrorStubLibrary, "cudaErrorStubLibrary", "the driver is a stub library"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered", "host memory is registered already"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered", "host memory is not registered"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the state forbids the call"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration", "missing launch configuration"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "two captures would become one"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable memory error"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "a capture has failed earlier"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "the capture did not begin in this stream"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "a capture would depend on work outside of it"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "a capture would depend on the legacy default stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "the event was last recorded in a capture"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "the capture began in another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const known_error* find_error(cudaError_t error) noexcept {
    for (const known_error& known : known_errors)
        if (known.error == error) return &known;
    return nullptr;
}

}  // namespace

// --- errors

cudaError_t cudaGetLastError() {
    const cudaError_t last = cudaPeekAtLastError();
    fake::this_thread().last_error = cudaSuccess;
    return last;
}

// What has broken the device is the last error for good.
cudaError_t cudaPeekAtLastError() {
    runtime& r = fake::the_runtime();
    const std::lock_guard hold(r.lock);
    return r.broken != cudaSuccess ? static_cast<cudaError_t>(r.broken) : fake::this_thread().last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
    const known_error* const known = find_error(error);
    return known != nullptr ? known->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    const known_error* const known = find_error(error);
    return known != nullptr ? known->text : "unrecognized error code";
}

// --- devices

cudaError_t cudaDriverGetVersion(int* version) {
    return serve<"cudaDriverGetVersion">([&](runtime&) {
        *version = CUDART_VERSION;
        return cudaSuccess;
    });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    return serve<"cudaRuntimeGetVersion">([&](runtime&) {
        *version = CUDART_VERSION;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceCount(int* count) {
    return serve<"cudaGetDeviceCount">([&](const runtime& r) {
        *count = static_cast<int>(r.devices.size());
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int* ordinal) {
    return serve<"cudaGetDevice">([&](runtime&) {
        *ordinal = fake::this_thread().device;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int ordinal) {
    return serve<"cudaSetDevice">([&](const runtime& r) {
        if (!r.is_device(ordinal)) return cudaErrorInvalidDevice;
        fake::this_thread().device = ordinal;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
    return serve<"cudaGetDeviceProperties">([&](runtime& r) {
        if (!r.is_device(ordinal)) return cudaErrorInvalidDevice;
        *properties = {};
        std::snprintf(properties->name, sizeof properties->name, "simulated device %d", ordinal);
        properties->totalGlobalMem = r.device(ordinal).capacity();
        properties->major = 9;
        properties->warpSize = 32;
        properties->maxThreadsPerBlock = 1024;
        properties->multiProcessorCount = 132;
        properties->memoryPoolsSupported = 1;
        properties->unifiedAddressing = 1;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
    return serve<"cudaDeviceGetAttribute">([&](const runtime& r) {
        if (!r.is_device(ordinal)) return cudaErrorInvalidDevice;
        switch (attribute) {
            case cudaDevAttrComputeCapabilityMajor:
                *value = 9;
                return cudaSuccess;
            case cudaDevAttrMaxThreadsPerBlock:
                *value = 1024;
                return cudaSuccess;
            case cudaDevAttrMultiProcessorCount:
                *value = 132;
                return cudaSuccess;
            case cudaDevAttrWarpSize:
                *value = 32;
                return cudaSuccess;
            case cudaDevAttrMaxGridDimX:
                *value = 0x7fffffff;
                return cudaSuccess;
            case cudaDevAttrMaxGridDimY:
            case cudaDevAttrMaxGridDimZ:
                *value = 0xffff;
                return cudaSuccess;
            case cudaDevAttrMaxSharedMemoryPerBlock:
                *value = 48 << 10;
                return cudaSuccess;
            case cudaDevAttrMemoryPoolsSupported:
            case cudaDevAttrUnifiedAddressing:
                *value = 1;
                return cudaSuccess;
            case cudaDevAttrComputeCapabilityMinor:
            case cudaDevAttrIntegrated:
                *value = 0;
                return cudaSuccess;
            default:
                return cudaErrorInvalidValue;
        }
    });
}

cudaError_t cudaDeviceSynchronize() {
    return serve<"cudaDeviceSynchronize", fake::waits | fake::unsafe>([](runtime& r) {
        const cudaError_t e = r.spoil_captures_of(fake::this_thread().device);
        return e != cudaSuccess ? e : runtime::answer(r.current().synchronize(), r.current());
    });
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
    return serve<"cudaMemGetInfo">([&](runtime& r) {
        *available = r.available(fake::this_thread().device);
        *total = r.current().capacity();
        return cudaSuccess;
    });
}
