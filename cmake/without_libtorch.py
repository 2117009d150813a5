# SPDX-License-Identifier: Apache-2.0
"""Writes definitions of all that a program takes from LibTorch, for the same program without LibTorch.

  without_libtorch.py PROGRAM LIBRARY… > definitions.cpp

Every function calls need_libtorch() (tools/start/libtorch.h). Data has its size and holds zeros: nothing reads it before
a function of LibTorch has been called. Only classes' type information is real, because the C++ runtime compares it when
an exception passes a handler of such a class.
"""

import re
import subprocess
import sys

STANDARD = re.compile(r"_Z(N|NK)?St")  # names in std, of which LibTorch has copies of its own
LINE = re.compile(r"\s*\d+:\s+[0-9a-f]+\s+(\w+)\s+(\w+)\s+\w+\s+\w+\s+(\w+)\s+(\w+)(?:@\S*)?$")


def symbols(file):
    """(size, type, section, name) of each dynamic symbol."""
    listed = subprocess.run(["readelf", "--wide", "--dyn-syms", file], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if found := LINE.match(line):
            size, kind, section, name = found.groups()
            yield int(size, 0), kind, section, name


def main(program, libraries):
    wanted = {
        name for _, _, section, name in symbols(program) if section == "UND" and not STANDARD.match(name)
    }
    defined = {}
    for library in libraries:
        for size, kind, section, name in symbols(library):
            if section != "UND" and name in wanted:
                defined[name] = (kind, size)
    if not defined:
        sys.exit(f"{program} takes nothing from {', '.join(libraries)}")
    print("// Made by cmake/without_libtorch.py.")
    print('#include "tools/start/libtorch.h"')
    print("extern void* class_type_info[] asm(\"_ZTVN10__cxxabiv117__class_type_infoE\");")
    print('using pipewright::need_libtorch;\nextern "C" {')
    for name, (kind, size) in sorted(defined.items()):
        if kind in ("FUNC", "IFUNC"):
            print(f"void {name}() {{ need_libtorch(); }}")
        elif kind == "TLS":
            print(f"alignas(64) __thread char {name}[{size}];")
        elif name.startswith("_ZTI"):
            print(f'const void* {name}[4] = {{class_type_info + 2, "{name[4:]}"}};')
        else:
            print(f"alignas(64) char {name}[{max(size, 1)}];")
    print("}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
