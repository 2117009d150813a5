# SPDX-License-Identifier: Apache-2.0
"""The study as a whole: its tasks, its claims, and what each marker is filled with."""

import csv
from functools import cached_property

from . import tables
from .markers import Wrong
from .task import Task
from .verdicts import NOT_RUN, claims_of, claims_of_task, primary_ids


class Study:
    def __init__(self, root):
        self.root = root.resolve()
        self.folder = self.root / "docs/study"
        with open(self.folder / "tasks.csv", newline="", encoding="utf-8") as file:
            self.tasks = {row["task"]: Task(self.root, row) for row in csv.DictReader(file)}
        self.fillings = {
            "table": lambda words: tables.accuracies(self.task(words)),
            "runs": lambda words: tables.runs(self.task(words)),
            "verdicts": lambda words: tables.verdicts(self.named_claims(words)),
            "brief": lambda words: tables.brief(self.named_claims(words)),
            "again": lambda words: tables.verdicts(self.claims_again(words)),
            "value": self.value,
        }

    @cached_property
    def claims(self):
        return claims_of(self.tasks.values(), primary_ids(self.folder / "protocol.md"))

    @property
    def remarks(self):
        return [remark for task in self.tasks.values() if task.rows for remark in task.remarks]

    def task(self, id):
        if id not in self.tasks:
            raise Wrong(f"there is no task '{id}'; tasks.csv has {', '.join(self.tasks)}")
        return self.tasks[id]

    def named_claims(self, words):
        """Those with these ids, or all, or all that are primary or secondary."""
        if words in ("all", "primary", "secondary"):
            chosen = [claim for claim in self.claims if words == "all" or claim.primary == (words == "primary")]
            return sorted(chosen, key=lambda claim: (claim.id[0], int(claim.id[1:])))
        known = {claim.id for claim in self.claims}
        for id in words.split():
            if id not in known:
                raise Wrong(f"there is no claim '{id}'; the experiment files have {', '.join(sorted(known))}")
        return [claim for id in words.split() for claim in self.claims if claim.id == id]

    def claims_again(self, words):
        """The claim with this id, of the rows of its task's repetition alone, which correct no other claim's p."""
        (claim,) = self.named_claims(words)
        if not claim.task.again_file:
            raise Wrong(f"task {claim.task.id}, of claim {claim.id}, has no repetition: `again` in tasks.csv names no file")
        return [again for again in claims_of_task(claim.task.again, primary=[]) if again.id == claim.id]

    def value(self, words):
        """One number in a sentence: "A | label, column", or "P1 effect", or "P1 verdict"."""
        if " | " in words:
            id, _, name = words.partition(" | ")
            cell = self.task(id).cell_named(name)
            return f"{100 * cell.mean:.2f} %" if cell.values else NOT_RUN
        id, _, what = words.partition(" ")
        if what not in ("effect", "verdict"):
            raise Wrong(f"there is no value '{words}'; expected 'A | label, column', 'P1 effect' or 'P1 verdict'")
        claim = self.named_claims(id)[0]
        return claim.verdict if what == "verdict" or not claim.run else f"{tables.signed(claim.test['effect'])} points"
