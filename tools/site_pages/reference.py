# SPDX-License-Identifier: Apache-2.0
"""Pages about every command, part and section, from what the program says of itself."""

import os
import re
import subprocess

# The folder that `describe` names for ~/data is that of the reader, and not that of who builds the site.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PIPEWRIGHT_DATA"} | {"HOME": "/home/you"}


class Wrong(Exception):
    """What a person has to put right."""


class Program:
    def __init__(self, binary):
        self.binary = binary

    def __call__(self, *arguments):
        try:
            done = subprocess.run([self.binary, *arguments], capture_output=True, text=True, env=ENVIRONMENT)
        except OSError as error:
            raise Wrong(f"{self.binary} cannot be started: {error.strerror}; build it with tools/setup --program, or name "
                        "another in PIPEWRIGHT_BINARY") from error
        if done.returncode:
            raise Wrong(f"pipewright {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


def escaped(text):
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)


def listed(program):
    """Kinds in the plural to their parts and what is said of each: {"schemes": {"gpipe": "GPipe: …"}}."""
    kinds = {}
    for line in program("list").splitlines():
        part = re.match(r"  (\S+) +(\S.*)$", line)
        if part:
            kinds[kind][part[1]] = part[2]
        elif line:
            kind = line
            kinds[kind] = {}
    return kinds


def page_of(title, text):
    """A page of what `describe` prints: about, and sections of options, quantities, an example."""
    out, section = [f"# {title}", ""], ""
    for line in text.splitlines()[1:]:
        entry = re.match(r"  ([^\s:]+): (\S.*)$", line)
        if line and not line.startswith(" "):
            section = line
            out += ["", f"## {line}" if re.fullmatch(r"[A-Z]\w+", line) else escaped(line), ""]
        elif section == "Example" and line:
            out += ["```yaml", line.strip(), "```"]
        elif section == "Options" and entry:
            out += ["", f"`{entry[1]}`", "", f":   *{escaped(entry[2])}*<br>"]
        elif section == "Quantities" and re.match(r"  \S", line):
            out += ["", escaped(line.strip()), ""]
        elif line.startswith("      "):
            out.append(("    " if section == "Options" else ":   ") + escaped(line.strip()))
        elif line:
            out.append(escaped(line.strip()))
    return "\n".join(out) + "\n"


def code_page(title, text, language="text"):
    return f"# {title}\n\n```{language}\n{text.rstrip()}\n```\n"


def singular(kind):
    return {"losses": "loss", "hardware": "hardware"}.get(kind, kind.removesuffix("s"))


def parts(program):
    """(folder, page's name, text) of each kind and of its parts."""
    known = program("describe", "--help")
    for kind, names in listed(program).items():
        rows = [f"# {kind.capitalize()}", "", f"| {singular(kind)} | |", "|---|---|"]
        for name, about in names.items():
            if re.search(rf"\b{singular(kind)}\b", known):
                text = program("describe", singular(kind), name)
                hardware = kind == "hardware"
                yield kind, f"{name}.md", code_page(name, text, "yaml") if hardware else page_of(name, text)
                rows.append(f"| [`{name}`]({name}.md) | {escaped(about)} |")
            else:
                rows.append(f"| `{name}` | {escaped(about)} |")
        yield kind, "README.md", "\n".join(rows) + "\n"


def sections(program):
    known = re.search(r"a section of the experiment file: ([^\n]+)", program("describe", "--help"))
    names = known[1].partition(" and so on")[0].split(", ")
    rows = "\n".join(f"- [`{name}`]({name}.md)" for name in names)
    yield "sections", "README.md", f"# Sections of the experiment file\n\n{rows}\n"
    for name in names:
        yield "sections", f"{name}.md", page_of(name, program("describe", name))


def commands(program):
    found = re.findall(r"(?m)^  (\w+) +(\w.*)$", program("--help").partition("COMMAND …")[2])
    rows = "\n".join(f"| [`{name}`]({name}.md) | {escaped(about)} |" for name, about in found)
    yield "commands", "README.md", f"# Commands\n\n| command | |\n|---|---|\n{rows}\n"
    for name, _ in found:
        yield "commands", f"{name}.md", code_page(name, program(name, "--help"))


def pages(program):
    yield from commands(program)
    yield from sections(program)
    yield from parts(program)
