# SPDX-License-Identifier: Apache-2.0
"""What the program says of runs reaches Python as it prints it: tables, claims, pages, edges, simulations."""

import json
import subprocess

import pytest

import pipewright_lab as pw

CLAIM = {"say": "Four stages learn what two learn", "close": [{"pipeline.stages": 4}, {"pipeline.stages": 2}], "within": 0.5}


def printed(*arguments):
    return subprocess.run([pw.find_program(), *map(str, arguments)], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def swept(experiment, tmp_path):
    grid = {"grid": {"pipeline.stages": [2, 4], "train.seed": [1, 2, 3]}}
    (tmp_path / "asked.yaml").write_text(json.dumps(experiment | {"name": "asked", "sweep": grid, "claims": [CLAIM]}))
    return pw.sweep("asked.yaml", settings={"train.epochs": 1})


def test_a_table_is_the_programs(swept):
    table = swept.table()
    assert str(table) == printed("table", "asked.yaml", "--set", "train.epochs=1")
    assert table._repr_markdown_() == str(table)
    assert table.content == json.loads(printed("table", "asked.yaml", "--set", "train.epochs=1", "--format", "json"))
    assert [(cell["n"], cell["failed"]) for cell in table.cells] == [(3, 0)] * len(table.cells)
    assert list(table.frame["mean"]) == [cell["mean"] for cell in table.cells]
    losses = swept.table(metric="test_loss", epoch="best")
    assert losses.content["metric"] == "test_loss"
    assert losses.frame["mean"].tolist() != table.frame["mean"].tolist()


def test_claims_have_their_verdicts(swept):
    (claim,) = swept.claims()
    assert claim["say"] == CLAIM["say"]
    assert claim["verdict"] in ("held", "not held", "not shown")
    assert claim["tests"][0]["n_of"] == 3


def test_claims_of_several_tables_are_one_family(swept):
    table = swept.table()
    said = pw.claims(table, table)
    assert [claim["table"] for claim in said["claims"]] == [0, 1]
    assert said["comparisons"] == 2
    with pytest.raises(pw.PipewrightError, match="no claim of the tables begins with 'P1:'"):
        pw.claims(table, only=["P1"])


def test_a_loaded_folder_needs_its_experiment(swept):
    with pytest.raises(ValueError, match="load\\(folder, experiment\\) says which"):
        pw.load(swept.folder).table()
    again = pw.load(swept.folder, "asked.yaml", settings={"train.epochs": 1})
    assert str(again.table()) == str(swept.table())


def test_a_run_is_found_by_its_settings(swept):
    one = swept.where({"pipeline.stages": 4, "seed": 2})
    ((stages, seed),) = one.runs[["pipeline.stages", "train.seed"]].to_numpy().tolist()
    assert (stages, seed) == (4, 2)
    with pytest.raises(pw.PipewrightError, match="3 runs have pipeline.stages=4; they differ in train.seed \\(1, 2, 3\\)"):
        swept.where({"stages": 4})


def test_a_sweeps_runs_are_loaded_beside_a_run_of_its_file(swept, tmp_path):
    pw.run("asked.yaml", out=swept.folder)
    assert len(pw.load(swept.folder).list) == 6
    assert pw.load(swept.folder).report("page.html").is_file()


def test_settings_may_be_numbers_of_numpy(experiment):
    numpy = pytest.importorskip("numpy")
    ran = pw.run(experiment, settings={"train.seed": numpy.int64(3), "optimizer.lr": numpy.float32(0.5)})
    assert ran.list[0].record["seed"] == 3
    with pytest.raises(TypeError, match="train.seed is .*; expected a number"):
        pw.run(experiment, settings={"train.seed": object()})


def test_reports_are_written(swept, tmp_path):
    assert swept.report() == swept.folder / "report.html"
    assert CLAIM["say"] in swept.report("page.html").read_text()
    one = swept.where({"pipeline.stages": 2, "seed": 1})
    assert CLAIM["say"] not in one.report(tmp_path / "one.html").read_text()


def test_edges_are_those_of_the_command(experiment):
    said = pw.stability(experiment, settings={"pipeline.stages": 3})
    assert [stage["forward_delay"] for stage in said["stages"]] == [2, 1, 0]
    points = pw.stability(experiment | {"sweep": {"grid": {"pipeline.stages": [2, 3]}}}, sweep=True)["points"]
    assert [point["forward_delay"] for point in points] == [1, 2]
    measured = pw.run(experiment | {"probes": [{"name": "sharpness", "every": 3}]}, out="probed")
    beside = pw.stability(measured.folder / "experiment.yaml", run=measured.folder)
    assert all(stage["curvature"] > 0 for stage in beside["stages"])
    assert "curvature" not in said["stages"][0]


def test_simulations_are_those_of_the_command(experiment, tmp_path):
    (tmp_path / "asked.yaml").write_text(json.dumps(experiment))
    said = pw.simulate("asked.yaml", "dgx1-v100")
    printed("simulate", "asked.yaml", "--hardware", "dgx1-v100", "--json", "theirs.json")
    assert said == json.loads((tmp_path / "theirs.json").read_text())
    slow = pw.simulate(experiment, {"devices": {"count": 2, "teraflops": 0.001, "memory_gb_per_s": 1}})
    assert slow["makespan"] > said["makespan"]
    points = pw.simulate(experiment | {"sweep": {"grid": {"pipeline.stages": [2, 3]}}}, "dgx1-v100", sweep=True)["points"]
    assert [point["workers"] for point in points] == [2, 3]
