# SPDX-License-Identifier: Apache-2.0
"""One statement over several tasks: only where there are four or more whose effects have one sign.

Each task's effect is divided by the standard deviation of its reference over seeds, so that tasks count alike. The
interval is of a bootstrap within each task: seeds are drawn anew, tasks are not.
"""

import random
from statistics import mean

from .markers import Wrong
from .tables import interval, markdown, signed
from .verdicts import NOT_RUN

FEWEST_TASKS = 4
DRAWS = 2000


def pooled_effect(differences, deviations):
    """The mean over tasks of the mean difference in deviations of the task's reference."""
    return mean(mean(those) / deviation for those, deviation in zip(differences, deviations, strict=True))


def bootstrap_interval(differences, deviations):
    """From the 2.5th to the 97.5th percentile of effects whose differences are drawn anew in each task."""
    draw = random.Random(1).random
    effects = sorted(
        pooled_effect([[those[int(draw() * len(those))] for _ in those] for those in differences], deviations)
        for _ in range(DRAWS)
    )
    return effects[DRAWS * 25 // 1000], effects[DRAWS - 1 - DRAWS * 25 // 1000]


def pooled(claims):
    """Each task's own effect and interval; below them one for all, or why there is none."""
    if len({claim.task.id for claim in claims}) != len(claims):
        raise Wrong("two of the claims are of one task; expected one of each")
    rows = [row(claim) for claim in claims]
    return markdown(["", "task", "comparison", "effect, points", "interval", "in deviations of the reference"], rows,
                    left=3) + f"\n\n{statement([claim for claim in claims if claim.run])}"


def row(claim):
    first = [claim.id, claim.task.title, f"{claim.test['of']} minus {claim.test['minus']}"]
    if not claim.run:
        return [*first, NOT_RUN, "", ""]
    return [*first, signed(claim.test["effect"]), interval(claim.test),
            in_deviations(claim.test["effect"], deviation(claim.task))]


def in_deviations(effect, deviation):
    return f"{effect / deviation:+.2f}".replace("-", "−") if deviation else "–"


def deviation(task):
    return task.cell_named(task.reference).std


def differences(claim):
    """Of the runs with equal seeds."""
    of, minus = (claim.task.cell_named(claim.test[group]).values for group in ("of", "minus"))
    return [of[seed] - minus[seed] for seed in of if seed in minus]


def statement(claims):
    if len(claims) < FEWEST_TASKS:
        tasks = f"{len(claims)} task{'s have' if len(claims) != 1 else ' has'} run"
        return f"No statement over tasks: {tasks}, and the protocol asks for {FEWEST_TASKS}."
    if len({claim.test["effect"] > 0 for claim in claims}) > 1:
        return "No statement over tasks: the signs of their effects differ."
    if not all(deviation(claim.task) for claim in claims):
        return "No statement over tasks: the runs of a reference do not vary."
    theirs = [differences(claim) for claim in claims], [deviation(claim.task) for claim in claims]
    low, high = bootstrap_interval(*theirs)
    effect = f"{pooled_effect(*theirs):+.2f} deviations of the reference, {low:+.2f} … {high:+.2f}".replace("-", "−")
    return f"Over {len(claims)} tasks: {effect} (95 %, bootstrap of the seeds within tasks)."
