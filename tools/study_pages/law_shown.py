# SPDX-License-Identifier: Apache-2.0
"""The law of a delay as a table, as sentences and as a drawing: what was measured, the fit, and the delay that is predicted."""

import math

from .law import FITTED, LEFT_OUT, law_holds, powers_differ
from .tables import markdown, number

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 54
COLORS = ("#0060ad", "#c44e00", "#2a7f3f", "#7a3f9d")


def loss(value):
    return number(value, "test_loss")


def table(costs):
    """A row for each optimizer and delay, and below it the two powers and what the rules decide."""
    if not all(cost.grows for cost in costs):
        return f"Some delay costs nothing, so that there is no power to be fitted. L1, there is such a law: **{law_holds(costs)}**."
    lines = [[cost.optimizer, str(delay), loss(mean), *of_delay(cost, delay)] for cost in costs for delay, mean in cost.losses.items()]
    header = ["", "delay", "test loss", "excess loss", "fitted", "overhead"]
    return "\n\n".join([markdown(header, lines), *map(sentence, costs), decided(costs)])


def of_delay(cost, delay):
    """Excess loss, that of the fit, and overhead; nothing without a delay."""
    if delay == 0:
        return ["", "", ""]
    fitted = loss(cost.fit.at(delay)) + (" (predicted)" if delay == LEFT_OUT else "")
    return [loss(cost.excess[delay]), fitted, percent(cost.overheads.get(delay))]


def percent(overhead):
    if overhead is None:
        return "references not run"
    return "beyond the references" if overhead == math.inf else f"{100 * overhead:+.0f} %".replace("-", "−")


def sentence(cost):
    fit, excess = cost.fit, cost.excess[LEFT_OUT]
    text = (f"{cost.optimizer}: the excess loss is {loss(fit.at(1))} · d<sup>{fit.gamma:.2f}</sup> by the delays of up to {max(FITTED)}. "
            f"For {LEFT_OUT} that predicts {loss(fit.at(LEFT_OUT))} nats, and {loss(excess)} were measured: {times(cost.factor)} the prediction. "
            f"It is {times(cost.factor_of_no_growth)} that of {max(FITTED)}.")
    of_overheads = cost.fit_of_overheads
    return text + (f" The overhead is {100 * of_overheads.at(1):.0f} % · d<sup>{of_overheads.gamma:.2f}</sup>." if of_overheads else "")


def times(factor):
    return f"{factor:.2f} times"


def decided(costs):
    text = f"L1, there is such a law: **{law_holds(costs)}**."
    if len(costs) != 2:
        return text
    one, other = (cost.fit for cost in costs)
    verdict, error = powers_differ(one, other)
    difference = f"{one.gamma - other.gamma:+.2f}".replace("-", "−")
    return f"{text} L2, the optimizer changes the power: **{verdict}**; the powers differ by {difference}, with a standard error of {error:.2f}."


def drawing(costs):
    """Excess loss against delay on two logarithmic axes, as SVG."""
    delays = [*FITTED, LEFT_OUT]
    values = [value for cost in costs for delay in delays for value in (cost.excess[delay], cost.fit.at(delay))]
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5) if min(values) / 1.3 <= tick <= max(values) * 1.3]
    low, high = min([*values, *ticks]) / 1.1, max([*values, *ticks]) * 1.1

    def x(delay):
        return LEFT + (WIDTH - LEFT - RIGHT) * (0.04 + 0.92 * math.log(delay) / math.log(LEFT_OUT))

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * math.log(high / value) / math.log(high / low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="13">',
             "<title>Excess loss against delay</title>",
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             text(WIDTH / 2, HEIGHT - 14, "delay of all stages, in updates", "middle"),
             text(LEFT - 50, TOP - 24, "excess loss, nats")]
    for delay in delays:
        parts += [line([(x(delay), TOP), (x(delay), HEIGHT - BOTTOM)], "#dddddd"), text(x(delay), HEIGHT - BOTTOM + 18, str(delay), "middle")]
    for tick in ticks:
        parts += [line([(LEFT, y(tick)), (WIDTH - RIGHT, y(tick))], "#dddddd"), text(LEFT - 8, y(tick) + 4, f"{tick:g}", "end")]
    for cost, color in zip(costs, COLORS):
        known, beyond = [1, max(FITTED)], [max(FITTED), LEFT_OUT]
        parts += [line([(x(delay), y(cost.fit.at(delay))) for delay in known], color),
                  line([(x(delay), y(cost.fit.at(delay))) for delay in beyond], color, ' stroke-dasharray="6 5"')]
        parts += [f'<circle cx="{x(delay):.1f}" cy="{y(cost.excess[delay]):.1f}" r="5" stroke="{color}" stroke-width="2" '
                  f'fill="{"#ffffff" if delay == LEFT_OUT else color}"/>' for delay in delays]
    for place, (cost, color) in enumerate(zip(costs, COLORS)):
        at = WIDTH - RIGHT - 10, HEIGHT - BOTTOM - 12 - 18 * place
        parts.append(text(*at, f"{cost.optimizer}: power {cost.fit.gamma:.2f}", "end", color))
    at = WIDTH - RIGHT, TOP - 24
    parts.append(text(*at, "filled: measured and fitted; open: measured, not fitted; dashed: predicted", "end", "#555555"))
    return "\n".join([*parts, "</svg>", ""])


def text(x, y, words, anchor="start", color="#222222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def line(points, color, dash=""):
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{color}" stroke-width="1.5"{dash}/>'
