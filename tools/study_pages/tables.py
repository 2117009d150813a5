# SPDX-License-Identifier: Apache-2.0
"""Tables of accuracies or losses, of runs and of verdicts as Markdown."""

import statistics

from . import overhead
from .task import ACCURACY
from .verdicts import CANNOT_BE_TOLD

HOW_TO_READ = "[How to read this](verdicts.md#how-to-read-the-tables)."


def number(value, metric, sign=""):
    """An accuracy in percent, or a difference of accuracies in points; a loss in nats."""
    text = f"{100 * value:{sign}.2f}" if metric == ACCURACY else f"{value:{sign}.3f}"
    return text.replace("-", "−")


def signed(value, metric):
    return number(value, metric, "+")


def unit(metric):
    return "points" if metric == ACCURACY else "nats"


def small(p):
    return "–" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.2g}"


def markdown(header, rows, left=1):
    """Rows of texts below a header; the first `left` columns are flush left, the others flush right."""
    rule = [":--"] * left + ["--:"] * (len(header) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])


def commands(task):
    lines = f"```sh\n{task.sweep_command}\n{task.keep_command}\n```"
    return f"Not run yet. These commands run it, and keep its rows:\n\n{lines}"


def mean(cell, metric):
    if cell is None:
        return ""
    missing = cell.planned - cell.n
    parts = [number(cell.mean, metric) + (f" ± {number(cell.std, metric)}" if cell.std is not None else "")
             + f" ({cell.n})"] if cell.n else []
    parts += [f"not run ({missing} seed{'s' if missing > 1 else ''})"] if missing else []
    return ", ".join(parts) + (f"; {cell.failed} diverged" if cell.failed else "")


def grid(task, shown):
    """A row for each label, a column for each number of stages or what else the file's table has."""
    cells = {(cell.row, cell.column): cell for cell in task.cells}
    rows, columns = (list(dict.fromkeys(key[part] for key in cells)) for part in (0, 1))
    return markdown(["", *columns], [[row, *(shown(cells.get((row, column))) for column in columns)] for row in rows])


def learned(task):
    """How many runs of each cell came to the floor of the file's table."""
    if not task.has_run:
        return "Not run yet."
    counts = sorted({cell.n for cell in task.cells})
    return grid(task, lambda cell: str(cell.learned) if cell else "") + f"\n\nHow many of {counts[-1]} runs learned."


def means(task):
    if not task.has_run:
        return "Not run yet."
    of_accuracy = task.metric == ACCURACY
    what = "Test accuracy in percent" if of_accuracy else "Test loss in nats"
    chance = f"{100 * task.chance:.0f} %" if of_accuracy else f"{task.chance:g}"
    remark = ""
    if any(cell.failed for cell in task.cells):
        remark = f" Runs that diverged or failed count with {chance}, as by chance."
    return grid(task, lambda cell: mean(cell, task.metric)) + (
        f"\n\n{what} after the last epoch: mean ± sample standard deviation (number of seeds)." + remark)


def overheads(tasks, references, length):
    """Of each row of the tasks the loss, and how many more samples it needs than training without a delay."""
    found = overhead.rows(tasks, references, length)
    if found is None:
        return "The references have not all run."
    lines = [[label, number(statistics.mean(losses), "test_loss"), more, str(len(losses))] for label, losses, more in found]
    return markdown(["", "test loss", "overhead", "seeds"], lines)


def processor_time(hours):
    return f"{hours:.1f} processor hours" if hours >= 0.1 else f"{hours * 60:.1f} processor minutes"


def runs(task):
    """What was trained, where, and how to compute the numbers again."""
    if not task.rows:
        return commands(task)
    done = sum(cell.n for cell in task.cells)
    failed = sum(cell.failed for cell in task.cells)
    hours = sum(float(row["processor_seconds"] or 0) for row in task.rows) / 3600
    machines = sorted({f"{row['processor']} ({row['instruction_set']})" for row in task.rows})
    versions = sorted({f"{row['pipewright']} ({row['commit']})" for row in task.rows})
    lines = [
        f"{done} of {sum(cell.planned for cell in task.cells)} runs"
        + (f", of which {failed} diverged or failed" if failed else "")
        + f"; {processor_time(hours)} on {', '.join(machines)}; version {', '.join(versions)}",
        *task.remarks,
        f"Rows: [{task.rows_file.rsplit('/', 1)[-1]}](../../{task.rows_file}), made by `{task.sweep_command}` and "
        f"`{task.keep_command}`",
        f"The numbers again: `{task.table_command}`",
    ]
    return "\n".join(f"- {line}" for line in lines)


def verdict(claim):
    if claim.of_ends or claim.verdict != CANNOT_BE_TOLD or claim.test["detectable_effect"] is None:
        return claim.verdict
    metric = claim.test["metric"]
    return f"{claim.verdict} ({number(claim.test['detectable_effect'], metric)} {unit(metric)} could be)"


def verdicts(claims):
    """A row for each comparison, with all that decides it."""
    header = ["", "task", "claim", effect_header(claims), "interval", "sd", "p", "Holm", "signs", "n (+ = −)", "verdict"]
    return markdown(header, [verdict_row(claim) for claim in claims], left=3) + f"\n\n{HOW_TO_READ}"


def brief(claims):
    """A row for each comparison: what is claimed of which task, the effect, and the verdict; what has not run comes last."""
    rows = [[claim.id, claim.say, claim.task.title, effect(claim) if claim.run else "", claim.verdict]
            for claim in sorted(claims, key=lambda claim: not claim.run)]
    return markdown(["", "claim", "task", effect_header(claims), "verdict"], rows, left=3) + f"\n\n{HOW_TO_READ}"


def effect_header(claims):
    """Of all claims with their unit; claims of both kinds stand in one table where a family has both."""
    return "effect, " + " or ".join(sorted({unit(claim.task.metric) for claim in claims}, reverse=True))


def effect(claim):
    return f"{signed(claim.test['effect'], claim.test['metric'])}, {interval(claim.test)}"


def interval(test):
    """The interval at its level; none where all pairs differ by the same."""
    if None in test["interval"]:
        return "the same in all pairs"
    low, high = (signed(end, test["metric"]) for end in test["interval"])
    return f"{low} … {high} ({100 * test['level']:.0f} %)"


def ending(test):
    """How many runs end as claimed, and which share of all runs may: the columns from the effect to the number of runs."""
    low, high = (f"{100 * end:.0f}" for end in test["interval"])
    done = {"diverges": "diverged", "finishes": "finished", "learns": "learned", "learns_nothing": "learned nothing"}[test["kind"]]
    return [f"{test['hits']} {done}", f"{low} … {high} % ({100 * test['level']:.0f} %)", "", "", "", "", str(test["n"])]


def verdict_row(claim):
    say = f"{claim.say}: {claim.test['of']}" if claim.of_ends else claim.say
    first = [claim.id, claim.task.id, say]
    if not claim.run:
        return [*first, *[""] * 7, claim.verdict]
    test = claim.test
    if claim.of_ends:
        return [*first, *ending(test), claim.verdict]
    return [*first, signed(test["effect"], test["metric"]), interval(test), deviation(test), small(test["p"]), small(adjusted(claim)),
            small(test["p_sign_flips"]), pairs(test), verdict(claim)]


def adjusted(claim):
    """A repetition that is of no family corrects no other claim's p."""
    return None if claim.task.again_of and not claim.task.family else claim.test["p_holm"]


def deviation(test):
    of = test["std_of_differences"]
    return number(of, test["metric"]) if of is not None else "–"


def pairs(test):
    """How many pairs of runs were compared, and how many differences are above, at and below 0."""
    if not test["paired"]:
        return f"{test['n_of']} + {test['n_minus']}"
    return f"{test['n_of']} ({test['wins']} {test['ties']} {test['losses']})"
