#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether every C++ source says its license and stands as clang-format would write it, with the .clang-format at the root.
set -euo pipefail
cd "$(dirname "$0")/.."
without=$(find core schemes models datasets tools tests examples python '(' -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.py' ')' -not -path '*/corpus/*' -size +0 |
  xargs grep -L -m1 'SPDX-License-Identifier: Apache-2.0' || true)
if [ -n "$without" ]; then
  printf 'without a line "SPDX-License-Identifier: Apache-2.0":\n%s\n' "$without" >&2
  exit 1
fi
if ! command -v clang-format >/dev/null; then
  exec tests/skip clang-format "there is no clang-format (Debian: clang-format)"
fi
find core schemes models datasets tools tests -name '*.h' -o -name '*.cpp' |
  xargs --max-procs=2 --max-args=50 clang-format --dry-run --Werror
