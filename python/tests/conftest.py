# SPDX-License-Identifier: Apache-2.0
"""Every test works in a folder of its own, with the program that PIPEWRIGHT_BINARY names."""

import os
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
EXPERIMENT = {
    "name": "small",
    "dataset": {"name": "digits"},
    "loader": {"batch_size": 16, "limit_train": 96, "limit_test": 32},
    "model": {"name": "mlp"},
    "pipeline": {"stages": 2},
    "scheme": {"name": "pipedream"},
    "optimizer": {"lr": 0.02, "momentum": 0.9},
    "train": {"epochs": 2},
}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    program = os.environ.get("PIPEWRIGHT_BINARY", str(SOURCE / "build" / "pipewright"))
    monkeypatch.setenv("PIPEWRIGHT_BINARY", str(Path(program).resolve()))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def experiment():
    return EXPERIMENT


@pytest.fixture
def source():
    return SOURCE
