#!/usr/bin/env bash
# Tests and benchmarks of a build on a machine with a GPU. `tests/gpu/run.sh --help` says how.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
  cat <<'TEXT'
usage: tests/gpu/run.sh [options] [build folder]

Runs what needs a GPU, from a folder with `bin/` that may have been built elsewhere and carried here
(default: build/release); needs neither CMake nor a compiler. Logs and JSON go to an output folder;
the last thing printed is a table. The exit code is 0 if nothing failed.

  --out DIR        where logs and JSON go (default: gpu-results in the current folder)
  --only PARTS     some of tests,memcheck,traces,bench (default: all)
  --filter TESTS   which cases of the test programs, as gtest's --gtest_filter takes them
  --device DEVICE  cuda (default) or cuda:N: for traces and benchmarks
  --data DIR       tests/data (default: the one beside this script)
  --timeout N      seconds that one program may run (default: 900)
  --help           this text

  tests     bin/rondo_cuda_tests and other bin/rondo_cuda_*_tests: the conformance suites, programs,
            traces against PyTorch's results
  memcheck  compute-sanitizer on some of the tests, and on rondo-run with every trace
  traces    rondo-run --check on every recorded trace that can be run
  bench     rondo-bench, and its peer in PyTorch where that can be imported, with what both measured
            side by side

The library that RONDO_CUDNN_LIBRARY names is used for attention; by default the one of Python's
package nvidia.cudnn, or what the loader finds. Which attentions it takes is in the log of the tests.
TEXT
}

fail() {
  echo "run.sh: $*" >&2
  exit 2
}

build=$root/build/release
out=$PWD/gpu-results
only=tests,memcheck,traces,bench
filter='*'
device=cuda
data=$root/tests/data
limit=900
while (($#)); do
  case $1 in
    --out | --only | --filter | --device | --data | --timeout)
      (($# > 1)) || fail "$1 needs a value"
      case $1 in
        --out) out=$2 ;;
        --only) only=$2 ;;
        --filter) filter=$2 ;;
        --device) device=$2 ;;
        --data) data=$2 ;;
        --timeout) limit=$2 ;;
      esac
      shift 2
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) fail "unknown option '$1'; --help lists them" ;;
    *)
      build=$1
      shift
      ;;
  esac
done
for part in ${only//,/ }; do
  case $part in
    tests | memcheck | traces | bench) ;;
    *) fail "unknown part '$part'; parts are: tests, memcheck, traces, bench" ;;
  esac
done
bin=$build/bin
[[ -d $bin ]] || fail "there is no folder '$bin'"
[[ -d $data/traces ]] || fail "there is no folder '$data/traces'; --data names tests/data"
mkdir -p "$out" || fail "cannot make '$out'"
out=$(cd "$out" && pwd)
bin=$(cd "$bin" && pwd)
data=$(cd "$data" && pwd)

export RONDO_REQUIRE_GPU=1 RONDO_TEST_DATA_DIR=$data RONDO_BIN_DIR=$bin

# cuDNN need not be there. Often it is where PyTorch brought it, which the loader does not know.
if [[ -z ${RONDO_CUDNN_LIBRARY:-} ]]; then
  cudnn=$(python3 -c 'import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null)
  if [[ -n $cudnn && -f $cudnn/lib/libcudnn.so.9 ]]; then
    export RONDO_CUDNN_LIBRARY=$cudnn/lib/libcudnn.so.9
  fi
fi

# Traces whose values were recorded and whose ops all have kernels.
traces=(mlp branchy gpt_tiny gpt_tiny_math gpt_tiny_checkpoint gpt_tiny_dropout llama_tiny
  llama_tiny_bf16 decode_tiny adam)

names=() outcomes=() times=() notes=()

wants() {
  [[ ,$only, == *,$1,* ]]
}

record() {
  names+=("$1") outcomes+=("$2") times+=("$3") notes+=("${4:-}")
  printf '%-8s %s (%s s) %s\n' "$2" "$1" "$3" "${4:-}"
}

# step <name> <log> <command...>: runs it with a time limit; its output goes to the log.
step() {
  local name=$1 log=$out/$2 begin=$SECONDS code note=""
  shift 2
  timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1
  code=$?
  case $code in
    0) ;;
    124 | 137) note="took more than $limit s; see $log" ;;
    *) note="exit code $code; see $log" ;;
  esac
  record "$name" "$([[ $code == 0 ]] && echo passed || echo FAILED)" $((SECONDS - begin)) "$note"
  return $code
}

skip() {
  record "$1" skipped 0 "$2"
}

# Adds to the last line of the table what a test program's log says of its cases.
note_cases() {
  local log=$out/$1 passed failed skipped
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*/\1/p' "$log" | tail -n 1)
  failed=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\{0,1\}, listed below.*/\1/p' "$log" | tail -n 1)
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}, listed below.*/\1/p' "$log" | tail -n 1)
  notes[-1]="${passed:-0} cases passed, ${failed:-0} failed, ${skipped:-0} skipped${notes[-1]:+; ${notes[-1]}}"
}

run_tests() {
  local program name found=0
  for program in "$bin"/rondo_cuda_tests "$bin"/rondo_cuda_*_tests; do
    [[ -x $program ]] || continue
    found=1
    name=$(basename "$program")
    step "$name" "$name.log" "$program" --gtest_filter="$filter" --gtest_output="json:$out/$name.json"
    note_cases "$name.log"
    sed -n 's/^\[  FAILED  \] \(.*[a-zA-Z/].*\) (.*/  failed: \1/p' "$out/$name.log" | sort -u | head -n 40
  done
  if ((!found)); then
    record rondo_cuda_tests FAILED 0 "not in $bin"
  fi
}

run_memcheck() {
  local sanitizer trace op subset
  sanitizer=$(command -v compute-sanitizer || true)
  if [[ -z $sanitizer && -x /usr/local/cuda/bin/compute-sanitizer ]]; then
    sanitizer=/usr/local/cuda/bin/compute-sanitizer
  fi
  if [[ -z $sanitizer ]]; then
    skip memcheck "compute-sanitizer was not found"
    return
  fi
  # Errors that tests provoke on purpose are reported by calls, not by accesses.
  local check=("$sanitizer" --tool memcheck --error-exitcode 99 --report-api-errors no
    --print-limit 20)
  subset='CUDALifetimeTest.TwoTransforms:CUDACasesTest.Case15*:CUDAReplayMemoryTest.*'
  subset+=':CUDARecordedTest.EqualsPyTorch/mlp:CUDARecordedTest.EqualsPyTorch/decode_tiny'
  for op in add sum cumsum softmax layer_norm_backward cross_entropy cat index_put embedding_backward \
    sort dropout mm scaled_dot_product_attention scaled_dot_product_attention_backward; do
    subset+=":CUDAAlone/OpConformance.AgreesWithTheHost/${op}_bf16"
  done
  if [[ -x $bin/rondo_cuda_tests ]]; then
    step "memcheck tests" memcheck-tests.log "${check[@]}" "$bin/rondo_cuda_tests" \
      --gtest_filter="$subset"
    note_cases memcheck-tests.log
  fi
  for trace in "${traces[@]}"; do
    step "memcheck $trace" "memcheck-$trace.log" "${check[@]}" "$bin/rondo-run" \
      --device="$device" --steps=2 "$data/traces/$trace.json"
  done
}

run_traces() {
  local trace
  for trace in "${traces[@]}"; do
    step "trace $trace" "trace-$trace.log" "$bin/rondo-run" --device="$device" --check \
      --feed-masks --steps=20 "$data/traces/$trace.json"
  done
  step "trace gpt2_small_bf16" trace-gpt2_small_bf16.log "$bin/rondo-run" --device="$device" \
    --steps=2 "$data/traces/gpt2_small_bf16.json"
}

run_bench() {
  local peer=$root/tools/rondo-bench/peer.py
  step rondo-bench rondo-bench.log "$bin/rondo-bench" --device="$device" --check \
    --traces="$data/traces" --json="$out/rondo-bench.json"
  cat "$out/rondo-bench.log"
  if [[ ! -f $peer ]]; then
    skip "PyTorch" "there is no $peer"
  elif ! python3 -c 'import torch' >/dev/null 2>&1; then
    skip "PyTorch" "python3 cannot import torch"
  else
    step "PyTorch" peer.log python3 "$peer" --json "$out/peer.json" \
      --beside "$out/rondo-bench.json"
    cat "$out/peer.log"
  fi
}

# A text as JSON.
quote() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

write_summary() {
  local i separator=""
  {
    printf '{\n  "steps": ['
    for i in "${!names[@]}"; do
      printf '%s\n    {"name": %s, "outcome": %s, "seconds": %s, "note": %s}' "$separator" \
        "$(quote "${names[i]}")" "$(quote "${outcomes[i]}")" "${times[i]}" "$(quote "${notes[i]}")"
      separator=,
    done
    printf '\n  ]\n}\n'
  } >"$out/summary.json"
}

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv,noheader |
    tee "$out/gpu.txt"
fi
for part in tests traces memcheck bench; do
  if wants "$part"; then
    "run_$part"
  fi
done
write_summary

failed=0
printf '\n%-28s %-8s %7s  %s\n' what outcome seconds note
for i in "${!names[@]}"; do
  printf '%-28s %-8s %7s  %s\n' "${names[i]}" "${outcomes[i]}" "${times[i]}" "${notes[i]}"
  if [[ ${outcomes[i]} == FAILED ]]; then
    failed=$((failed + 1))
  fi
done
echo "${#names[@]} steps, $failed failed; logs and JSON are in $out"
((failed == 0))
