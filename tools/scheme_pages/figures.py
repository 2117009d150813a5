# SPDX-License-Identifier: Apache-2.0
"""What the program draws and prints of a page's experiment."""

import itertools
import re
import shlex

from study_pages.markers import Wrong

BLOCK = re.compile(r"(?ms)^```(yaml|sh)\n(.*?)^```$")
NAMED = re.compile(r"# ([\w./-]+\.\w+)\n")


class Figures:
    """Of the experiment `<scheme>.yaml` that the page has as a block."""

    def __init__(self, page, program):
        self.name, self.program, self.page = page.stem, program, page
        self.drawings = {}  # file name → SVG

    def text(self, minibatches):
        """The marker's text: commands and what they print. `minibatches` are drawn."""
        if not re.fullmatch(r"[1-9]\d*", minibatches):
            raise Wrong(f"'{minibatches}' is no number of mini-batches; expected one of at least 1")
        self.prepare()
        file, drawing = f"{self.name}.yaml", f"{self.name}.svg"
        commands = [["schedule", file, "--minibatches", minibatches, "--svg", drawing],
                    ["simulate", file, "--costs", "examples/unit-costs.yaml"], ["stability", file]]  # fmt: skip
        schedule, simulation, stability = (self.program(*words) for words in commands)
        self.drawings[drawing] = (self.program.folder / drawing).read_text(encoding="utf-8")
        return "\n".join([
            f"![What each worker does, with the version of the weights that each pass reads]({drawing})",
            "",
            "```sh",
            *(f"build/pipewright {' '.join(words)}" for words in commands),
            "```",
            "",
            "```text",
            *itertools.takewhile(lambda line: not line.startswith("Columns m0"), paragraph(schedule, "stage ")),
            "",
            *paragraph(simulation, "makespan "),
            "",
            *paragraph(simulation, " worker "),
            "",
            *paragraph(stability, " stage "),
            "```",
        ])  # fmt: skip

    def prepare(self):
        """Writes the page's files and runs its other commands, in their order."""
        for language, text in BLOCK.findall(re.sub(r"(?s)<!-- program.*?<!-- end -->", "", self.page.read_text(encoding="utf-8"))):
            named = NAMED.match(text)
            if language == "yaml" and named:
                (self.program.folder / named[1]).write_text(text, encoding="utf-8")
            for line in text.splitlines() if language == "sh" else ():
                words = shlex.split(line, comments=True)
                if words and words[0] == "build/pipewright":
                    self.program(*words[1:])
        if not (self.program.folder / f"{self.name}.yaml").exists():
            raise Wrong(f"the page has no block with the experiment; expected one of yaml whose first line is '# {self.name}.yaml'")


def paragraph(printed, beginning):
    """The lines from the first that begins so to the next empty one."""
    lines = itertools.dropwhile(lambda line: not line.startswith(beginning), printed.splitlines())
    return [line.rstrip() for line in itertools.takewhile(str.strip, lines)]
