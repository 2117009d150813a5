#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases in the folders beside this file, and can rewrite what they expect; see README.md.

A case is a text file `<name>.case`: why it is there, files, commands, and what each command did when
somebody last looked. All commands of a case run in one fresh folder, one after the other. What they
do is put into the text of the case in place of what was expected: if that is the same text, the case
holds, otherwise the difference of both is shown, and --rewrite stores the new one. Nothing that an
author wrote is ever changed by it, because it is copied line by line.
"""

import argparse
import concurrent.futures
import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
MARK = "=== "  # begins the line that begins a section
AUTHORED = ("file", "run")
OUTCOMES = ("exit", "stdout", "stderr", "leaves")
LOOKS = ("shows", "timeline")  # the header is the author's, the body is expected
EXIT_CODES = (0, 2, 3, 4, 5, 6, 7, 130)  # those that the program promises; 70 is a bug and no expectation
SECONDS_LIMIT = 120  # of one command
NO_NEWLINE = "\\ no newline at the end"
MARKER = ".pipewright"  # a folder of results has it

# What depends on the machine. Nothing else may be replaced: a number that varies for another reason is a fault.
SUBSTITUTIONS = (
    (re.compile(r"(?<=this machine has )[\d.]+ [KMGT]iB"), "<memory>"),
    (re.compile(r"(?m)(?<=\()\d+\.\d(?= s\)$)"), "<seconds>"),  # of a run of a sweep
    (re.compile(r"(?m)\d+\.\d s \([^()]+ samples/s\)$"), "<seconds> s (<rate> samples/s)"),  # of an epoch
    (re.compile(r"(?m)^pipewright=.*$"), "pipewright=<program>"),  # of a batch script
    (re.compile(r"(?m)(?<=^Time on this machine: about ).* on .*(?= that nothing)"), "<time> on <cores>"),  # of the runs of a sweep
    (re.compile(r"\b[0-9a-f]{16}\b"), "<digest>"),  # of an experiment or model; each new option changes it
)


class Malformed(Exception):
    """The case itself is wrong: its file, and the line in it."""

    def __init__(self, path, line, what):
        super().__init__(f"{path}:{line}: {what}")


@dataclass
class Section:
    kind: str
    subject: str  # the rest of the header: a file's name, a command, an exit code
    line: int
    body: list = field(default_factory=list)

    def header(self):
        return f"{MARK}{self.kind} {self.subject}".rstrip()

    def text(self):
        """Without the blank lines at the end, which stand there for reading's sake."""
        return "\n".join(self.body).rstrip("\n")


@dataclass
class Step:
    """A command with what is expected of it."""

    run: Section
    outcomes: dict = field(default_factory=dict)  # kind → Section
    looks: list = field(default_factory=list)


class Case:
    def __init__(self, path, rewriting=False):
        self.path = Path(path)
        try:
            self.text = self.path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(self.path, 1, f"is no UTF-8: {error.reason}") from error
        self.why, self.sections = self._cut()
        self.files, self.steps = {}, []
        for section in self.sections:
            self._take(section)
        self._judge(rewriting)

    def name(self):
        return f"{self.path.parent.name}/{self.path.stem}"

    def question(self):
        """What is asked, without the reason and the answer: equal for two cases that are the same."""
        files = sorted((name, section.text()) for name, section in self.files.items())
        return (tuple(files), tuple(step.run.subject for step in self.steps))

    def _wrong(self, line, what):
        return Malformed(self.path, line, what)

    def _cut(self):
        why, sections = [], []
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.startswith(MARK):
                kind, _, subject = line[len(MARK) :].strip().partition(" ")
                known = AUTHORED + OUTCOMES + LOOKS
                if kind not in known:
                    raise self._wrong(number, f"unknown section '{kind}'; known: {', '.join(known)}")
                sections.append(Section(kind, subject, number))
            else:
                (sections[-1].body if sections else why).append(line)
        return why, sections

    def _take(self, section):
        if section.kind == "file":
            path = PurePosixPath(section.subject)
            if not section.subject or path.is_absolute() or ".." in path.parts:
                raise self._wrong(section.line, f"'{section.subject}' is no file's name within the case's folder")
            if section.subject in self.files:
                raise self._wrong(section.line, f"the file '{section.subject}' is given twice")
            if self.steps:
                raise self._wrong(section.line, "files come before the first command")
            self.files[section.subject] = section
        elif section.kind == "run":
            if section.subject.split()[:1] != ["pipewright"]:
                raise self._wrong(section.line, f"'{section.subject}' is no command of pipewright")
            if section.text().strip():
                raise self._wrong(section.line + 1, "text after a command belongs to no section")
            self.steps.append(Step(section))
        elif not self.steps:
            raise self._wrong(section.line, f"'{section.kind}' comes before any command")
        elif section.kind in LOOKS:
            if not section.subject:
                raise self._wrong(section.line, f"'{section.kind}' names no file")
            self.steps[-1].looks.append(section)
        else:
            if section.kind in self.steps[-1].outcomes:
                raise self._wrong(section.line, f"'{section.kind}' is given twice for one command")
            self.steps[-1].outcomes[section.kind] = section

    def _judge(self, rewriting):
        """Finds what no author can have meant. Only what --rewrite will write may be absent then."""
        why = " ".join(line.removeprefix("#").strip() for line in self.why).strip()
        if any(line.strip() and not line.startswith("# ") for line in self.why) or not why.endswith("."):
            raise self._wrong(1, "the file must begin with '# ' and a sentence that says why the case is there")
        if not self.steps:
            raise self._wrong(1, "there is no command; expected '=== run pipewright …'")
        commands = [step.run.subject for step in self.steps]
        for name, section in self.files.items():
            others = [other.text() for other in self.files.values() if other is not section]
            if not any(part in text for text in commands + others for part in PurePosixPath(name).parts):
                raise self._wrong(section.line, f"nothing names the file '{name}'")
        for step in self.steps:
            self._judge_step(step, rewriting)

    def _judge_step(self, step, rewriting):
        expected = [section for kind, section in step.outcomes.items() if kind != "exit"] + step.looks
        if "exit" in step.outcomes:
            exit_section = step.outcomes["exit"]
            if exit_section.subject not in map(str, EXIT_CODES):
                codes = ", ".join(map(str, EXIT_CODES))
                raise self._wrong(exit_section.line, f"'{exit_section.subject}' is no exit code to expect: {codes}")
            if exit_section.text().strip():
                raise self._wrong(exit_section.line + 1, "text after an exit code belongs to no section")
        elif not rewriting:
            raise self._wrong(step.run.line, "no exit code is expected of this command; --rewrite writes it")
        if rewriting:
            return
        for section in expected:
            if not section.text().strip():
                raise self._wrong(
                    section.line, f"'{section.kind}' is empty; leave it out where nothing is expected, or use --rewrite"
                )
        if not expected:
            raise self._wrong(step.run.line, "nothing but an exit code is expected of this command")

    def rendered(self, outcomes):
        """The case's text with these outcomes, one for each command, in place of what was expected."""
        lines = list(self.why)
        for section in self.files.values():
            lines += [section.header(), *section.body]
        for step, outcome in zip(self.steps, outcomes, strict=True):
            lines.append(step.run.header())
            lines.append(f"{MARK}exit {outcome['exit']}")
            for kind in OUTCOMES[1:]:
                if outcome[kind]:
                    lines += [f"{MARK}{kind}", *outcome[kind].split("\n")]
            for look, text in zip(step.looks, outcome["looks"], strict=True):
                lines += [look.header(), *text.split("\n")]
            lines.append("")
        return "\n".join(lines).rstrip("\n") + "\n"


class Failure(Exception):
    """A command did what no case can expect."""


class Machine:
    """Runs the commands of a case in a folder of its own."""

    def __init__(self, binary, source_dir):
        self.binary, self.source_dir = binary, str(source_dir)

    def outcomes(self, case):
        folder = Path(tempfile.mkdtemp(prefix="pipewright-case-")).resolve()
        try:
            for name, section in case.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._filled_in(section.text(), folder) + "\n", encoding="utf-8")
            return [self._outcome(step, folder) for step in case.steps]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _filled_in(self, text, folder):
        return text.replace("<source>", self.source_dir).replace("<folder>", str(folder))

    def _outcome(self, step, folder):
        before = self._stamps(folder)
        words = shlex.split(self._filled_in(step.run.subject, folder))
        hidden = {name: value for name, value in os.environ.items() if not name.startswith(("PIPEWRIGHT_", "SLURM_"))}
        environment = hidden | {"HOME": str(folder), "LC_ALL": "C.UTF-8"}  # no data set of a developer's own
        try:
            done = subprocess.run(
                [self.binary, *words[1:]],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS_LIMIT,
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{step.run.subject}: did not end within {SECONDS_LIMIT} s") from error
        if done.returncode not in EXIT_CODES:
            words = done.stderr.decode("utf-8", "backslashreplace")
            raise Failure(f"{step.run.subject}: ended with {done.returncode}, which no case may expect\n{words}")
        return {
            "exit": done.returncode,
            "stdout": self._shown(done.stdout, folder),
            "stderr": self._shown(done.stderr, folder),
            "leaves": self._shown(self._left(before, self._stamps(folder), folder).encode(), folder, whole=False),
            "looks": [self._look(look, folder) for look in step.looks],
        }

    @staticmethod
    def _stamps(folder):
        files = (file for file in folder.rglob("*") if not file.is_dir())
        return {file: (file.stat().st_mtime_ns, file.stat().st_size, file.stat().st_ino) for file in files}

    @staticmethod
    def _left(before, after, folder):
        """Files that are new or written anew; a folder of results is one line."""
        left = set()
        for file in after.keys() - {file for file, stamp in before.items() if after.get(file) == stamp}:
            within = [parent for parent in file.parents if folder in parent.parents and (parent / MARKER).exists()]
            left.add(f"{within[-1].relative_to(folder)}/" if within else str(file.relative_to(folder)))
        return "\n".join(sorted(left))

    def _shown(self, content, folder, whole=True):
        text = content.decode("utf-8", "backslashreplace")
        if whole and text and not text.endswith("\n"):
            text += "\n" + NO_NEWLINE
        text = text.replace(str(folder), "<folder>").replace(self.source_dir, "<source>")
        for pattern, name in SUBSTITUTIONS:
            text = pattern.sub(name, text)
        text = text.rstrip("\n")
        if any(line.startswith(MARK) for line in text.split("\n")):
            raise Failure(f"prints a line that begins with '{MARK}', which a case cannot hold")
        return text

    def _look(self, look, folder):
        path = folder / look.subject
        if not path.is_file():
            raise Failure(f"there is no file '{look.subject}' to look at")
        text = self._shown(path.read_bytes(), folder)
        if not text:
            raise Failure(f"the file '{look.subject}' is empty")
        return timeline(text) if look.kind == "timeline" else text


def timeline(trace):
    """A trace as a text: for each worker, what it does from when to when, in virtual seconds."""
    events = json.loads(trace)["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    rows = []
    for worker, name in sorted(names.items()):
        rows.append(name)
        for event in events:
            if event["tid"] == worker and event["ph"] in "Xi":
                begin = event["ts"] / 1e6
                end = f" – {begin + event['dur'] / 1e6:.9g}" if event["ph"] == "X" else ""
                rows.append(f"  {begin:.9g}{end} s  {event['name']}")
    return "\n".join(rows)


def difference(case, text):
    names = (f"{case.name()}, expected", f"{case.name()}, now")
    return "\n".join(difflib.unified_diff(case.text.splitlines(), text.splitlines(), *names, lineterm=""))


def replace_file(path, text):
    """All of it or nothing: whoever interrupts this finds the old file or the new one."""
    handle, new = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(new, path.stat().st_mode)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def case_files(paths):
    """The cases in these folders or files."""
    found = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(path.rglob("*.case"))
            if not inside:
                raise Malformed(path, 0, "there is no case in this folder")
            found += inside
        elif path.suffix == ".case" and path.is_file():
            found.append(path)
        else:
            raise Malformed(path, 0, "is neither a folder nor a case")
    return list(dict.fromkeys(path.resolve() for path in found))


def twins(cases, root):
    """A line for each of the cases that asks what another below `root` asks, too."""
    asked = {}
    for path in sorted(root.rglob("*.case")):
        try:
            other = Case(path.resolve(), rewriting=True)
        except Malformed:
            continue  # whoever runs that folder hears of it
        asked.setdefault(other.question(), []).append(other)
    lines = []
    for case in cases:
        others = [other.name() for other in asked.get(case.question(), []) if other.path != case.path]
        if others:
            lines.append(f"{case.path}:1: asks the same as {', '.join(others)}")
    return lines


def judge(case, machine, rewrite):
    """A verdict, "holds", "differs" or "failed", and what there is to show; rewritten where that is wanted."""
    try:
        text = case.rendered(machine.outcomes(case))
    except (Failure, ValueError) as failure:
        return "failed", f"{case.name()}: {failure}"
    if text == case.text:
        return "holds", ""
    if rewrite:
        replace_file(case.path, text)
    return "differs", difference(case, text)


def main():
    parser = argparse.ArgumentParser(description="Runs cases: an experiment, commands, and what they are to say.")
    parser.add_argument("paths", nargs="*", default=[HERE], help="folders or single cases; default: all")
    parser.add_argument("--rewrite", action="store_true", help="store what the program does now as expected")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at once; default: processors")
    parser.add_argument("--root", type=Path, default=HERE, help="where no case may ask what another one asks")
    arguments = parser.parse_args()

    faults, cases = [], []
    try:
        for path in case_files(arguments.paths):
            try:
                cases.append(Case(path, arguments.rewrite))
            except Malformed as fault:
                faults.append(str(fault))
    except Malformed as fault:
        faults.append(str(fault))
    faults += twins(cases, arguments.root)
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 2

    source_dir = Path(os.environ.get("PIPEWRIGHT_SOURCE_DIR", HERE.parents[1])).resolve()
    binary = Path(os.environ.get("PIPEWRIGHT_BINARY", source_dir / "build" / "pipewright")).resolve()
    if not binary.is_file():
        print(f"{binary}: there is no program to run; PIPEWRIGHT_BINARY says another place", file=sys.stderr)
        return 2
    machine = Machine(binary, source_dir)
    with concurrent.futures.ThreadPoolExecutor(max(1, arguments.jobs)) as team:
        verdicts = list(team.map(lambda case: judge(case, machine, arguments.rewrite), cases))
    for _, shown in verdicts:
        if shown:
            print(shown, end="\n\n")
    differing, failed = (sum(verdict == kind for verdict, _ in verdicts) for kind in ("differs", "failed"))
    print(f"{len(cases)} cases, {differing} {'rewritten' if arguments.rewrite else 'differ'}, {failed} failed")
    return 1 if failed or (differing and not arguments.rewrite) else 0


if __name__ == "__main__":
    sys.exit(main())
