# SPDX-License-Identifier: Apache-2.0
"""The study as a whole: its tasks, its claims, and what each marker is filled with."""

import csv
import re
from functools import cached_property

from . import law, law_shown, rounding, tables
from .markers import Wrong
from .task import ACCURACY, Task
from .verdicts import NOT_RUN, claims_of, primary_ids


class Study:
    def __init__(self, root):
        self.root = root.resolve()
        self.folder = self.root / "docs/study"
        with open(self.folder / "tasks.csv", newline="", encoding="utf-8") as file:
            self.tasks = {row["task"]: Task(self.root, row) for row in csv.DictReader(file)}
        self.drawings = {}  # what fillings draw beside their page: {file: text}
        self.fillings = {
            "table": lambda words: tables.means(self.task(words)),
            "runs": lambda words: tables.runs(self.task(words)),
            "verdicts": lambda words: tables.verdicts(self.named_claims(words)),
            "brief": lambda words: tables.brief(self.named_claims(words)),
            "again": lambda words: tables.verdicts(self.claims_again(words)),
            "learned": lambda words: tables.learned(self.task(words)),
            "overhead": self.overhead,
            "law": self.law,
            "rounding": lambda words: rounding.table([self.task(id) for id in words.split()]),
            "value": self.value,
        }

    @cached_property
    def claims(self):
        """Those of tasks that are no repetition."""
        return [claim for claim in self.all_claims if not claim.task.again_of]

    @cached_property
    def all_claims(self):
        return claims_of(list(self.tasks.values()), self.primary)

    @cached_property
    def primary(self):
        return primary_ids(self.folder / "protocol.md")

    @property
    def remarks(self):
        return [remark for task in self.tasks.values() if task.rows for remark in task.remarks]

    def task(self, id):
        if id not in self.tasks:
            raise Wrong(f"there is no task '{id}'; tasks.csv has {', '.join(self.tasks)}")
        return self.tasks[id]

    def named_claims(self, words):
        """Those with these ids, or all, or all that are primary, secondary, or of that family."""
        if words in ("all", "primary", "secondary", *(claim.task.family for claim in self.claims if claim.task.family)):
            chosen = [claim for claim in self.claims if words in ("all", self.family_of(claim))]
            return sorted(chosen, key=lambda claim: (claim.id[0], int(claim.id[1:])))
        known = {claim.id for claim in self.claims}
        for id in words.split():
            if id not in known:
                raise Wrong(f"there is no claim '{id}'; the experiment files have {', '.join(sorted(known))}")
        return [claim for id in words.split() for claim in self.claims if claim.id == id]

    def family_of(self, claim):
        return "primary" if claim.id in self.primary else claim.task.family or "secondary"

    def claims_again(self, words):
        """The claims with these ids, of the rows of their tasks' repetitions alone."""
        for claim in self.named_claims(words):
            if not any(claim.task.id == task.again_of for task in self.tasks.values()):
                raise Wrong(f"task {claim.task.id}, of claim {claim.id}, has no repetition: no `again_of` in tasks.csv names it")
        return [claim for id in words.split() for claim in self.all_claims if claim.task.again_of and claim.id == id]

    def overhead(self, words):
        """"N NB | NR | 22400": the rows of tasks N and NB, which are so long, beside the references of NR."""
        parts = words.split(" | ")
        if len(parts) != 3 or not parts[2].isdigit():
            raise Wrong(f"there is no overhead '{words}'; expected 'tasks | task of references | samples'")
        return tables.overheads([self.task(id) for id in parts[0].split()], self.task(parts[1]), int(parts[2]))

    def law(self, words):
        """"NL N | NR | 22400": the delays of NL and N, which are so long, beside the references of NR. Draws law.svg."""
        parts = words.split(" | ")
        if len(parts) != 3 or not parts[2].isdigit():
            raise Wrong(f"there is no law '{words}'; expected 'tasks | task of references | samples'")
        costs = law.costs([self.task(id) for id in parts[0].split()], self.task(parts[1]), int(parts[2]))
        if costs is None:
            return "Its runs have not all been made."
        if all(cost.grows and cost.excess[law.LEFT_OUT] > 0 for cost in costs):
            self.drawings[self.folder / "law.svg"] = law_shown.drawing(costs)
        return law_shown.table(costs)

    def value(self, words):
        """One number in a sentence: "A | label, column", or "P1 effect", or "P1 verdict", or "P1 effect A2" of a repetition."""
        if " | " in words:
            id, _, name = words.partition(" | ")
            task = self.task(id)
            cell = task.cell_named(name)
            text = tables.number(cell.mean, task.metric) if cell.n else NOT_RUN
            return f"{text} %" if cell.n and task.metric == ACCURACY else text
        known = re.fullmatch(r"(\w+) (effect|verdict)(?: (\w+))?", words)
        if not known:
            raise Wrong(f"there is no value '{words}'; expected 'A | label, column', 'P1 effect' or 'P1 verdict'")
        id, what, task = known.groups()
        claims = [claim for claim in self.all_claims if (claim.id, claim.task.id) == (id, task)] if task else self.named_claims(id)
        if not claims:
            raise Wrong(f"task '{task}' has no claim '{id}'")
        claim = claims[0]
        return claim.verdict if what == "verdict" or not claim.run else effect_of(claim)


def effect_of(claim):
    metric = claim.test["metric"]
    return f"{tables.signed(claim.test['effect'], metric)} {tables.unit(metric)}"
