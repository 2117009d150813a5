# SPDX-License-Identifier: Apache-2.0
"""The claims of the protocol and what the rows decide of them.

The program compares the groups of each claim. What no single command can do is done here: Holm's correction goes over
the primary claims of all files, as the protocol's rules 5 and 6 say. A claim that has not run yet counts as one whose p
is 1, so no claim holds now that would not hold if the others came to nothing.
"""

import re
from dataclasses import dataclass

from .markers import Wrong
from .task import ENDS

LEVEL = 0.05
HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_RUN = "holds", "does not hold", "cannot be told", "not run yet"


def holm(ps):
    """Holm's adjusted p values, in the order given."""
    adjusted, largest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = largest
    return adjusted


@dataclass(frozen=True)
class Claim:
    """One comparison: that of a primary claim, or one of a secondary claim. Or, secondary, how the runs of a cell end."""

    id: str
    task: object
    say: str
    test: dict  # a member of `tests` of the program's JSON
    primary: bool
    adjusted: float = None  # p after Holm's correction: over all primary claims, or over those of the task

    @property
    def of_ends(self):
        return self.test["kind"] in ENDS

    @property
    def run(self):
        return None not in self.test["interval"] if self.of_ends else self.test["p"] is not None

    @property
    def verdict(self):
        if not self.run:
            return NOT_RUN
        if not self.primary:
            return {"held": HOLDS, "not held": DOES_NOT_HOLD}.get(self.test["verdict"], CANNOT_BE_TOLD)
        if self.test["kind"] == "close":
            return self.equivalence()
        if self.adjusted <= LEVEL and self.test["effect"] < 0:
            return DOES_NOT_HOLD
        if self.adjusted <= LEVEL and (self.test["p_sign_flips"] or 1.0) <= LEVEL:
            return HOLDS
        return CANNOT_BE_TOLD

    def equivalence(self):
        if self.test["verdict"] == "not held":
            return DOES_NOT_HOLD
        return HOLDS if self.adjusted <= LEVEL else CANNOT_BE_TOLD


def primary_ids(protocol):
    """The ids in the first column of the protocol's table of primary claims, each once."""
    ids = re.findall(r"(?m)^\| (P\d+) \|", protocol.read_text(encoding="utf-8"))
    if len(set(ids)) != len(ids):
        raise Wrong(f"{protocol.name}: a primary claim is there twice: {', '.join(ids)}")
    return ids


def claims_of(tasks, primary):
    """All claims of all files; those of the protocol's table have a p that is corrected over them."""
    found = [claim for task in tasks for claim in claims_of_task(task, primary)]
    theirs = [claim.id for claim in found if claim.primary]
    if sorted(theirs) != sorted(primary):
        lacking, twice = set(primary) - set(theirs), {each for each in theirs if theirs.count(each) > 1}
        raise Wrong(f"primary claims of the protocol are not each one comparison of an experiment file: "
                    f"lacking {', '.join(sorted(lacking)) or 'none'}, several {', '.join(sorted(twice)) or 'none'}")
    ps = {claim.id: claim.test["p"] if claim.run else 1.0 for claim in found if claim.primary}
    adjusted = dict(zip(ps, holm(list(ps.values())), strict=True))
    return [Claim(**(vars(claim) | {"adjusted": adjusted.get(claim.id, claim.test.get("p_holm"))}))
            for claim in found]


def claims_of_task(task, primary):
    for said, tests in task.claims:
        id, colon, say = said.partition(": ")
        if not colon or not re.fullmatch(r"[A-Z]\d+", id):
            raise Wrong(f"{task.file}: a claim says '{said}'; expected its id first, as in 'P1: …'")
        for test in tests:
            if test["kind"] in ENDS and id in primary:
                raise Wrong(f"{task.file}: the claim {id} compares no means; expected `less` or `close` of a primary claim")
            yield Claim(id, task, say, test, id in primary)
