# SPDX-License-Identifier: Apache-2.0
"""tools/convert_weights.py against torch.load and safetensors; and that nothing of a checkpoint runs."""

import argparse
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path

import numpy
import safetensors.torch
import skips
import torch
import torchvision

TOOL = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]) / "tools" / "convert_weights.py"
DATA = 3


class Attack:
    def __init__(self, function, *arguments):
        self.what = function, arguments

    def __reduce__(self):
        return self.what


class ConvertWeights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-conformance-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.source = self.folder / "model.pth"
        self.target = self.folder / "model.safetensors"

    def run_tool(self, *arguments, code=0):
        command = [sys.executable, "-I", "-S", TOOL, self.source, *arguments]  # no packages
        done = subprocess.run(command, text=True, capture_output=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(list(self.folder.glob("*.part")), [])
        return done.stderr

    def converted(self, content, *arguments):
        torch.save(content, self.source)
        self.run_tool(*arguments)
        return safetensors.torch.load_file(self.target)

    def assert_same(self, found, expected):
        self.assertEqual(sorted(found), sorted(expected))
        for name, tensor in expected.items():
            self.assertEqual((found[name].dtype, found[name].shape), (tensor.dtype, tensor.shape), name)
            self.assertTrue(torch.equal(found[name], tensor), name)

    def refused(self, pattern, *arguments):
        error = self.run_tool(*arguments, code=DATA)
        self.assertRegex(error, pattern)
        self.assertTrue(error.startswith(f"{self.source}: "), error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertFalse(self.target.exists())

    def pickled(self, content, folder="archive"):
        """A checkpoint whose data.pkl is that."""
        with zipfile.ZipFile(self.source, "w") as archive:
            archive.writestr(folder + "/data.pkl", content)
            archive.writestr(folder + "/data/0", bytes(16))

    def test_a_fifo_is_refused(self):
        os.mkfifo(self.source)
        self.refused("is no regular file")

    def test_a_model_s_state(self):
        state = torchvision.models.resnet18(num_classes=10).state_dict()
        self.assert_same(self.converted(state), state)
        self.assertEqual(list(self.converted({"w": state["fc.weight"]})), ["w"])

    def test_what_it_writes_is_taken_for_a_model(self):
        self.converted(torchvision.models.resnet18().half().state_dict())
        model = "{name: resnet18, classes: 1000, size: 64, stem: imagenet, "
        model += "weights: model.safetensors, weights_format: torchvision}"
        data = "{name: synthetic, train: 8, test: 8}"
        experiment = f"model: {model}\ndataset: {data}\nloader: {{batch_size: 4}}\n"
        (self.folder / "x.yaml").write_text(experiment)
        subprocess.run(
            [os.environ["PIPEWRIGHT_BINARY"], "check", "x.yaml"],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def test_every_type(self):
        types = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
        state = {name: torch.arange(-3, 9).reshape(3, 4).to(getattr(torch, name)) for name in types}
        self.assert_same(self.converted(state), state)

    def test_views_of_any_layout(self):
        whole = torch.arange(240, dtype=torch.float32).reshape(2, 3, 5, 8)
        state = {
            "whole": whole,
            "part": whole[1, 1:, 2:4],
            "transposed": whole.transpose(0, 3),
            "channels last": whole.to(memory_format=torch.channels_last),
            "every third": whole.flatten()[1::3],
            "repeated": torch.ones(7)[:1].expand(5),
            "expanded": torch.arange(3.0)[:, None].expand(5, 3, 4),
            "scalar": torch.tensor(3.5),
            "empty": torch.zeros(0, 4),
            "single": whole[:1, :1, :1, 3:4],
            "permuted": whole.permute(2, 0, 3, 1)[::2],
        }
        self.assert_same(self.converted(state), state)

    def test_parameters_and_what_is_no_tensor(self):
        state = OrderedDict(a=torch.nn.Parameter(torch.randn(2, 3)), b=7)
        torch.save(state, self.source)
        self.assertEqual(self.run_tool(), "left out: b, which is no tensor but of type int\n")
        self.assert_same(safetensors.torch.load_file(self.target), {"a": state["a"].detach()})

    def test_a_state_within_a_checkpoint(self):
        state = {"module.a": torch.randn(3), "b": torch.randn(2)}
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        content = {"epoch": 3, "optimizer": optimizer.state_dict(), "state_dict": state}
        expected = {"a": state["module.a"], "b": state["b"]}
        self.assert_same(self.converted(content, "--strip", "module."), expected)
        content = {"model": {"ema": state, "raw": {"c": torch.ones(1)}}}
        self.assert_same(self.converted(content, "--key", "model.ema"), state)

    def test_a_number_beside_a_model_is_not_taken_for_it(self):
        """As PyTorch's ImageNet example, Lightning and many a loop of one's own save them."""
        state = torch.nn.Linear(4, 3).state_dict()
        score = torch.tensor(71.2)
        for content in (
            {"epoch": 3, "state_dict": state, "best_acc1": score},
            {"model": state, "rng_state": torch.get_rng_state(), "cuda": [torch.get_rng_state()]},
            {"state_dict": state, "callbacks": {"ModelCheckpoint": {"best_model_score": score}}, "rng": {"cpu": torch.get_rng_state()}},
            {"training": {"net": state, "step": torch.tensor(7)}, "best": score},
            {**state, "norm._extra_state": {"scale": torch.ones(3)}},
        ):
            with self.subTest(list(content)):
                self.assert_same(self.converted(content), state)
        self.assertEqual(self.run_tool(), "left out: norm._extra_state, which is no tensor but of type dict\n")
        torch.save({"epoch": 3, "state_dict": state, "best_acc1": score}, self.source)
        self.assertEqual(self.run_tool(), "left out: best_acc1, which is a tensor beside 'state_dict'\n")

    def test_numbers_alone_are_no_model(self):
        torch.save({"epoch": 3, "best_acc1": torch.tensor(71.2), "rng_state": torch.get_rng_state()}, self.source)
        self.refused(r"holds no weights: no tensor of floating-point numbers with a size; --key \. takes its other tensors$")

    def test_tensors_at_the_top_beside_a_model_ask_for_a_choice(self):
        state = torch.nn.Linear(4, 3).state_dict()
        content = {"class_weights": torch.ones(3), "state_dict": state}
        torch.save(content, self.source)
        self.refused(r"has weights under 2 keys; choose with --key: \., state_dict$")
        self.assert_same(self.converted(content, "--key", "state_dict"), state)
        self.assert_same(self.converted(content, "--key", "."), {"class_weights": torch.ones(3)})
        self.target.unlink()
        torch.save({"state_dict": state, "nothing": {"epoch": 3}}, self.source)
        self.refused(r"has no tensors under 'nothing'$", "--key", "nothing")

    def test_what_research_code_saves_beside_a_model(self):
        state = torch.nn.Linear(4, 3).state_dict()
        beside = {
            "args": argparse.Namespace(lr=0.1, out=pathlib.Path("runs"), dims=[1, 2], dtype=torch.bfloat16, device=torch.device("cpu")),
            "acc": numpy.float64(71.2),
            "curve": numpy.arange(4.0),
            "generator": numpy.random.RandomState(1),
            "seen": {1, 2},
            "frozen": frozenset("ab"),
            "counts": Counter("abba"),
            "meters": defaultdict(list, loss=[1.0]),
            "last": deque([1, 2], maxlen=5),
            "raw": bytearray(b"x"),
            "complex": 1 + 2j,
            "when": __import__("datetime").datetime(2026, 11, 27),
        }
        for protocol in (2, 4, 5):
            for name, value in beside.items():
                with self.subTest(name, protocol=protocol):
                    torch.save({"state_dict": state, name: value}, self.source, pickle_protocol=protocol)
                    self.run_tool()
                    self.assert_same(safetensors.torch.load_file(self.target), state)
        self.assert_same(self.converted({"model": defaultdict(None, state), **beside}), state)

    def test_objects_of_unknown_classes_are_left_out_where_asked(self):
        state = torch.nn.Linear(4, 3).state_dict()
        trace = self.folder / "ran"
        content = {"state_dict": state, "model": torch.nn.Linear(1, 1), "attack": Attack(os.system, f"touch {trace}")}
        self.assert_same(self.converted(content, "--ignore-objects"), state)
        self.assertFalse(trace.exists())
        torch.save({"model": torch.nn.Linear(4, 3), "best_acc1": torch.tensor(71.2)}, self.source)
        self.target.unlink()
        self.refused("holds no weights: no tensor of floating-point numbers with a size", "--ignore-objects")

    def test_types_without_a_storage_of_their_own(self):
        types = "uint16 uint32 uint64 float8_e4m3fn float8_e5m2".split()
        state = {name: torch.arange(12, dtype=torch.float32).reshape(3, 4).to(getattr(torch, name)) for name in types}
        state["part"] = state["uint16"][1:, ::2]
        found = self.converted({"state_dict": state | {"w": torch.ones(2)}}, "--key", "state_dict")
        for name, tensor in state.items():
            self.assertEqual((found[name].dtype, found[name].tolist()), (tensor.dtype, tensor.tolist()), name)

    def test_a_choice_is_not_guessed(self):
        torch.save({"raw": {"a": torch.ones(1)}, "ema": {"a": torch.ones(1)}}, self.source)
        self.refused(r"has weights under 2 keys; choose with --key: raw, ema$")
        self.refused(r"has no 'raw\.x'$", "--key", "raw.x")

    def test_code_is_refused_by_name_and_does_not_run(self):
        trace = self.folder / "ran"
        for function, arguments, name in (
            (os.system, (f"touch {trace}",), r"posix\.system"),
            (eval, (f"open({str(trace)!r}, 'w')",), r"builtins\.eval"),
            (getattr, ("", "join"), r"builtins\.getattr"),
            (subprocess.Popen, (["touch", str(trace)],), r"subprocess\.Popen"),
            (torch.load, (str(trace),), r"torch\.serialization\.load"),
        ):
            for protocol in (0, 1, 2, 4):
                content = {"a": Attack(function, *arguments)}
                self.pickled(pickle.dumps(content, protocol, fix_imports=False))
                self.refused(f"its pickle asks for {name}; tensors, dictionaries and plain values are read \\(--ignore")
                self.assertFalse(trace.exists())
        self.pickled(pickle.dumps({"a": Attack(os.system, f"touch {trace}")}))
        pickle_itself = zipfile.ZipFile(self.source).read("archive/data.pkl")
        pickle.loads(pickle_itself)
        self.assertTrue(trace.exists(), "the attack would not have worked")

    def test_an_object_of_a_training_is_refused_by_name(self):
        torch.save({"state_dict": {"a": torch.ones(1)}, "model": torch.nn.Linear(1, 1)}, self.source)
        self.refused(r"its pickle asks for torch\.nn\.modules\.linear\.Linear;")

    def test_other_formats(self):
        torch.save({"a": torch.ones(1)}, self.source, _use_new_zipfile_serialization=False)
        self.refused(r"is no zip archive such as PyTorch writes since 1\.6;")
        self.source.write_bytes(b"")
        self.refused(r"is no zip archive")
        with zipfile.ZipFile(self.source, "w") as archive:
            archive.writestr("a.txt", "text")
        self.refused(r"is no checkpoint of PyTorch: it has 0 files data\.pkl$")
        self.source.unlink()
        self.refused(r"No such file")

    def test_damage(self):
        torch.save({"a": torch.randn(1000)}, self.source)
        whole = self.source.read_bytes()
        for content in (whole[:-30], whole[: len(whole) // 2], whole[:10]):
            self.source.write_bytes(content)
            self.refused(r"zip")
        at = whole.index(b"data.pkl") + 200
        for begin in range(at, at + 4000, 131):
            self.source.write_bytes(whole[:begin] + bytes([whole[begin] ^ 0x55]) + whole[begin + 1 :])
            command = [sys.executable, "-I", "-S", TOOL, self.source]
            done = subprocess.run(command, text=True, capture_output=True)
            self.assertIn(done.returncode, (0, DATA), done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_dictionaries_that_hold_themselves_or_each_other_end_in_one_line(self):
        cycle = {}
        cycle["again"] = cycle
        shared = {"a": 1}
        for _ in range(40):
            shared = {"a": shared, "b": shared}
        for content in ({"top": cycle}, {"top": shared}):
            torch.save(content, self.source)
            self.refused(r"holds no weights: no tensor of floating-point numbers with a size$")

    def test_a_small_file_does_not_become_a_large_one(self):
        one = torch.ones(1, dtype=torch.float64)
        torch.save({str(i): one.clone().expand(1 << 22) for i in range(5)}, self.source)
        self.refused(r"repeat what their storages have in more than 16777216 elements$")

    def test_the_key_that_it_proposes_works(self):
        content = {"logit_scale": torch.tensor(2.0)}
        torch.save(content, self.source)
        self.refused(r"--key \. takes its other tensors$")
        self.assert_same(self.converted(content, "--key", "."), content)

    def test_names_do_not_act_on_the_terminal(self):
        for name in ("w\x1b[31m\nline", "\ud800"):
            torch.save({name: torch.ones(2)}, self.source)
            self.refused(r"a tensor is called '(w\\x1b\[31m\\nline|\\ud800)'$")

    def test_tensors_beyond_their_storage(self):
        def tensor(offset, shape, strides, elements=4, key="0"):
            head = b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\n"
            storage = head + b"S'%s'\nS'cpu'\nI%d\ntQ" % (key.encode(), elements)
            sizes = b"".join(b"(" + b"".join(b"I%d\n" % n for n in of) + b"t" for of in (shape, strides))
            return storage + b"I%d\n" % offset + sizes + b"I00\nNtR"

        for broken, pattern in (
            (tensor(1, [4], [1]), r"reaches beyond its storage$"),
            (tensor(0, [2, 2], [3, 1]), r"reaches beyond its storage$"),
            (tensor(0, [1 << 25], [0]), r"has more elements than its storage$"),
            (tensor(-1, [2], [1]), r"is not a number from 0$"),
            (tensor(0, [2], [1, 1]), r"not described as PyTorch does$"),
            (tensor(0, [2], [1], elements=5), r"data/0 has 16 bytes for 5 elements of F32$"),
            (tensor(0, [2], [1], elements=3), r"data/0 has 16 bytes, not 12$"),
            (tensor(0, [2], [1], key="../1"), r"has no archive/data/\.\./1$"),
        ):
            self.pickled(b"\x80\x02}S'a'\n" + broken + b"s.")
            self.refused(pattern)


if __name__ == "__main__":
    skips.main()
