# SPDX-License-Identifier: Apache-2.0
"""A schedule in a notebook: a picture, a frame, and steps."""

import pandas
import pytest

import pipewright_lab as pw


@pytest.fixture
def schedule(experiment):
    return pw.Schedule.of(experiment, minibatches=3)


def test_its_picture_is_the_programs(schedule):
    assert schedule._repr_svg_().startswith("<svg")


def test_its_actions_are_a_frame(schedule):
    frame = pandas.DataFrame(schedule.actions)
    assert list(frame.groupby("kind").size()[["forward", "update"]]) == [6, 6]  # 3 mini-batches, 2 stages
    assert set(frame[frame.kind == "forward"].version) <= {0, 1, 2}


def test_a_drawing_until_a_slot_has_what_has_begun_by_then(schedule):
    taking_time = [action for action in schedule.actions if action.slots > 0]
    before = 0
    for slot in range(schedule.makespan):
        bars = len(schedule.draw(until=slot).patches)
        assert bars == sum(action.start <= slot for action in taking_time)
        assert bars >= before
        before = bars
    axes = schedule.draw()
    assert len(axes.patches) == len(taking_time) == before
    assert [label.get_text() for label in axes.get_yticklabels()] == ["worker 0", "worker 1"]
    assert axes.get_xlim() == (0, schedule.makespan)


def test_drawings_of_all_slots_have_one_size(schedule):
    assert schedule.draw(until=0).get_xlim() == schedule.draw().get_xlim()
    assert schedule.draw(until=0).get_ylim() == schedule.draw().get_ylim()
