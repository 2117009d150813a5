# SPDX-License-Identifier: Apache-2.0
"""A picture as SVG: a plot with an axis of accuracies at the left, and a legend at the right."""

import itertools
import math
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 64, 540, 20, 340
WIDTH, HEIGHT = 720, 390
REFERENCE = "#666"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # colour-blind readers see them


class Accuracies:
    """The axis of accuracies: round numbers around all of the given shares."""

    def __init__(self, shares):
        least, most = 100 * min(shares), 100 * max(shares)
        step = nice_step((most - least) / 5)
        low, high = math.floor(least / step), math.ceil(most / step)
        self.ticks = [step * tick for tick in range(low, max(high, low + 1) + 1)]

    def y(self, share):
        low, high = self.ticks[0], self.ticks[-1]
        return BOTTOM - (100 * share - low) / (high - low) * (BOTTOM - TOP)

    def drawn(self):
        middle = (TOP + BOTTOM) / 2
        parts = [line(LEFT, self.y(tick / 100), RIGHT, self.y(tick / 100), "#ddd", 1) for tick in self.ticks]
        parts += [text(LEFT - 8, self.y(tick / 100) + 4, f"{tick:g}", "end") for tick in self.ticks]
        parts.append(f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})">'
                     "test accuracy, %</text>")
        return parts


def nice_step(least):
    """The smallest of 1, 2 and 5 times a power of ten that is not less."""
    power = 10 ** math.floor(math.log10(max(least, 1e-3)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def colours_of(labels):
    return dict(zip(labels, itertools.cycle(COLOURS)))


def band(axis, mean, deviation):
    top, bottom = axis.y(mean + deviation), axis.y(mean - deviation)
    return [f'<rect x="{LEFT}" y="{top:.1f}" width="{RIGHT - LEFT}" height="{bottom - top:.1f}" fill="#999" '
            'opacity="0.3"/>', line(LEFT, axis.y(mean), RIGHT, axis.y(mean), REFERENCE, 1.5)]


def legend(colours):
    """A line for each label, from the top."""
    parts = []
    for number, (label, colour) in enumerate(colours.items()):
        y = TOP + 5 + 22 * number
        parts += [line(RIGHT + 14, y, RIGHT + 36, y, colour, 3), text(RIGHT + 44, y + 5, label, "start")]
    return parts


def below(words):
    """What the other axis is of."""
    return text((LEFT + RIGHT) / 2, BOTTOM + 42, words, "middle")


def line(x1, y1, x2, y2, colour, width):
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def path(points, colour, width):
    ends = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{ends}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def dot(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def text(x, y, words, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def document(parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *parts, "</svg>", ""])
