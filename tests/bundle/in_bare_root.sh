#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The part of bare_root.sh that runs in the bare root.
set -euo pipefail
cd /work
bundle=/work/pipewright-bundle
fail() { echo "in_bare_root.sh: $*" >&2; exit 1; }

echo "-- libraries: the bundle's, the wheel's and the C library's only"
LD_DEBUG=files LD_DEBUG_OUTPUT=/work/loader "$bundle/run" device_bench --help >/dev/null  # a file for each process
loaded=$(sed -n 's/.*calling init: //p' "$(grep -l libtorch_cpu.so /work/loader.*)")
foreign=$(grep -vE "^($bundle/lib|/opt/torch)/|/(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv))\.so" <<<"$loaded" || true)
[ -z "$foreign" ] || fail "loads $foreign"
echo "$(wc -l <<<"$loaded") libraries"

echo "-- doctor"
"$bundle/run" pipewright doctor
echo "-- list"
"$bundle/run" pipewright list >list.txt
grep -q spectrain list.txt || fail "list names no spectrain"
echo "-- quickstart"
"$bundle/run" pipewright run "$bundle/experiments/quickstart.yaml" --point "spectrain v1 stages 4 seed 1" \
  --out trained --quiet
echo "-- gpu_tests, which skip and say so"
"$bundle/run" gpu_tests >gpu_tests.log
tail -1 gpu_tests.log
grep -q "lacks gpu" gpu_tests.log || fail "gpu_tests do not say that there is no GPU"
echo "-- codec_bench"
"$bundle/run" codec_bench --benchmark_filter='^sort_quantization 6,2/' 2>&1 | tail -1
echo "-- gpu-check from the unpacked bundle"
python3 "$bundle/gpu-check" --device cpu --small --rounds 5 --minutes 4 --out checked
grep '^#' checked/gpu-check.md
