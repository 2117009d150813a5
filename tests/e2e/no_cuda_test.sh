#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# no_cuda_test.sh PIPEWRIGHT: a build without CUDA loads no CUDA library, only our empty ones.
set -euo pipefail
loaded=$(LD_DEBUG=files "$1" --version 2>&1 | sed -n 's/.*calling init: //p')
[[ "$loaded" == *libtorch_cpu.so* ]] || { echo "LD_DEBUG names no libtorch_cpu.so" >&2; exit 1; }
if grep -E 'lib(cu|nv|nccl)' <<<"$loaded" | grep -vE '/no_cuda/|libcurl'; then
  echo "are CUDA libraries, loaded by a build without CUDA" >&2
  exit 1
fi
