# SPDX-License-Identifier: Apache-2.0
"""Token overhead: how many more samples a row of a task needs than training without a delay, for the loss that it ends with.

Training without a delay is known at several lengths. Their mean losses, joined by lines over the logarithm of the length,
give the length T0 at which it has a loss; the overhead of a run of length T is T / T0 - 1 (docs/study/protocol.md, task N).
"""

import math
import re
import statistics

from .markers import Wrong

# Student's t, 97.5 %, by degrees of freedom.
T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def length_at(loss, curve):
    """The length at which `curve`, {length: loss}, has this loss; infinity or 0 where it lies beyond its ends."""
    points = sorted(curve.items())
    if loss > points[0][1]:
        return 0.0
    for (short, higher), (long, lower) in zip(points, points[1:]):
        if lower <= loss <= higher:
            share = (higher - loss) / (higher - lower) if higher > lower else 0.0
            return math.exp(math.log(short) + share * (math.log(long) - math.log(short)))
    return math.inf


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def summary(losses, length, curve):
    """Mean and 95 % t interval of the logarithm of the ratio; where runs lie beyond the references, how many do."""
    needed = [length_at(loss, curve) for loss in losses]
    shortest, longest = (length / end for end in (min(curve), max(curve)))
    beyond = [f"{count} of {len(losses)} {words}" for count, words in (
        (needed.count(0.0), f"above {percent(shortest)}"), (needed.count(math.inf), f"below {percent(longest)}")) if count]
    if beyond:
        return ", ".join(beyond)
    logarithms = [math.log(length / each) for each in needed]
    mean = statistics.mean(logarithms)
    if len(losses) < 2:
        return percent(math.exp(mean))
    half = T_975[len(losses) - 1] * statistics.stdev(logarithms) / math.sqrt(len(losses))
    return f"{percent(math.exp(mean))}, {percent(math.exp(mean - half))} … {percent(math.exp(mean + half))}"


def family_of(label):
    """The optimizer of "AdamW PipeDream": rows are compared with the references of their own optimizer."""
    return label.partition(" ")[0]


def losses_of(task, rows):
    """The losses of each label in rows of this task; a run that diverged counts as the protocol says."""
    found, known = {}, set()
    for row in rows:
        run = row["label"], row["train.seed"]
        if run in known:
            raise Wrong(f"{task.rows_file} has two rows of '{run[0]}' with seed {run[1]}; expected those of one setting")
        known.add(run)
        loss = row[f"last.{task.metric}"] if row["state"] == "done" else task.chance
        found.setdefault(row["label"], []).append(float(loss))
    return found


def curves(references, losses, length):
    """For each optimizer {length: mean loss}: the references, and between them its row without a delay of the tasks themselves."""
    found = {}
    for cell in references.cells:
        family = found.setdefault(family_of(cell.row), {})
        if cell.n < cell.planned:
            return None
        family[int(re.search(r"\d+$", cell.column)[0])] = cell.mean
        if cell.row not in losses:
            return None
        family[length] = statistics.mean(losses[cell.row])
    return found


def rows(tasks, references, length):
    """[label, loss and overhead] of each label of the tasks, or None where the references have not all run."""
    losses = {label: values for task in tasks for label, values in losses_of(task, task.rows).items()}
    known = curves(references, losses, length)
    if known is None:
        return None
    for label in losses:
        if family_of(label) not in known:
            raise Wrong(f"the references have no optimizer '{family_of(label)}' of the row '{label}'")
    return [(label, values, summary(values, length, known[family_of(label)])) for label, values in losses.items()]
