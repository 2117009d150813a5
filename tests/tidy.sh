#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether clang-tidy finds nothing to say, with the .clang-tidy at the root.
#
#   tests/tidy.sh [BUILD FOLDER]       the rooms without LibTorch, which takes a minute or two
#   tests/tidy.sh BUILD FOLDER all     every source of the program, of a folder that clang++ has built (preset clang)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build} which=${2:-quick}
if ! command -v clang-tidy >/dev/null; then
  exec tests/skip clang-tidy "there is no clang-tidy (Debian: clang-tidy)"
fi
targets='pipewright_(core|records|schemes)'
if [ "$which" = all ]; then targets='pipewright_[a-z]+'; fi
grep -oE "\"file\": \"[^\"]+\"" "$build/compile_commands.json" | cut -d'"' -f4 |
  grep -E "/units/$targets/|^$PWD/(core|schemes|models|datasets|tools)/" | sort -u >"$build/tidy-units"
if grep -q /units/ "$build/tidy-units"; then  # files compiled together are looked at together
  grep -E "/units/$targets/" "$build/tidy-units" >"$build/tidy-units.together"
  mv "$build/tidy-units.together" "$build/tidy-units"
fi
[ -s "$build/tidy-units" ] || { echo "$build/compile_commands.json names no sources of ours" >&2; exit 1; }
# Clang takes neither precompiled headers nor parameters of GCC.
mkdir -p "$build/tidy"
sed -E 's/ -Winvalid-pch//g; s/ -include [^ ]*cmake_pch\.hxx//g; s/ --param=[^ ]*//g' "$build/compile_commands.json" >"$build/tidy/compile_commands.json"
xargs --max-procs=2 --max-args=1 clang-tidy -p "$build/tidy" --quiet --extra-arg=-Wno-unknown-warning-option \
  <"$build/tidy-units" 2> >(grep -vE "^[0-9]+ warnings? (and [0-9]+ errors? )?generated|^Suppressed |^Use -header-filter" >&2)
