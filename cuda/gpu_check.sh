#!/usr/bin/env bash
# gpu_check.sh [OUT]: all that wants a GPU, in one command and within 8 minutes: builds the CUDA device for the GPUs
# that are here, checks it, measures what its calls cost and how the eval loop runs. Needs a CUDA toolkit, CMake, make
# or ninja and a C++ compiler; nothing else, and nothing is fetched. OUT (build/gpu by default) gets
#   checks.txt          a line a check
#   calibration.jsonl   the figures of a cost profile, for `alloclab run --device sim:FILE`
#   bench.jsonl         extra strategies by frames, and pools of device memory
#   summary.md          all of it in a dated table
#   build.log           what the tools said
# What is built lies in build/gpu-check and is built on the next time.
# Exit: 0 all passed, 1 something failed or took too long, 2 usage, 77 and one line when there is no device or toolkit.
set -uo pipefail

if (($# > 1)) || [[ ${1-} == -* ]]; then
    sed -n '2s/^# \([^:]*\):.*/usage: \1/p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
mkdir -p "${1:-$(dirname "${BASH_SOURCE[0]}")/../build/gpu}" || exit 2
out=$(cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../build/gpu}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${ALLOCLAB_GPU_BUILD:-build/gpu-check}
log=$out/build.log
end=$((SECONDS + 470))
failed=0

skip() { echo "skipped: $1"; exit 77; }

# limited SECONDS COMMAND...: no longer than that, nor than what is left of the whole. 124: it took too long.
limited() {
    local limit=$1 left=$((end - SECONDS))
    shift
    ((limit < left)) || limit=$left
    ((limit > 0)) || return 124
    timeout --kill-after=5 "$limit" "$@"
}

# step NAME SECONDS FILE COMMAND...: its output becomes FILE.
step() {
    local name=$1 limit=$2 file=$3 status=0
    shift 3
    echo "== $name"
    limited "$limit" "$@" >"$file" || status=$?
    case $status in
        0) ;;
        77) skip "$(tail -n 1 "$file" | sed 's/^skipped: //')" ;;
        124 | 137) echo "$name took longer than it may" | tee -a "$log"; failed=1 ;;
        *) echo "$name failed ($status); see $file"; failed=1 ;;
    esac
}

nvcc=${CUDACXX:-$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")}
[[ -x $nvcc ]] || skip "no CUDA toolkit: nvcc is not found"
command -v cmake >/dev/null || skip "cmake is not found"
command -v ninja make >/dev/null || skip "neither ninja nor make is found"

rm -f "$out"/{checks.txt,calibration.jsonl,bench.jsonl,summary.md,build.log}
mkdir -p "$build"
limited 60 "$nvcc" -o "$build/probe" cuda/check/probe.cpp >"$log" 2>&1 ||
    skip "nvcc does not work: $(grep -m1 . "$log")"
devices=$(limited 60 "$build/probe") || skip "${devices:-the first call of the runtime does not answer}"
architectures=$(cut -d' ' -f1 <<<"$devices" | sort -u | paste -sd';')
echo "$devices" | cut -d' ' -f2- | sed 's/^/device: /'

# Biggest first: should the time run out, what was built and checked is kept.
echo "== build"
generator=()
[[ -e $build/CMakeCache.txt ]] || ! command -v ninja >/dev/null || generator=(-G Ninja)
limited 60 cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" \
    -DCMAKE_CUDA_ARCHITECTURES="$architectures" -DALLOCLAB_CUDA=ON -DALLOCLAB_TESTS=OFF -DALLOCLAB_BENCH=OFF \
    >>"$log" 2>&1 || {
    why=$(tr '\n' ' ' <"$log" | tr -s ' ' | sed -n 's/.*ALLOCLAB_CUDA is ON, but \(.*\) Call Stack.*/\1/p')
    [[ -z $why ]] || skip "$why"
    echo "the configuration failed; see $log"
    exit 1
}
limited 280 cmake --build "$build" --parallel "$(nproc)" --target gpu_check gpu_bench calibrate >>"$log" 2>&1 || {
    echo "the build failed or took too long; see $log"
    exit 1
}

step checks 120 "$out/checks.txt" "$build/bin/gpu_check"
tail -n 1 "$out/checks.txt"
step calibration 100 "$out/calibration.jsonl" "$build/bin/calibrate" 75
step benchmark 60 "$out/bench.jsonl" "$build/bin/gpu_bench" 30

cuda/check/summary.sh "$out" "$(git describe --always --dirty 2>/dev/null || echo unknown)" >"$out/summary.md"
echo "summary: $out/summary.md"
exit "$failed"
