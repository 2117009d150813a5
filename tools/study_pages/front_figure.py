# SPDX-License-Identifier: Apache-2.0
"""Accuracy against modelled hours on a machine: a dot for each point with its stages beside it, the front as a line."""

import math

from . import svg
from .front import on_front, points_of

MARGIN = 1.15  # factor between the outermost points and the ends of the axis


def accuracy_by_hours(task, hardware):
    """The picture; empty if there is nothing to draw."""
    points = [point for point in points_of(task, hardware) if point.known]
    reference = [point for point in points if point.cell.row == task.reference]
    if len(points) < 2 or not reference:
        return ""
    axis, hours = svg.Accuracies([point.cell.mean for point in points]), Hours([point.hours for point in points])
    colours = {task.reference: svg.REFERENCE} | svg.colours_of(
        dict.fromkeys(point.cell.row for point in points if point not in reference))
    front = [(hours.x(point.hours), axis.y(point.cell.mean)) for point in points if on_front(point, points)]
    parts = [*axis.drawn(), *hours.drawn(), svg.path(stairs(front), "#999", 1.5)]
    for point in points:
        x, y = hours.x(point.hours), axis.y(point.cell.mean)
        parts += [svg.dot(x, y, colours[point.cell.row]), svg.text(x + 7, y - 5, point.stages, "start")]
    return svg.document(parts + svg.legend(colours))


def stairs(points):
    """The corners of the line through the points of the front, of which the fastest is the first."""
    corners = points[:1]
    for (_, height), (x, y) in zip(points, points[1:]):
        corners += [(x, height), (x, y)]
    return corners


class Hours:
    """The axis of hours, on which equal factors are equally far apart."""

    def __init__(self, hours):
        self.low, self.high = math.log10(min(hours) / MARGIN), math.log10(max(hours) * MARGIN)

    def x(self, hours):
        return svg.LEFT + (math.log10(hours) - self.low) / (self.high - self.low) * (svg.RIGHT - svg.LEFT)

    def drawn(self):
        ticks = [factor * 10.0**power for power in range(math.floor(self.low), math.ceil(self.high))
                 for factor in (1, 2, 3, 5)]
        return [svg.text(self.x(tick), svg.BOTTOM + 20, f"{tick:g}", "middle") for tick in ticks
                if self.low <= math.log10(tick) <= self.high] + [svg.below("modelled hours of the whole recipe")]
