# SPDX-License-Identifier: Apache-2.0
"""What the program says of a page's experiment: drawing, versions, copies, activations, idle time, edges."""

import re
import shlex

from study_pages.markers import Wrong

BLOCK = re.compile(r"(?ms)^```(yaml|sh)\n(.*?)^```$")
NAMED = re.compile(r"# ([\w./-]+\.\w+)\n")
COSTS = "examples/unit-costs.yaml"


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
        file = f"{self.name}.yaml"
        drawn = ["schedule", file, "--minibatches", minibatches, "--svg", f"{self.name}.svg"]
        table = self.program(*drawn)
        self.drawings[f"{self.name}.svg"] = (self.program.folder / f"{self.name}.svg").read_text(encoding="utf-8")
        simulated = self.program.figures("simulate", file, "--costs", COSTS)
        edges = self.program.figures("stability", file)
        commands = [drawn, ["simulate", file, "--costs", COSTS], ["stability", file]]
        return "\n".join([
            f"![What each worker does, with the version of the weights that each pass reads]({self.name}.svg)",
            "",
            "```sh",
            *(f"build/pipewright {' '.join(words)}" for words in commands),
            "```",
            "",
            "```text",
            *version_lines(table),
            "```",
            "",
            *stage_table(versions(table), edges),
            "",
            *worker_table(simulated),
            "",
            idle_sentence(simulated),
        ])

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


def version_lines(printed):
    """The table of versions, without the grid above and the explanation below it."""
    lines = printed.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("stage "))
    end = next(i for i, line in enumerate(lines) if line.startswith("Columns m0"))
    return [line.rstrip() for line in lines[begin:end]]


def versions(printed):
    """(stage, staleness of the forward, of the backward, copies) of each stage."""
    return re.findall(r"(?m)^(\d+) +-?\d+ +(-?\d+) +(-?\d+) +(\d+) ", "\n".join(version_lines(printed)))


def row(title, cells):
    return f"| {' | '.join([title, *cells])} |"


def rows(kind, names, lines):
    return [row("", [f"{kind} {name}" for name in names]), "|---|" + "--:|" * len(names), *(row(*line) for line in lines)]


def number(value):
    return f"{value:.4g}".replace("-", "−")


def percent(value):
    return f"{100 * value:.1f} %"


def stage_table(stages, edges):
    return rows("stage", [stage[0] for stage in stages], [
        ("copies of the weights", [stage[3] for stage in stages]),
        ("staleness of forward / backward", [f"{stage[1]} / {stage[2]}".replace("-", "−") for stage in stages]),
        ("edge of stability, momentum 0.9", [number(stage["edge"]) for stage in edges["stages"]]),
    ])


def worker_table(simulated):
    """A micro-batch's activations of a stage are one byte, so bytes are micro-batches; those of a slice are rounded up to one."""
    workers, held = simulated["workers"], "slices" if "slices" in simulated else "micro-batches"
    return rows("worker", [str(worker["worker"]) for worker in workers], [
        (f"{held} whose activations it holds", [str(worker["peak"]["activations"]) for worker in workers]),
        ("idle in the steady state", [percent(idle(worker, simulated)) for worker in workers]),
    ])


def idle(worker, simulated):
    """The share of a worker's time, without fill and drain."""
    return 1 - worker["computing"] / (simulated["minibatches"] * simulated["seconds_per_minibatch"])


def idle_sentence(simulated):
    return (f"With fill and drain, {simulated['minibatches']} mini-batches leave the workers idle for "
            f"{percent(simulated['bubble'])} of their time.")
