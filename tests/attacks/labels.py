# SPDX-License-Identifier: Apache-2.0
"""Some 140 names, labels, keys and recorded texts that would act upon whatever shows them, against
all that is printed, written and drawn. None may reach a terminal as an escape sequence, a spreadsheet
as a formula, Markdown as a tag or another column, LaTeX as a command, SVG as an element, gnuplot
as code, or a shell as anything but one word.

A text that an experiment file refuses is put where no reader refuses it: into the files of a run
that has ended, and into the numbers of others.
"""

import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unicodedata
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))

import harness
import report_pages
import skips
from harness import BINARY, MLP, changed

AT_ONCE = 16  # texts in one table

ESCAPES = [
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x1b[6n",
    "\x1b[?1049h",
    "\x1b(0lqk",
    "\x1b#8",
    "\x1bc",
    "\x9b31mC1",
    "\x9d0;title\x9c",
    "a\rb",
    "a\bb",
    "\x07\x07\x07",
    "a\x0bb\x0cc",
    "\x7f\x7f",
    "\x01\x02\x03",
    "a\x85b",
    "tab\tbed",
    "two\nlines",
    "two\r\nlines",
    "\n\n\nblank",
    "a\n| forged | row |",
    "run.yaml:1:1: forged error\nx",
    "\x0e\x0f",
    "\x1a",
    "\x00",
    "a\x00b",
]
HIDDEN = [
    "\u202egnp.exe",
    "\u202aa\u202c",
    "\u2066a\u2069",
    "\u2067a",
    "\u200b",
    "a\u200bb",
    "a\u200db",
    "a\u2060b",
    "\ufeffa",
    "a\u00adb",
    "a\u2028b",
    "a\u2029b",
    "\u061ca",
    "\u180ea",
    "\u3164",
    "\U000e0041\U000e0042",
    "\ufff9a\ufffb",
    "a\uffffb",
    "\ufdd0",
]
FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x","y")',
    "=IMPORTXML(CONCAT(1),2)",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    '"=1+1',
    "a,=1+1",
    "a;=1+1",
    'a","=1+1',
    'a"\n=1+1',
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1+1",
    "\uff20x",
    "-",
]
MARKUP = [
    "a|b",
    "a\\|b",
    "a\\\\|b",
    "|",
    "\\",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></tr></table><h1>x",
    "<!-- x",
    "<![CDATA[x",
    "]]>",
    "<?xml x?>",
    "&lt;b&gt;",
    "&#60;b&#62;",
    "&x;",
    "![x](http://x/y.png)",
    "[x](javascript:alert(1))",
    "[x]: http://x",
    "`code`",
    "```",
    "*a* _b_ **c**",
    "~~a~~",
    "# heading",
    "- item",
    "> quoted",
    "$x^2$",
    "--- | ---",
    "\"><svg onload='alert(1)'>",
    "' onload='x",
]
LATEX = [
    "\\input{/etc/passwd}",
    "\\write18{touch canary}",
    "50%",
    "a & b",
    "a \\\\ b",
    "{",
    "}",
    "#1",
    "x_1^2",
    "$",
    "~",
    "\\end{tabular}",
    "[2cm]",
    "*",
    "\n\n\\par",
    "^^5cinput",
]
COMMANDS = [
    "$(touch canary)",
    "`touch canary`",
    "; touch canary",
    "| touch canary",
    "&& touch canary",
    "'; touch canary; '",
    '"; touch canary; "',
    "'90s",
    "don''t",
    "''",
    '"',
    '\\"',
    "%s%n%d%x",
    "%1$s",
    "${HOME}",
    "!!",
    "-rf",
    "--help",
    "../../x",
    "..",
    "/etc/passwd",
    "@macro",
    "a_b^{c}",
    "x" * 300,
]
TEXTS = ESCAPES + HIDDEN + FORMULAS + MARKUP + LATEX + COMMANDS
# What is not UTF-8 can only be typed: nothing that is read as YAML or JSON lets it in.
BYTES = [b"\xff\xfe", b"\xc0\x9b31m", b"\xed\xa0\x80", b"a\x9b2Jb", b"\xf4\x90\x80\x80"]
ALL = TEXTS + BYTES

LATEX_TEXT = re.compile(  # of a cell: a command of ours, an escaped character, or one that does nothing
    r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}"
    r"|\\[&%$#_{}]|\$(\\pm|-)\$|\{\}(?=[\[*])|[^&%$#_{}~^\\]"
)


def acting(text):
    """What of a text that was printed would act on a terminal."""
    return [
        f"U+{ord(c):04X}"
        for c in text
        if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cn", "Cs")
    ]


def markdown_cells(line):
    """How many cells a line of a table has: bars that are not escaped."""
    return len(re.findall(r"(?:^|[^\\])(?:\\\\)*(?=\|)", line)) - 1


def markdown_acts(text):
    """What of our Markdown would be a tag, an entity, a link, code or emphasis."""
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", text)  # without what is escaped
    bare = re.sub(r"&(lt|gt|amp);", "", bare)
    bare = re.sub(r"\[\d+\]", "", bare)  # our own notes
    return re.findall(r"[<`*~$\[\]]|&#?\w|(?<![^\W_])_|_(?![^\W_])", bare)


class Labels(harness.EndToEnd):
    maxDiff = 10_000

    def run_bytes(self, *arguments):
        """Exit code and output of the program; arguments may be bytes."""
        done = subprocess.run(
            [BINARY, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=harness.SECONDS_LIMIT,
        )
        said = (done.stdout + done.stderr).decode()  # strictly UTF-8
        self.assertEqual(acting(said), [], f"{arguments}: {said!r}")
        self.assertNotIn("this is a bug", said)
        self.assertIn(done.returncode, (0, 2, 3, 7), said)
        return done.returncode, done.stdout.decode(), said

    def assert_nothing_ran(self):
        self.assertEqual([path for path in self.folder.rglob("canary")], [], "a command ran")

    def read_clean(self, name, besides=""):
        text = (self.folder / name).read_text().replace(besides, "")
        self.assertEqual(acting(text), [], f"{name}: {text!r}")
        return text

    def test_a_typed(self):
        """Given as keys, values and names of profiles."""
        self.write("x.yaml", MLP)
        for text in ALL:
            text = text if isinstance(text, bytes) else text.encode()
            if b"\x00" in text:
                continue  # no argument can hold it
            with self.subTest(text=text):
                sets = (b"--set=" + text + b"=1", b"--set=model.name=" + text, b"--set=" + text)
                code, _, said = self.run_bytes("check", "x.yaml", *sets, b"--profile=" + text)
                self.assertEqual(code, 2, said)
                self.assertLess(len(said), 20_000)
                self.assert_nothing_ran()

    def test_b_written(self):
        """In an experiment file, as names, labels, keys and values, and in a description of hardware."""
        self.write("z.yaml", MLP)
        self.write("c.yaml", {"forward": 1, "backward": 2, "update": 1})
        for some in batches():
            with self.subTest(some=some):
                points = [{"label": text} for text in some]
                self.write("x.yaml", changed(MLP, {"sweep": {"points": points}}))
                self.run_bytes("check", "x.yaml")
                wrong = {text: text for text in some} | {"name": some[0], "model": {"name": some[1]}}
                self.write("y.yaml", wrong | {"profiles": {text: 1 for text in some}})
                self.assertEqual(self.run_bytes("check", "y.yaml")[0], 2)
                names = " ".join(some)
                self.write("h.yaml", {"name": names, "devices": 4, names: 1})
                self.run_bytes("simulate", "z.yaml", "--hardware", "h.yaml", "--costs", "c.yaml")
                self.write("h.yaml", {"name": names, "devices": 4})
                self.run_bytes("simulate", "z.yaml", "--hardware", "h.yaml", "--costs", "c.yaml", "--svg", "t.svg")
                for svg in self.folder.glob("*.svg"):
                    xml.dom.minidom.parse(str(svg))
                    self.read_clean(svg.name)
                self.assert_nothing_ran()

    def sweep_once(self):
        """Sixteen runs, whose files are then changed."""
        points = [{"label": f"p{i}", "train.seed": i + 1} for i in range(AT_ONCE)]
        self.experiment = changed(
            MLP,
            {
                "loader": {"batch_size": 16, "limit_train": 16, "limit_test": 16},
                "sweep": {"points": points},
                "table": {"rows": ["note", "=a constant"], "columns": "label", "metric": "test_accuracy"},
                "plot": {"metric": "test_loss", "lines": ["note"]},
            },
        )
        self.write("s.yaml", json.dumps(self.experiment))
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2", "--set", "table.rows=train.seed", "--set", "plot.lines=label")
        self.recorded = sorted((self.folder / "sw").glob("*/run.json"))
        self.assertEqual(len(self.recorded), AT_ONCE)

    def record(self, texts):
        """Puts a text into each run: a key of its experiment, and all that says something."""
        for path, text in zip(self.recorded, texts):
            folder = path.parent
            # JSON is YAML, and the options of a run that has ended are only looked up.
            kept = folder / "experiment.before"
            if not kept.exists():
                shutil.copy(folder / "experiment.yaml", kept)
            note = '"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"'
            (folder / "experiment.yaml").write_text(kept.read_text() + f"note: {note}\n")
            # With the digest of the planned run nobody would look at what was recorded.
            path.write_text(json.dumps(json.loads(path.read_text()) | {"digest": "0" * 16}))
            point = json.loads((folder / "point.json").read_text())
            point["label"], point["varied"] = text, {"note": text}
            (folder / "point.json").write_text(json.dumps(point))

    def publish(self, texts):
        """Numbers of others that are none, with remarks."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(["who", "value"])
        for i, text in enumerate(texts):
            writer.writerow([f"p{i}", text])
        self.write("published.csv", out.getvalue())
        # What no reader of YAML takes is refused there, as test_b_written shows.
        remarks = {f"p{i}": text for i, text in enumerate(texts) if "\0" not in text and max(text) < "\U00010000"}
        published = {"file": "published.csv", "match": {"who": "label"}, "differs": remarks}
        self.write("s.yaml", json.dumps(changed(self.experiment, {"table.published": published})))

    def check_table(self, texts):
        arguments = ("table", "s.yaml", "--out", "sw")
        code, markdown, said = self.run_bytes(*arguments)
        self.assertEqual(code, 0, said)
        lines = [line for line in markdown.splitlines() if line.startswith("|")]
        rows = [line for line in lines if not line.startswith("|:")]
        self.assertGreaterEqual(len(rows), 2)
        self.assertEqual(len({markdown_cells(line) for line in lines}), 1, markdown)
        self.assertEqual(markdown_acts(markdown), [], markdown)

        code, latex, _ = self.run_bytes(*arguments, "--format", "latex")
        body = latex[latex.index("\\toprule") : latex.index("\\bottomrule")].rstrip().splitlines()[1:]
        bars = set()
        for line in body:
            if line.strip() in ("\\midrule", ""):
                self.assertNotEqual(line.strip(), "", "a blank line ends the paragraph")
                continue
            self.assertTrue(line.endswith(" \\\\"), line)
            cells = re.split(r"(?<!\\) & ", line[:-3])
            bars.add(len(cells))
            for cell in cells:
                self.assertRegex(cell.strip(), rf"\A(?:{LATEX_TEXT.pattern})*\Z")
                self.assertFalse(cell.strip().startswith(("[", "*")), cell)
        self.assertEqual(len(bars), 1, latex)

        code, table, _ = self.run_bytes(*arguments, "--format", "csv")
        read = list(csv.reader(io.StringIO(table), strict=True))
        self.assertEqual({len(row) for row in read}, {len(read[0])})
        self.assertGreater(len(read), 1)
        for row in read:
            for cell in row:
                number = re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", cell)
                dangerous = cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))
                self.assertFalse(dangerous and not number, cell)

    def check_pictures(self):
        shutil.rmtree(self.folder / "drawn", ignore_errors=True)
        code, _, said = self.run_bytes("plot", "s.yaml", "--out", "sw", "--output", "drawn")
        self.assertEqual(code, 0, said)
        pictures = sorted(path.name for path in (self.folder / "drawn").iterdir())
        self.assertEqual(pictures, ["test_loss.png", "test_loss.svg"])
        xml.dom.minidom.parse(str(self.folder / "drawn/test_loss.svg"))
        self.read_clean("drawn/test_loss.svg", "\t")  # gnuplot indents with tabs
        self.assertTrue((self.folder / "drawn/test_loss.png").read_bytes().startswith(b"\x89PNG"))

    def check_report(self):
        code, _, said = self.run_bytes("report", "s.yaml", "--out", "sw", "--output", "r.html")
        self.assertEqual(code, 0, said)
        page = report_pages.Page(self.read_clean("r.html"))
        self.assertEqual(page.faults, [])
        self.assertLessEqual(len(page.all("script")), 3)

    def check_export(self, texts):
        shutil.rmtree(self.folder / "exported", ignore_errors=True)
        readable = all("\0" not in text for text in texts)  # or an experiment.yaml is damaged, and is named
        for form, out in (("csv", "exported.csv"), ("jsonl", "exported.jsonl"), ("tensorboard", "exported")):
            code, _, said = self.run_bytes("export", "sw", "--format", form, "--output", out)
            self.assertEqual(code, 0 if readable else harness.DATA, said)
        if not readable:
            return
        read = list(csv.reader(io.StringIO(self.read_clean("exported.csv")), strict=True))
        self.assertEqual({len(row) for row in read}, {len(read[0])})
        for cell in {cell for row in read for cell in row}:
            number = re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", cell)
            dangerous = cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))
            self.assertFalse(dangerous and not number, cell)
        text = (self.folder / "exported.jsonl").read_text()  # which keeps texts as they are, but for control characters
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text))
        self.assertTrue({json.loads(line)["label"] for line in text.split("\n")[:-1]} == set(texts))
        folders = {path.relative_to(self.folder / "exported").as_posix() for path in (self.folder / "exported").rglob("*")}
        runs = {path.parent.name for path in self.recorded}
        self.assertEqual(folders, runs | {f"{run}/events.out.tfevents.pipewright" for run in runs})

    def check_errors(self, texts):
        """Runs that say they have failed, and why."""
        for path, text in zip(self.recorded, texts):
            run = json.loads(path.read_text())
            path.write_text(json.dumps(run | {"state": text, "error": text, "name": text, "host": text, text: text}))
        self.run_bytes("table", "s.yaml", "--out", "sw")
        self.run_bytes("run", "s.yaml", "--out", str(self.recorded[0].parent), "--resume")
        for path in self.recorded:
            path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "done"}))

    def test_c_recorded(self):
        """In the files of runs that have ended: in tables, pictures and messages."""
        self.sweep_once()
        for some in batches():
            with self.subTest(some=some):
                self.record(some)
                self.publish(some)
                self.check_table(some)
                self.check_report()
                self.check_export(some)
                if skips.has("gnuplot"):
                    self.check_pictures()
                else:
                    skips.left_out("Labels.test_c_recorded in pictures", "gnuplot")
                self.check_errors(some)
                self.assert_nothing_ran()

    def test_d_suggested(self):
        """A command that is suggested names a file as the shell reads it: as one word, and nothing runs.

        A file whose name is not UTF-8 is refused.
        """
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}}))
        for text in COMMANDS + BYTES:
            text = text if isinstance(text, bytes) else text.encode()
            if len(text) > 200:
                continue  # no file can be called that
            with self.subTest(text=text):
                file = b"f-" + text.replace(b"/", b"_") + b".yaml"
                shutil.copy(self.folder / "s.yaml", os.fsencode(self.folder) + b"/" + file)
                code, _, said = self.run_bytes("plot", file, "--out", "nowhere")
                if text in BYTES:
                    self.assertEqual(code, 2, said)
                    self.assertIn("is not UTF-8", said)
                    continue
                self.assertEqual(code, 3, said)
                word = re.search(r"`pipewright sweep (.*)` makes them", said)[1]
                read = subprocess.run(
                    ["bash", "-c", f"printf %s {word}"], cwd=self.folder, capture_output=True, timeout=60
                )
                self.assertEqual((read.stdout, read.stderr), (file, b""), word)
                self.assert_nothing_ran()


def batches():
    """The texts that JSON can hold, as many at once as a table has rows."""
    texts = [text for text in ALL if isinstance(text, str)]
    for first in range(0, len(texts), AT_ONCE):
        some = texts[first : first + AT_ONCE]
        yield some + ["filler"] * (AT_ONCE - len(some))


if __name__ == "__main__":
    harness.main()
