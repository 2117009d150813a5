# SPDX-License-Identifier: Apache-2.0
"""Parts with tensors outside the tree: those of examples/own-parts, and those that `pipewright new` begins."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
import safetensors
import skips
from harness import EXPERIMENT, MLP, SCHEDULE, WORKER, changed, plain

CXX = os.environ["CXX"]
EXAMPLE = harness.SOURCE_DIR / "examples/own-parts"
PARTS = {
    "model": "gated", "dataset": "spirals", "optimizer": "signum", "loss": "focal", "metric": "brier",
    "codec": "bfloat24", "probe": "largest",
}  # fmt: skip
HEADER = 32  # bytes before the payload of one tensor of two dimensions: docs/formats


def setUpModule():
    global home, library
    home = Path(tempfile.mkdtemp(prefix="pipewright-e2e-parts-"))
    unittest.addModuleCleanup(shutil.rmtree, home)
    shell(f"cmake --install {os.environ['PIPEWRIGHT_BUILD_DIR']} --prefix pipewright")
    shutil.copytree(EXAMPLE, home / "own-parts")
    library = compiled(home / "own-parts", "own_parts")


def shell(command):
    done = subprocess.run(["sh", "-e", "-c", command], cwd=home, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")


def compiled(folder, name):
    """Compiles a plugin as its page says, but all its files at once, which is faster."""
    shell(
        f"cmake -S {folder} -B {folder}/build -G Ninja -DCMAKE_PREFIX_PATH={home}/pipewright -DCMAKE_UNITY_BUILD=ON "
        f"&& cmake --build {folder}/build"
    )
    return folder / "build" / f"{name}.so"


class WithParts(harness.EndToEnd):
    def with_parts(self, *arguments, **expected):
        return self.pipewright(*arguments, "--plugin", library, **expected)

    def spirals(self, out, *changes, plugin=True):
        sets = [word for change in changes for word in ("--set", change)]
        given = ("--plugin", library) if plugin else ()
        self.pipewright("run", EXAMPLE / "spirals.yaml", "--quiet", "--out", out, *given, *sets)
        return harness.Run(self.folder / out)


class Example(WithParts):
    def test_every_kind_is_known_and_described(self):
        listed = self.with_parts("list").out
        for kind, name in PARTS.items():
            self.assertRegex(listed, rf"\n  {name} ", kind)
            if kind != "metric":
                self.with_parts("describe", kind, name)
        self.assertIn("The exponent γ", self.with_parts("describe", "loss", "focal").out)
        self.assertIn("what remains of the momentum", self.with_parts("schema").out)
        wrong = self.with_parts("check", EXAMPLE / "spirals.yaml", "--set", "optimizer.beta=3", code=EXPERIMENT)
        self.assert_errors(wrong, r"optimizer\.beta .*3")

    def test_it_learns_with_all_of_them(self):
        run = self.spirals("spirals")
        last = run.rows("epochs.csv")[-1]
        self.assertGreater(float(last["test_accuracy"]), 0.95)  # chance is a third; 0.996 were measured
        self.assertLess(float(last["test_brier"]), 0.1)  # 2/3 where nothing is learnt
        recorded = json.loads((run.path / "run.json").read_text())["plugins"]
        self.assertEqual([str(library)], [entry["path"] for entry in recorded])
        measured = {row["quantity"] for row in run.rows("probes.csv")}
        self.assertEqual({"gradient"}, measured)

    def test_all_executions_end_with_the_same_weights(self):
        serial = self.spirals("serial")
        self.assert_same_weights(serial, self.spirals("threads", "pipeline.execution=threads"))
        if shutil.which("mpirun") is None:
            skips.lacks("mpirun")
        self.assert_same_weights(serial, self.spirals("mpi", "pipeline.execution=mpi"))

    def test_a_layer_stands_in_a_list_of_layers(self):
        """Three of them and a linear layer are the model of the example, with other names."""
        layers = "[gated_linear, {gated_linear: {out: 32}}, gated_linear, {linear: 3}]"
        listed = self.spirals("listed", f"model={{name: sequential, input: [2], layers: {layers}}}", "train.epochs=1")
        model = self.spirals("model", "train.epochs=1")
        shapes = [[tensor.shape for tensor in run.parameters().values()] for run in (listed, model)]
        self.assertEqual(*map(sorted, shapes))
        image = "[{gated_linear: {out: 32}}]"
        wrong = self.with_parts(
            "check", EXAMPLE / "spirals.yaml", "--set", f"model={{name: sequential, input: [1, 8, 8], layers: {image}}}",
            code=EXPERIMENT,
        )
        self.assertRegex(wrong.err, r"has gated_linear behind an image \[1, 8, 8\], but it wants features; put flatten")

    def test_lion_moves_every_weight_by_the_learning_rate(self):
        """Or not at all, where the gradient is 0, in the first step from a momentum of 0."""
        one = ("train.epochs=1", "loader.limit_train=32", "loader.batch_size=32")
        before, after = self.spirals("still", *one, "optimizer.lr=0"), self.spirals("moved", *one)
        moves = 0
        for name, start in before.parameters().items():
            for old, new in zip(safetensors.values(start), safetensors.values(after.parameters()[name])):
                moves += new != old
                # The two weights are float32, below 4 in magnitude; the difference rounds once.
                self.assertLess(min(abs(new - old), abs(abs(new - old) - 0.002)), 4 * 2**-23)
        self.assertGreater(moves, 1000)

    def test_the_codec_sends_three_of_four_bytes(self):
        """And a frame's header with each message."""
        rows = self.spirals("sent", "train.epochs=1").rows("traffic.csv")
        self.assertEqual({"forward", "backward"}, {row["kind"] for row in rows})
        for row in rows:
            headers = int(row["sent_bytes"]) - 3 * int(row["value_bytes"]) // 4
            self.assertEqual(HEADER * int(row["messages"]), headers, row)

    def test_the_environment_names_them_for_every_command(self):
        environment = {"PIPEWRIGHT_PLUGINS": f"{library}:"}
        self.assertIn("spirals", self.pipewright("list", "datasets", environment=environment).out)
        self.write("s.yaml", f"extends: {EXAMPLE}/spirals.yaml\ntrain: {{epochs: 1}}\nsweep: {{grid: {{train.seed: [1, 2]}}}}\n")
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--plugin", library, environment=environment)
        self.assertEqual(2, len(list(self.folder.glob("sw/*/run.json"))))
        missing = self.pipewright("list", environment={"PIPEWRIGHT_PLUGINS": "none.so"}, code=EXPERIMENT)
        self.assert_errors(missing, r"^none\.so: cannot open: No such file")

    def test_headers_that_parts_include_are_there_with_what_they_include(self):
        include = home / "pipewright/include/pipewright"
        headers = sorted(str(header.relative_to(include)) for header in include.rglob("*.h"))
        self.assertLessEqual({"core/nn/layers.h", "core/probes/measures.h", "core/codecs/codec.h"}, set(headers))
        source = self.write("all.cpp", "".join(f'#include "{header}"\n' for header in headers))
        flags = re.findall(r"(?:-isystem |-I)\S+", (home / "own-parts/build/build.ninja").read_text())
        words = [word for flag in sorted(set(flags)) for word in flag.split()]
        done = subprocess.run([CXX, "-std=c++20", "-fsyntax-only", *words, source], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)


class Refused(WithParts):
    def test_one_of_another_libtorch(self):
        """Before its code runs: both versions are named."""
        bytes_ = library.read_bytes()
        version = re.search(rf"\|libstdc\+\+\|([0-9.]+)\|{PARTS['model']}".encode(), bytes_)[1]
        other = version[:-1] + bytes([version[-1] ^ 1])
        self.write("other.so", bytes_.replace(b"|" + version + b"|", b"|" + other + b"|"))
        wrong = self.pipewright("list", "--plugin", "other.so", code=EXPERIMENT)
        self.assert_errors(
            wrong,
            rf"^other\.so: its \w+ '\w+' was compiled with LibTorch {plain(other.decode())}, this Pipewright with "
            rf"{plain(version.decode())}; build it again with find_package\(Pipewright ",
        )
        self.assertEqual("", wrong.out)

    def test_what_it_throws_names_it(self):
        """In constructors the part as well."""
        source = """
#include <stdexcept>
#include "core/nn/loss.h"
namespace pipewright {
struct Late final : Loss {
  explicit Late(Options&) {}
  at::Tensor operator()(const at::Tensor&, const at::Tensor&) const override { throw std::out_of_range("too far"); }
};
struct Early final : Loss {
  explicit Early(Options&) { throw std::runtime_error("too soon"); }
  at::Tensor operator()(const at::Tensor& output, const at::Tensor&) const override { return output; }
};
PIPEWRIGHT_LOSS(late, Late, "Throws when it is called.")
PIPEWRIGHT_LOSS(early, Early, "Throws when it is made.")
}  // namespace pipewright
"""
        folder = self.folder / "bad"
        folder.mkdir()
        (folder / "bad.cpp").write_text(source)
        recipe = (EXAMPLE / "CMakeLists.txt").read_text()
        (folder / "CMakeLists.txt").write_text(re.sub(r"MODULE .*\)", "MODULE bad.cpp)", recipe).replace("own_parts", "bad"))
        bad = compiled(folder, "bad")
        for name, code, text in (
            ("early", SCHEDULE, f"the loss 'early' of the plugin {bad} threw an exception: too soon"),
            ("late", WORKER, f"too far; plugins are loaded, and the fault may be theirs: {bad}"),
        ):
            self.write("x.yaml", changed(MLP, {"loss": {"name": name}}))
            done = self.pipewright("run", "x.yaml", "--out", name, "--plugin", bad, code=code)
            self.assertIn(text, done.err)


class New(WithParts):
    def test_an_installed_program_names_its_own_prefix(self):
        program = home / "pipewright/bin/pipewright"
        said = subprocess.run([program, "new", "scheme", "mine"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn(f"-DCMAKE_PREFIX_PATH={home}/pipewright\n", said.stdout, said.stderr)

    def test_what_it_begins_compiles_and_trains(self):
        for kind in ("scheme", "model", "dataset"):
            said = self.pipewright("new", kind, f"my_{kind}").out
            folder = self.folder / f"my_{kind}"
            self.assertEqual(
                ["CMakeLists.txt", "experiment.yaml", f"my_{kind}.cpp"], sorted(file.name for file in folder.iterdir())
            )
            self.assertIn(f"cmake -S my_{kind} -B my_{kind}/build -DCMAKE_PREFIX_PATH=$HOME/pipewright\n", said)
            compiled(folder, f"my_{kind}")
            (run,) = re.findall(r"^  pipewright (run .*)$", said, re.MULTILINE)
            self.pipewright(*run.split(), "--out", f"runs/{kind}")
            last = harness.Run(self.folder / f"runs/{kind}").rows("epochs.csv")[-1]
            first = harness.Run(self.folder / f"runs/{kind}").rows("epochs.csv")[0]
            self.assertLess(float(last["train_loss"]), float(first["train_loss"]), kind)

    def test_what_it_refuses(self):
        self.write("taken/notes.txt", "mine")
        for words, text in (
            (("thing", "x"), r"^'thing' cannot be begun; expected one of scheme, model, dataset"),
            (("model", "Test"), r"^'Test' cannot be the name of a part; expected at most 64 small letters"),
            (("model", "../x"), r"^'\.\./x' cannot be the name"),
            (("model", "test"), r"^CMake has a target 'test' of its own"),
            (("model", "mlp"), r"^there is a model 'mlp' already"),
            (("model", "taken"), r"^'taken' exists already; choose another name or folder"),
        ):
            with self.subTest(words):
                self.assert_errors(self.pipewright("new", *words, code=EXPERIMENT), text)
        self.assertEqual("mine", (self.folder / "taken/notes.txt").read_text())
        self.assertEqual(["notes.txt"], os.listdir(self.folder / "taken"))


if __name__ == "__main__":
    harness.main()
