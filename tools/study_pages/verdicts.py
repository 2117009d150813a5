# SPDX-License-Identifier: Apache-2.0
"""The claims of all files and what the program decides of them.

`pipewright table` decides the claims of a file, `pipewright claims` those of a family over several files: the primary
claims of the protocol, and the claims of tasks that share a `family` in tasks.csv.
"""

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .markers import Wrong
from .task import pipewright

HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_RUN = "holds", "does not hold", "cannot be told", "not run yet"
INCOMPLETE = "incomplete"  # some of its runs are there, and decide nothing
WORDS = {"held": HOLDS, "not held": DOES_NOT_HOLD, "not shown": CANNOT_BE_TOLD}


@dataclass(frozen=True)
class Claim:
    """One comparison of a claim. Or, of a claim about how runs end, those of one cell."""

    id: str
    task: object
    say: str
    test: dict  # a member of `tests` of the program's JSON

    @property
    def of_ends(self):
        return "hits" in self.test

    @property
    def run(self):
        return None not in self.test["interval"] if self.of_ends else self.test["p"] is not None

    @property
    def verdict(self):
        if self.run:
            return WORDS[self.test["verdict"]]
        begun = re.match(r"[1-9]\d* of", self.test["why"]) if self.of_ends else self.test["n_of"] + self.test["n_minus"] > 0
        return INCOMPLETE if begun else NOT_RUN


def primary_ids(protocol):
    """The ids in the first column of the protocol's table of primary claims, each once."""
    ids = re.findall(r"(?m)^\| (P\d+) \|", protocol.read_text(encoding="utf-8"))
    if len(set(ids)) != len(ids):
        raise Wrong(f"{protocol.name}: a primary claim is there twice: {', '.join(ids)}")
    return ids


def claims_of(tasks, primary):
    """All claims of the tasks, each decided in its family, or else in its file."""
    found = [claim for task in tasks for claim in claims_of_task(task)]
    first = [claim for claim in found if not claim.task.again_of]
    check_primary([claim for claim in first if claim.id in primary], primary)
    decided = {}
    if primary:
        decided |= decided_together([task for task in tasks if not task.again_of], primary)
    for family in sorted({task.family for task in tasks} - {""}):
        decided |= decided_together([task for task in tasks if task.family == family])
    return [Claim(claim.id, claim.task, claim.say, tests[number])
            for key, group in grouped(found) for tests in [decided.get(key, [claim.test for claim in group])]
            for number, claim in enumerate(group)]


def grouped(claims):
    """The comparisons of each claim, by its task and its id."""
    groups = {}
    for claim in claims:
        groups.setdefault((claim.task.id, claim.id), []).append(claim)
    return groups.items()


def check_primary(claims, primary):
    for claim in claims:
        if claim.of_ends:
            raise Wrong(f"{claim.task.file}: the claim {claim.id} compares no means; expected `less` or `close` of a primary claim")
    theirs = [claim.id for claim in claims]
    if sorted(theirs) != sorted(primary):
        lacking, twice = set(primary) - set(theirs), {each for each in theirs if theirs.count(each) > 1}
        raise Wrong(f"primary claims of the protocol are not each one comparison of an experiment file: "
                    f"lacking {', '.join(sorted(lacking)) or 'none'}, several {', '.join(sorted(twice)) or 'none'}")


def decided_together(tasks, ids=()):
    """The tests of the family's claims, by task and id."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(tasks))]
        for task, file in zip(tasks, files, strict=True):
            file.write_text(task.printed[0], encoding="utf-8")
        text, _ = pipewright(tasks[0].root, "claims", *files, *(["--only", ",".join(ids)] if ids else []))
    return {(tasks[claim["table"]].id, claim["say"].partition(":")[0]): claim["tests"]
            for claim in json.loads(text)["claims"]}


def claims_of_task(task):
    for claim in task.results["claims"]:
        id, colon, say = claim["say"].partition(": ")
        if not colon or not re.fullmatch(r"[A-Z]\d+", id):
            raise Wrong(f"{task.file}: a claim says '{claim['say']}'; expected its id first, as in 'P1: …'")
        for test in claim["tests"]:
            yield Claim(id, task, say, test)
