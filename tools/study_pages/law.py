# SPDX-License-Identifier: Apache-2.0
"""The law of a delay (docs/study/protocol.md, task NL): does the loss that one delay adds grow as a power of the delay?

The excess loss E(d) = L(d) - L(0), of means over the seeds of the task, is fitted as ln E = a + g ln d through the delays of
FITTED; LEFT_OUT is in no fit, and is predicted. The rules L1 and L2 of the protocol are `law_holds` and `powers_differ`.
"""

import math
import re
import statistics
from dataclasses import dataclass

from . import overhead
from .verdicts import CANNOT_BE_TOLD, DOES_NOT_HOLD, HOLDS

FITTED, LEFT_OUT = (1, 2, 4, 8), 16
CLOSE, FAR = 1.2, 2.0  # the factors within which a prediction holds, and beyond which it does not
T_975_OF_4 = 2.78
DELAYS = {"1F1B": 0, "2BW": 1}


@dataclass(frozen=True)
class Power:
    """ln y = a + gamma ln d."""

    a: float
    gamma: float
    residuals: float  # the sum of their squares

    def at(self, delay):
        return math.exp(self.a + self.gamma * math.log(delay))


@dataclass(frozen=True)
class Cost:
    """What delays cost one optimizer."""

    optimizer: str
    losses: dict  # {delay: mean loss}, with that of no delay
    overheads: dict  # {delay: T / T0 - 1}; infinity beyond the references; empty where these have not run

    @property
    def excess(self):
        return {delay: loss - self.losses[0] for delay, loss in self.losses.items() if delay > 0}

    @property
    def grows(self):
        """Whether all delays that are fitted cost something, so that there is a power."""
        return all(self.excess[delay] > 0 for delay in FITTED)

    @property
    def fit(self):
        return power({delay: self.excess[delay] for delay in FITTED})

    @property
    def fit_of_overheads(self):
        """Through the same delays; None where one of them is beyond the references."""
        found = {delay: self.overheads.get(delay, math.inf) for delay in FITTED}
        return power(found) if all(0 < each < math.inf for each in found.values()) else None

    @property
    def factor(self):
        """The measured excess of the delay that was left out, over the predicted one."""
        return self.excess[LEFT_OUT] / self.fit.at(LEFT_OUT)

    @property
    def factor_of_no_growth(self):
        """The same if delays beyond the largest fitted one cost no more than that one."""
        return self.excess[LEFT_OUT] / self.excess[max(FITTED)]


def power(points):
    """Least squares through {d: y} in logarithms."""
    x, y = [math.log(delay) for delay in points], [math.log(value) for value in points.values()]
    gamma, a = statistics.linear_regression(x, y)
    return Power(a, gamma, sum((each - a - gamma * at) ** 2 for at, each in zip(x, y)))


def delay_of(label):
    """Of "AdamW 1F1B" 0, of "AdamW 2BW" 1, of "AdamW delay 4" 4; None of another row."""
    _, _, scheme = label.partition(" ")
    known = re.fullmatch(r"delay (\d+)", scheme)
    return int(known[1]) if known else DELAYS.get(scheme)


def off(factor):
    """By which factor, upwards or downwards; an excess that is none is off by any."""
    return max(factor, 1 / factor) if factor > 0 else math.inf


def law_holds(costs):
    """L1, as changed on 2026-11-28."""
    if not all(cost.grows for cost in costs):
        return DOES_NOT_HOLD
    if any(off(cost.factor) > FAR for cost in costs):
        return DOES_NOT_HOLD
    close = all(off(cost.factor) <= CLOSE and off(cost.factor) < off(cost.factor_of_no_growth) for cost in costs)
    return HOLDS if close else CANNOT_BE_TOLD


def powers_differ(one, other):
    """L2, with the standard error of the difference of the powers; four degrees of freedom, two of each fit."""
    x = [math.log(delay) for delay in FITTED]
    spread = sum((each - statistics.mean(x)) ** 2 for each in x)
    error = math.sqrt((one.residuals + other.residuals) / 4 * 2 / spread)
    return (HOLDS if abs(one.gamma - other.gamma) > T_975_OF_4 * error else CANNOT_BE_TOLD), error


def costs(tasks, references, length):
    """The costs of each optimizer that the first of the tasks has, over that one's seeds; None where a delay is missing."""
    seeds = {row["train.seed"] for row in tasks[0].rows}
    losses = {}
    for task in tasks:
        for label, mean in means(task, seeds).items():
            if delay_of(label) is not None:
                losses.setdefault(overhead.family_of(label), {})[delay_of(label)] = mean
    lengths = curves(references, seeds)
    found = []
    for optimizer in dict.fromkeys(overhead.family_of(row["label"]) for row in tasks[0].rows):
        known = losses.get(optimizer, {})
        if not {0, *FITTED, LEFT_OUT} <= known.keys():
            return None
        found.append(Cost(optimizer, dict(sorted(known.items())), overheads(known, lengths.get(optimizer), length)))
    return found or None


def means(task, seeds):
    """{label: mean loss} of the labels that all of these seeds have trained."""
    of_seeds = [row for row in task.rows if row["train.seed"] in seeds]
    return {label: statistics.mean(values) for label, values in overhead.losses_of(task, of_seeds).items() if len(values) == len(seeds)}


def curves(references, seeds):
    """{optimizer: {length: mean loss}} of the optimizers with which all of these seeds have trained all lengths: a part of a curve bends elsewhere."""
    found = {}
    lengths = sorted({row["loader.limit_train"] for row in references.rows}, key=int)
    for length in lengths:
        of_length = [row for row in references.rows if row["loader.limit_train"] == length and row["train.seed"] in seeds]
        for label, values in overhead.losses_of(references, of_length).items():
            if len(values) == len(seeds):
                found.setdefault(overhead.family_of(label), {})[int(length)] = statistics.mean(values)
    return {optimizer: curve for optimizer, curve in found.items() if len(curve) == len(lengths)}


def overheads(losses, references, length):
    """{delay: T / T0 - 1}, of the references and of the training without a delay itself."""
    if references is None:
        return {}
    curve = {**references, length: losses[0]}
    needed = {delay: overhead.length_at(loss, curve) for delay, loss in losses.items()}
    return {delay: length / each - 1 if 0 < each < math.inf else math.inf for delay, each in needed.items()}
