#!/usr/bin/env bash
# Whether every C++ source stands as clang-format would write it, with the .clang-format at the root.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang-format >/dev/null; then
  exec tests/skip clang-format "there is no clang-format (Debian: clang-format)"
fi
find core schemes models datasets tools tests -name '*.h' -o -name '*.cpp' |
  xargs --max-procs=2 --max-args=50 clang-format --dry-run --Werror
