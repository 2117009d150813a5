# SPDX-License-Identifier: Apache-2.0
"""Every link of a page to a file of the repository leads to one, and one to a heading to a heading."""

import re
import tempfile
import unittest
from pathlib import Path

import harness
import skips

SOURCE = harness.SOURCE_DIR.resolve()
LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"  # [text](target "title")
    r"|<(?:img|a)\s[^>]*?(?:src|href)=\"([^\"]+)\""
    r"|^\[[^\]]+\]:\s+(\S+)",  # [name]: target
    re.M,
)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)


def pages():
    """Those of the source tree, not of what was built or trained in it."""
    for page in sorted(SOURCE.rglob("*.md")):
        if not {"build", "runs", ".git", "node_modules"} & set(page.relative_to(SOURCE).parts):
            yield page


def prose(text):
    """The text without code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^ *```.*?^ *```$", "", text))


def anchors(page):
    """The names that GitHub gives to headings."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"))
    names = set()
    for heading in re.findall(r"(?m)^#+ +(.+?) *#*$", text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 1
        unique = name
        while unique in names:
            unique, number = f"{name}-{number}", number + 1
        names.add(unique)
    return names


def faults(page, source=SOURCE):
    """The links of a page that lead nowhere, or out of the source tree."""
    for groups in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        link = "".join(groups)
        if ELSEWHERE.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(source):
            yield f"{link}: there is no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
            yield f"{link}: there is no such heading"


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        found = list(pages())
        self.assertGreater(len(found), 60)
        for page in found:
            with self.subTest(page.relative_to(SOURCE)):
                self.assertEqual([], list(faults(page)))

    def test_that_lead_nowhere_are_found(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        page = folder / "page.md"
        page.write_text("# A heading: `x`\n[a](none.md) [b](page.md#a-heading-x) [c](#nothing)\n```\n[d](e.md)\n```\n")
        said = ["none.md: there is no such file", "#nothing: there is no such heading"]
        self.assertEqual(said, list(faults(page, folder)))

    def test_of_the_manual_reach_every_page(self):
        """From its index, following links."""
        manual = SOURCE / "docs/manual"
        seen, left = set(), [manual / "README.md"]
        while left:
            page = left.pop()
            if page in seen:
                continue
            seen.add(page)
            for groups in LINK.findall(prose(page.read_text(encoding="utf-8"))):
                target = (page.parent / "".join(groups).partition("#")[0]).resolve()
                if target.suffix == ".md" and target.is_relative_to(manual):
                    left.append(target)
        self.assertEqual(set(manual.rglob("*.md")), seen)


def tests_in_cpp():
    """Suite.Name of every test of GoogleTest, and of ctest's that are called so."""
    found = re.compile(r"(?m)^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)")
    inside = {f"{suite}.{name}" for file in (SOURCE / "tests").rglob("*.cpp") for suite, name in found.findall(file.read_text(encoding="utf-8"))}
    return inside | set(re.findall(r"pipewright_test\((\w+\.\w+)", (SOURCE / "tests/CMakeLists.txt").read_text(encoding="utf-8")))


def sources():
    """Sources of the tree and not of what was built, by their paths."""
    rooms = ("core", "schemes", "models", "datasets", "tools", "tests", "python", "examples")
    for room in rooms:
        for file in (SOURCE / room).rglob("*"):
            if file.suffix in (".h", ".cpp", ".py", ".cu", ".sh") and file.is_file():
                yield file


def unknown_names(text, tests, bases=(SOURCE,)):
    """Tests, and paths below one of these folders, in backticks that do not exist."""
    for name in re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", text):
        if name not in tests and not name.startswith("Suite."):
            yield f"{name}: there is no such test"
    for path in re.findall(r"`((?!\.\./)[\w.-]+/[\w./-]*)`", text):
        first = path.split("/")[0]
        if first in ("build", "runs") or not any((base / first).is_dir() for base in bases):
            continue  # of a run, of LibTorch
        if not any((base / (path + end)).exists() for base in bases for end in ("", ".h", ".cpp", ".py")):
            yield f"{path}: there is no such file"


def words_of(code):
    """Its names, and those of functions a second time with a bracket behind them."""
    return set(re.findall(r"\w+\(?", code)) | set(re.findall(r"\w+", code))


def unknown_code(text, files, code):
    """Functions and files without a folder in backticks that no source has. `A::b()` is in one that has A, too."""
    for name in re.findall(r"`([\w:.]+)\([^`]*\)`", text):
        *owners, function = re.split(r"[.:]+", name)
        if not any(f"{function}(" in words and words.issuperset(owners) for words in code):
            yield f"{name}(): there is no such function"
    for name in re.findall(r"`([\w-]+\.(?:h|cpp|py|cu))`", text):
        if name not in files:
            yield f"{name}: there is no such file"


def unknown_units(page):
    """Names in the first column of a table of units that no file of the room has."""
    units = {file.stem for file in page.parent.rglob("*")} | {file.name for file in page.parent.rglob("*")}
    for table in re.findall(r"(?m)^\| unit \|.*\n\|[-| ]+\n((?:\|.*\n)+)", page.read_text(encoding="utf-8")):
        for row in table.splitlines():
            for name in re.findall(r"`([\w./-]+)`", row.split("|")[1]):
                if name.rstrip("/").split("/")[-1] not in units:
                    yield f"{name}: there is no such unit"


class Names(unittest.TestCase):
    """A page of the manual says what holds a sentence by the name of a test or a file, and a room's page what is where."""

    def test_of_tests_and_files_exist(self):
        tests = tests_in_cpp()
        self.assertGreater(len(tests), 1000)
        for page in pages():
            if page.is_relative_to(SOURCE / "docs/manual") or page.name in ("README.md", "CONTRIBUTING.md", "architecture.md"):
                with self.subTest(page.relative_to(SOURCE)):
                    manual = page.is_relative_to(SOURCE / "docs/manual")
                    bases = (SOURCE,) if manual else (page.parent, SOURCE, SOURCE / "core", SOURCE / "tests")
                    self.assertEqual([], list(unknown_names(page.read_text(encoding="utf-8"), tests, bases)))

    def test_of_functions_exist(self):
        files = list(sources())
        code = [words_of(file.read_text(encoding="utf-8", errors="replace")) for file in files]
        for page in pages():
            if page.name in ("README.md", "CONTRIBUTING.md", "architecture.md"):
                with self.subTest(page.relative_to(SOURCE)):
                    self.assertEqual([], list(unknown_code(re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text(encoding="utf-8")), {file.name for file in files}, code)))

    def test_of_units_exist(self):
        for page in sorted((SOURCE / "core").rglob("README.md")):
            with self.subTest(page.relative_to(SOURCE)):
                self.assertEqual([], list(unknown_units(page)))

    def test_that_do_not_exist_are_found(self):
        text = "`Copies.AreMany` is held in `tests/unit/none.cpp`; `Copies.AreFew` is not, and `README.md` is no test; `ATen/core`."
        said = ["Copies.AreMany: there is no such test", "tests/unit/none.cpp: there is no such file"]
        self.assertEqual(said, list(unknown_names(text, {"Copies.AreFew"})))
        page = Path(self.enterContext(tempfile.TemporaryDirectory())) / "README.md"
        page.write_text("| unit | idea |\n|---|---|\n| `README`, `none`, `README.md` | `text` |\n")
        self.assertEqual(["none: there is no such unit"], list(unknown_units(page)))
        said = ["A::b(): there is no such function", "c.cpp: there is no such file"]
        self.assertEqual(said, list(unknown_code("`a(int)` and `A::b()` in `c.cpp`, not in `d.cpp`", {"d.cpp"}, [words_of("a() A"), words_of("b()")])))


class Version(unittest.TestCase):
    """The number of `core/base/version.h` is that of every file which CONTRIBUTING says to change with it."""

    def test_is_the_same_everywhere(self):
        def found(pattern, path):
            return re.search(pattern, (SOURCE / path).read_text(encoding="utf-8"))[1]

        number = found(r'define PIPEWRIGHT_VERSION "(.+)"', "core/base/version.h")
        self.assertEqual(number, found(r"(?m)^version: (.+)$", "CITATION.cff"))
        self.assertEqual(number, found(r"(?m)^## \[(.+?)\]", "CHANGELOG.md"), "the first heading")
        self.assertEqual(number, found(r'"urn:pipewright:experiment:(.+)"', "experiments/experiment.schema.json"))
        self.assertEqual(number.replace("-rc.", "rc"), found(r'(?m)^version = "(.+)"$', "pyproject.toml"))
        for page in ("docs/manual/howto/scheme.md", "examples/out-of-tree-scheme/CMakeLists.txt", "examples/own-parts/CMakeLists.txt"):
            self.assertEqual(".".join(number.split(".")[:2]), found(r"find_package\(Pipewright ([\d.]+) ", page), page)


PLACE = re.compile(
    r"`([\w.:]+?)(?:\(\))?`,? (?:in|of) (?:the )?`([\w./-]+)`"  # `name` in `file`
    r"|`(\w+)\(\)` \(`([\w./-]+)`"  # `function()` (`file`)
)


def misplaced(text, folder):
    """Names that a page says are in a file, or in a unit or folder, which does not have them."""
    for groups in PLACE.findall(re.sub(r"\s+", " ", text)):
        name, path = [each for each in groups if each]
        if not re.search(r"/|\.(?:cpp|h|py)$", path):
            continue  # of a class, a section
        found = [
            file for base in (folder, SOURCE, SOURCE / "core", SOURCE / "tests") for end in ("", ".h", ".cpp", ".py")
            for file in ([*(base / path).rglob("*.h"), *(base / path).rglob("*.cpp")] if end == "" else []) + [base / f"{path}{end}"]
            if file.is_file()
        ]
        last = re.split(r"[.:]", name)[-1]
        if not any(re.search(rf"\b{last}\b", file.read_text(encoding="utf-8", errors="replace")) for file in found):
            yield f"{name} is not in {path}"


class Functions(unittest.TestCase):
    """A page that sends its reader to a file for a function, a constant or an option knows where that is."""

    def test_are_where_pages_say(self):
        for page in pages():
            if page.name in ("README.md", "CONTRIBUTING.md"):
                with self.subTest(page.relative_to(SOURCE)):
                    self.assertEqual([], list(misplaced(page.read_text(encoding="utf-8"), page.parent)))

    def test_that_are_elsewhere_are_found(self):
        text = (
            "`misplaced()` in\n`tests/e2e/links_test.py`, `kNone` in `core/base/text.cpp`, `concat()` (`core/base/text`), "
            "`no_such()` (`core/base`), `x.y_z` of the `tests/e2e/none.py`, `batch()` of `Dataset`"
        )
        said = ["kNone is not in core/base/text.cpp", "no_such is not in core/base", "x.y_z is not in tests/e2e/none.py"]
        self.assertEqual(said, list(misplaced(text, SOURCE)))


if __name__ == "__main__":
    skips.main()
