#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether clang can show that what a mutex guards is read and written only while it is held (core/base/mutex.h).
# Only that analysis runs, on every source of the program that uses such a mutex and needs no CUDA; the preset `clang` builds them all.
#
#   tests/thread_safety.sh [BUILD FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
rooms=(core schemes models datasets tools)
bare=$(grep -rnE 'std::(recursive_|shared_)?mutex\b' --include='*.h' --include='*.cpp' "${rooms[@]}" | grep -v '^core/base/mutex\.h:' || true)
if [ -n "$bare" ]; then
  printf 'clang cannot check these; use Mutex and Lock of core/base/mutex.h:\n%s\n' "$bare" >&2
  exit 1
fi
if ! command -v clang++ >/dev/null; then
  exec tests/skip clang "there is no clang++ (Debian: clang)"
fi
# LibTorch's folders, as the build has them.
mapfile -t folders < <(grep -ohE -- '-isystem [^ "]+' "$build/compile_commands.json" | sort -u | cut -d' ' -f2)
# Headers that include it, or one that does, and so on.
headers=core/base/mutex.h more=
while [ "$headers" != "$more" ]; do
  more=$headers
  headers=$({ printf '%s\n' $more; grep -rlF $(printf -- ' -e %s' $more) --include='*.h' "${rooms[@]}"; } | sort -u)
done
grep -rlF $(printf -- ' -e %s' $headers) --include='*.cpp' --exclude-dir=cuda "${rooms[@]}" |
  xargs --max-procs=2 --max-args=1 clang++ -std=c++20 -fsyntax-only -w -Werror=thread-safety -DNDEBUG \
    -I. $(printf -- ' -isystem %s' "${folders[@]}")
