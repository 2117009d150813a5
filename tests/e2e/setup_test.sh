#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/setup on a small tree, with Debian's and pip's part played by fakes: no network, no root.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A tree that configures and builds in no time, and a machine without torch.
mkdir -p "$work"/{tree/tools,tree/cmake,bin,wheels,none}
cp "$source/tools/setup" "$work/tree/tools/"
cp "$source/cmake/find_libtorch.cmake" "$work/tree/cmake/"
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(tree NONE)' \
  'set(Torch_DIR "" CACHE PATH "")' 'set(CMAKE_BUILD_TYPE "" CACHE STRING "")' \
  'file(GLOB scripts CONFIGURE_DEPENDS tools/*)' \
  'foreach(part program tests)' \
  '  add_custom_command(OUTPUT ${part}.built COMMAND ${CMAKE_COMMAND} -E touch ${part}.built' \
  '    COMMENT "Building ${part}")' \
  'endforeach()' \
  'add_custom_target(program DEPENDS program.built)' \
  'install(FILES ${CMAKE_BINARY_DIR}/program.built DESTINATION bin)' \
  'install(FILES CMakeLists.txt DESTINATION lib RENAME libtorch COMPONENT libtorch EXCLUDE_FROM_ALL)' \
  'set(CPACK_GENERATOR DEB)' 'set(CPACK_PACKAGE_CONTACT nobody)' 'set(CPACK_PACKAGE_NAME pipewright)' \
  'set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)' 'include(CPack)' \
  'add_custom_target(everything ALL DEPENDS program.built tests.built)' \
  >"$work/tree/CMakeLists.txt"

fake() { # fake NAME 'BASH…': a program on the PATH
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
fake python3 'exit 1'
fake id 'echo 1000'
fake apt-get 'echo "apt-get must not run here" >&2; exit 1'
fake sudo 'exit 1'
# Every package that is asked for is installed, but those in $ABSENT.
# shellcheck disable=SC2016
fake dpkg-query 'for name in "${@:4}"; do
  [[ " ${ABSENT:-} " == *" $name "* ]] || echo "$name install ok installed"
done'

# A wheel that looks like torch as far as the set-up looks.
/usr/bin/python3 - "$work/wheels" <<'PYTHON'
import sys, zipfile
info = "torch-2.11.0.dist-info/"
version = "".join(f"#define TORCH_VERSION_{n} {v}\n" for n, v in (("MAJOR", 2), ("MINOR", 11), ("PATCH", 0)))
with zipfile.ZipFile(sys.argv[1] + "/torch-2.11.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("torch/include/ATen/ATen.h", "\n")
    wheel.writestr("torch/include/torch/headeronly/version.h", version)
    wheel.writestr("torch/lib/libtorch_cpu.so", "")
    wheel.writestr("torch/lib/libc10.so", "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx11\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
PYTHON

setup() { # setup [VARIABLE=VALUE…] [ARGUMENT…]: sets $said and $status
  local variables=()
  while [[ "${1:-}" == *=* ]]; do variables+=("$1"); shift; done
  status=0
  said=$(env -u Torch_DIR -u PIPEWRIGHT_PYTHON PATH="$work/bin:$PATH" XDG_CACHE_HOME="$work/cache" \
    PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/wheels" "${variables[@]}" \
    "$work/tree/tools/setup" "$@" 2>&1) || status=$?
}
expect() { # expect STATUS TEXT…
  local wanted=$1 text
  shift
  for text in "$@"; do
    if [ "$status" != "$wanted" ] || [[ "$said" != *"$text"* ]]; then
      printf 'expected exit code %s and "%s"; got %s and:\n%s\n' "$wanted" "$text" "$status" "$said" >&2
      exit 1
    fi
  done
}
private=$work/cache/pipewright/torch-2.11.0-cpu

echo "The manual says of every package what it is for, and names no other"
packages=$(sed -n '/^packages=(/,/)$/p' "$source/tools/setup" | sed 's/^packages=(//; s/)$//' | tr -s ' ' '\n' | sort)
rows=$(sed -n '/^## What it is built on/,/^## /p' "$source/docs/manual/reference/install.md" | grep '^|' | cut -d '|' -f 3 | grep -o '`[^`]*`' |
  tr -d '`' | sort)
diff <(echo "$packages" | grep .) <(echo "$rows")

echo "Missing packages are named where apt is not allowed"
setup "ABSENT=ccache gnuplot-nox"
expect 1 "run: sudo apt-get install ccache gnuplot-nox"

echo "A Torch_DIR without LibTorch is an error, and nothing is installed instead"
setup "Torch_DIR=$work/none"
expect 1 "$work/none has no readable lib/libtorch_cpu.so"
setup "PIPEWRIGHT_PYTHON=$work/bin/python3"
expect 1 "has no torch"
[ ! -e "$private" ]

echo "An install that fails leaves nothing that looks complete"
setup "PIP_FIND_LINKS=$work/none"
expect 1 "pip could not install torch==2.11.0"
[ ! -e "$private" ]

echo "What an interrupted install left is replaced"
mkdir -p "$private.part/lib/python3.11/site-packages/torch"
setup
expect 0 "== LibTorch: installing torch 2.11.0" "== Configure: done" "== Build: 2 units to compile" "== Build: done"
[ ! -e "$private.part" ]

echo "Repeated, there is nothing to do"
setup
expect 0 "== Debian packages: nothing to do" "== LibTorch: 2.11.0 in $private" "torch, nothing to do" \
  "== Configure: nothing to do" "== Build: nothing to compile" "no work to do"
[ -e "$work/tree/build/tests.built" ]

echo "A new user's set-up builds the program and not its tests"
rm -r "$work/tree/build"
setup --program
expect 0 "== Build: done"
[ -e "$work/tree/build/program.built" ]
[ ! -e "$work/tree/build/tests.built" ]

echo "An installation has its LibTorch, and needs a prefix"
setup --install
[ "$status" != 0 ]
setup --install "$work/prefix"
expect 0 "== Install: into $work/prefix" "== Install: done"
[ -e "$work/prefix/bin/program.built" ]
[ -e "$work/prefix/lib/libtorch" ]

echo "A relative prefix is one of the folder in which the command was given"
mkdir "$work/here"
(cd "$work/here" && setup --install ../other/prefix && expect 0 "== Install: done")
[ -e "$work/other/prefix/bin/program.built" ]

echo "A prefix that cannot be a folder is refused before anything is built"
touch "$work/file"
rm -r "$work/tree/build"
setup --install "$work/file/prefix"
expect 1 "== Install: cannot install into $work/file/prefix: $work/file is no folder"
[ "$(wc -l <<<"$said")" = 1 ]
[ ! -e "$work/tree/build" ]

echo "An argument too many is refused, and nothing is done"
setup --install "$work/prefix" "$work/other"
expect 2 "unexpected argument '$work/other'" "usage: tools/setup"
setup --program --suites
expect 2 "unexpected argument '--suites'"
[ ! -e "$work/tree/build" ]

echo "A package is made beside the program, in the place of an older one"
mkdir "$work/tree/build"
touch "$work/tree/build/pipewright_0.0.1_all.deb"
setup --package
expect 0 "== Package: build/pipewright_" ".deb"
[ "$(find "$work/tree/build" -maxdepth 1 -name '*.deb' | wc -l)" = 1 ]
[ ! -e "$work/tree/build/pipewright_0.0.1_all.deb" ]
[ ! -e "$work/tree/build/_package" ]

echo "A package that cannot be made leaves the older one"
fake cpack 'exit 1'
setup --package
expect 1 "== Package: cpack failed, see build/package.log"
[ "$(find "$work/tree/build" -maxdepth 1 -name '*.deb' | wc -l)" = 1 ]
rm "$work/bin/cpack"

echo "The folder of a TorchConfig.cmake is understood"
torch=$(echo "$private"/lib/python3*/site-packages/torch)
mkdir -p "$torch/share/cmake/Torch"
touch "$torch/share/cmake/Torch/TorchConfig.cmake"
setup "Torch_DIR=$torch/share/cmake/Torch" --dependencies
expect 0 "== LibTorch: 2.11.0 in $torch, nothing to do"

echo "A private environment with files gone is made again"
rm "$private"/lib/python3*/site-packages/torch/lib/libc10.so
setup --dependencies
expect 0 "== LibTorch: installing torch 2.11.0" "installed"
