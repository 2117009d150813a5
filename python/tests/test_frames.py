# SPDX-License-Identifier: Apache-2.0
"""Frames hold what the files hold, as pandas reads them, and tidily: a row for each thing, a column for each quantity."""

import pandas
import pytest

import pipewright_lab as pw


@pytest.mark.parametrize("table", ["epochs", "steps", "probes"])
def test_a_frame_is_the_file_with_the_run_before_it(experiment, table):
    results = pw.run(experiment | {"probes": [{"name": "weight_gap", "every": 2}]}, out="out")
    frame = getattr(results, table)
    assert set(frame.pop("run")) == {"out"}
    assert set(frame.pop("state")) == {"done"}
    pandas.testing.assert_frame_equal(frame, pandas.read_csv(f"out/{table}.csv"), check_dtype=False)
    assert len(frame) > 0


def test_frames_of_a_sweep_say_what_varies(experiment):
    results = pw.sweep(experiment | {"sweep": {"grid": {"scheme.name": ["gpipe", "pipedream"], "train.seed": [1, 2]}}})
    assert len(results.runs) == 4
    assert set(results.runs.state) == {"done"}
    last = results.epochs[results.epochs.epoch == 1].set_index(["scheme.name", "train.seed"]).test_accuracy
    summary = results.runs.set_index(["scheme.name", "train.seed"]).test_accuracy
    pandas.testing.assert_series_equal(last.sort_index(), summary.sort_index())
    assert pw.load(results.folder).runs.equals(results.runs)


def test_a_folder_without_probes_has_an_empty_frame(experiment):
    assert pw.run(experiment, out="out").probes.empty


def test_sweeps_beside_the_runs_of_a_folder_are_named(experiment):
    pw.sweep(experiment | {"sweep": {"grid": {"train.seed": [1, 2]}}}, out="runs/some")
    with pytest.raises(FileNotFoundError, match=r"^runs is no folder of a run or of a sweep; these are: runs/some$"):
        pw.load("runs")
    pw.run(experiment, out="runs/one")
    with pytest.warns(UserWarning, match="^runs: runs of sweeps in folders of their own are left out: runs/some$"):
        assert len(pw.load("runs").runs) == 1
