# SPDX-License-Identifier: Apache-2.0
"""Accuracy against stages as SVG: a line for each scheme, the reference as a band."""

import itertools
import math
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 64, 540, 20, 340
WIDTH, HEIGHT = 720, 390
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # colour-blind readers see them
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
    axis = Axis(cells, reference[0])
    colours = dict(zip(lines, itertools.cycle(COLOURS)))
    parts = [*axis.drawn(), *band(axis, reference[0])]
    for number, (label, line) in enumerate(lines.items()):
        aside = STEP_ASIDE * (number - (len(lines) - 1) / 2)
        parts += scheme(axis, sorted(line, key=lambda cell: cell.stages), colours[label], aside)
    parts += legend(task.reference, colours)
    return document(parts)


class Axis:
    """Where a number of stages and an accuracy are in the picture."""

    def __init__(self, cells, reference):
        self.stages = sorted({cell.stages for cell in cells})
        ends = [(cell.mean + sign * (cell.std or 0)) * 100 for cell in [*cells, reference] for sign in (-1, 1)]
        step = nice_step((max(ends) - min(ends)) / 5)
        low, high = math.floor(min(ends) / step), math.ceil(max(ends) / step)
        self.ticks = [step * tick for tick in range(low, max(high, low + 1) + 1)]

    def x(self, stages):
        return LEFT + (self.stages.index(stages) + 0.5) * (RIGHT - LEFT) / len(self.stages)

    def y(self, share):
        low, high = self.ticks[0], self.ticks[-1]
        return BOTTOM - (100 * share - low) / (high - low) * (BOTTOM - TOP)

    def drawn(self):
        parts = [line(LEFT, self.y(tick / 100), RIGHT, self.y(tick / 100), "#ddd", 1) for tick in self.ticks]
        parts += [text(LEFT - 8, self.y(tick / 100) + 4, f"{tick:g}", "end") for tick in self.ticks]
        parts += [text(self.x(stages), BOTTOM + 20, str(stages), "middle") for stages in self.stages]
        parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 42, "stages", "middle"))
        middle = (TOP + BOTTOM) / 2
        parts.append(f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})">'
                     "test accuracy, %</text>")
        return parts


def nice_step(least):
    """The smallest of 1, 2 and 5 times a power of ten that is not less."""
    power = 10 ** math.floor(math.log10(max(least, 1e-3)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def band(axis, cell):
    top, bottom = (axis.y(cell.mean + sign * (cell.std or 0)) for sign in (1, -1))
    return [f'<rect x="{LEFT}" y="{top:.1f}" width="{RIGHT - LEFT}" height="{bottom - top:.1f}" fill="#999" '
            'opacity="0.3"/>',
            line(LEFT, axis.y(cell.mean), RIGHT, axis.y(cell.mean), "#666", 1.5)]


def scheme(axis, cells, colour, aside):
    points = [(axis.x(cell.stages) + aside, axis.y(cell.mean)) for cell in cells]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for cell, (x, y) in zip(cells, points, strict=True):
        ends = [axis.y(cell.mean + sign * (cell.std or 0)) for sign in (1, -1)]
        parts += [line(x, ends[0], x, ends[1], colour, 1.5),
                  f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>']
    return parts


def legend(reference, colours):
    parts = [f'<rect x="{RIGHT + 14}" y="{TOP}" width="22" height="10" fill="#999" opacity="0.5"/>',
             text(RIGHT + 44, TOP + 10, reference, "start")]
    for number, (label, colour) in enumerate(colours.items(), 1):
        y = TOP + 5 + 22 * number
        parts += [line(RIGHT + 14, y, RIGHT + 36, y, colour, 2), text(RIGHT + 44, y + 5, label, "start")]
    return parts


def line(x1, y1, x2, y2, colour, width):
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def text(x, y, words, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def document(parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""])
