# SPDX-License-Identifier: Apache-2.0
"""Accuracy against stages: a line for each scheme, the reference as a band."""

from . import svg

STEP_ASIDE = 5  # pixels between the bars of two schemes in one number of stages


def accuracy_by_stages(task):
    """The picture; empty if there is nothing to draw."""
    reference = [cell for cell in task.cells if cell.row == task.reference and cell.values]
    lines = {}
    for cell in task.cells:
        if cell.row != task.reference and cell.values and cell.stages:
            lines.setdefault(cell.row, []).append(cell)
    if not lines or not reference:
        return ""
    cells = [cell for line in lines.values() for cell in line]
    axis = svg.Accuracies([end for cell in [*cells, reference[0]] for end in bar(cell)])
    places = places_of(cells)
    colours = svg.colours_of(lines)
    parts = [*axis.drawn(), *(svg.text(x, svg.BOTTOM + 20, str(stages), "middle") for stages, x in places.items()),
             svg.below("stages"), *svg.band(axis, reference[0].mean, reference[0].std or 0)]
    for number, (label, line) in enumerate(lines.items()):
        aside = STEP_ASIDE * (number - (len(lines) - 1) / 2)
        points = [(places[cell.stages] + aside, cell) for cell in sorted(line, key=lambda cell: cell.stages)]
        parts += scheme(axis, points, colours[label])
    return svg.document(parts + svg.legend({task.reference: svg.REFERENCE} | colours))


def places_of(cells):
    """Where each number of stages stands: side by side, the least at the left."""
    stages = sorted({cell.stages for cell in cells})
    width = (svg.RIGHT - svg.LEFT) / len(stages)
    return {each: svg.LEFT + (number + 0.5) * width for number, each in enumerate(stages)}


def bar(cell):
    return [cell.mean - (cell.std or 0), cell.mean + (cell.std or 0)]


def scheme(axis, points, colour):
    parts = [svg.path([(x, axis.y(cell.mean)) for x, cell in points], colour, 2)]
    for x, cell in points:
        low, high = map(axis.y, bar(cell))
        parts += [svg.line(x, low, x, high, colour, 1.5), svg.dot(x, axis.y(cell.mean), colour)]
    return parts
