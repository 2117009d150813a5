# SPDX-License-Identifier: Apache-2.0
"""Taking up a run: from its folder alone, with more epochs, with its data elsewhere, on another processor.

`every_resume_test.py` has the other ways of more epochs, and longer runs.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import harness
import safetensors
import skips
from harness import BINARY, CNN, DATA, EXPERIMENT, INTERRUPTED, MLP, changed, plain
from safetensors import tensor

FOUR = changed(MLP, {"train.epochs": 4, "model": {"name": "cnn", "channels": 1, "size": 8, "width": 0.25}})
FIVE = changed(FOUR, {"train.epochs": 5})
ONE_WAY, OTHER_WAY = "0F0,0B0\n1F0,1B0\n", "0F0,0I0,0W0\n1F0,1I0,1W0\n"  # the same schedule, said in two ways
MORE_EPOCHS = {
    "constant": {},
    "steps": {"lr_schedule": {"name": "step", "size": 2}},
    "undrained": {"scheme": {"name": "pipedream"}, "train.drain": "never", "train.checkpoint": {"every": 1}},
    "within": {"train.checkpoint": {"every": 4, "unit": "minibatch"}},
    "rarely_evaluated": {"train.evaluate_every": 3},
}
TENSORS = {
    "dataset": {"name": "tensors", "file": "data/data.safetensors"},
    "loader": {"batch_size": 4},
    "model": {"name": "mlp", "widths": [3, 4, 2]},
    "train": {"epochs": 3},
}


def samples(last=0.5):
    made = {}
    for name, count in (("train", 12), ("test", 4)):
        values = [0.1 * i for i in range(3 * count - 1)] + [last]
        made[f"{name}.x"] = tensor("F32", [count, 3], values)
        made[f"{name}.y"] = tensor("I64", [count], [i % 2 for i in range(count)])
    return safetensors.encoded(made)


class Stoppable(harness.EndToEnd):
    def record(self, out):
        return json.loads((self.folder / out / "run.json").read_text())

    def content(self, out):
        run = harness.Run(self.folder / out)
        names = (name for name in run.names() if name != ".pipewright" and not name.endswith(".part"))
        return {name: run.bytes(name) for name in names}

    def refused(self, out, *arguments, pattern, code=EXPERIMENT):
        """Nothing in the folder has changed then, but who has been there last and what a kill left."""
        before = self.content(out)
        done = self.resume(out, *arguments, code=code)
        self.assert_errors(done, pattern)
        after = self.content(out)
        self.assertEqual(before.keys(), after.keys())
        self.assertEqual([name for name in before if before[name] != after[name]], [])

    def wait_for_a_checkpoint(self, process, out):
        manifest = self.folder / out / "checkpoint/manifest.json"
        self.wait_until(lambda: manifest.exists() and json.loads(manifest.read_text())["minibatches"] > 0, process)

    def check_suggested_command(self, execution, epochs):
        """What is printed after a signal goes on with the run, typed as it is."""
        long = changed(FOUR, {"train.epochs": epochs, "profiles": {"faster": {"optimizer.lr": 0.05}}})
        out = f"it's {execution} $HOME"
        self.write("a b.yaml", long)
        flags = ["--profile", "faster", "--set", "train.seed=3", "--set", f"pipeline.execution={execution}"]
        self.pipewright("run", "a b.yaml", "--quiet", "--out", f"whole {execution}", *flags)
        process = self.start("run", "a b.yaml", "--quiet", "--out", out, *flags)
        self.wait_for_a_checkpoint(process, out)
        process.send_signal(signal.SIGINT)
        done = self.finish(process)
        self.assertEqual(done.code, INTERRUPTED, done.err)
        command = re.search("`(.*)` goes on", done.err)[1]
        path = f"{Path(BINARY).parent}:{os.environ['PATH']}"
        finished = subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True,
            text=True, timeout=harness.SECONDS_LIMIT,
        )
        self.assertEqual(finished.returncode, 0, command + finished.stderr)
        self.assertIn("going on after epoch", finished.stderr)
        self.assert_same_result(
            harness.Run(self.folder / f"whole {execution}"), harness.Run(self.folder / out)
        )

    def check_more_epochs(self, name):
        """After a stop and after its end, a run of four epochs goes on to seven as if begun with them."""
        experiment = changed(FOUR, MORE_EPOCHS[name])
        whole = self.train(experiment, f"{name}_7", "--set", "train.epochs=7")
        with self.subTest(name, before="stopped"):
            run = self.killed_in_a_checkpoint(experiment, f"{name}_stopped", 2)
            self.resume(f"{name}_stopped", "--set", "train.epochs=7")
            self.assert_same_result(whole, run)
        with self.subTest(name, before="done"):
            run = self.train(experiment, f"{name}_done")
            done = self.pipewright("run", f"{name}_done", "--resume", "--set", "train.epochs=7")
            self.assertIn("going on after", done.err)
            self.assert_same_result(whole, run)


class TakeUp(Stoppable):
    # From its folder alone

    def test_the_folder_says_all_of_it(self):
        self.write("base.yaml", changed(FOUR, {"profiles": {"faster": {"optimizer.lr": 0.05}}}))
        flags = ["--profile", "faster", "--set", "train.seed=7"]
        self.pipewright("run", "base.yaml", "--quiet", "--out", "whole", *flags)
        environment = self.failing("half/checkpoint/manifest.json", "rename", 3, kill=True)
        self.pipewright(
            "run", "base.yaml", "--quiet", "--out", "half", *flags, code=-signal.SIGKILL, environment=environment
        )
        (self.folder / "base.yaml").unlink()
        self.assertIn("going on after epoch 1", self.pipewright("run", "half", "--resume").err)
        self.assert_same_result(harness.Run(self.folder / "whole"), harness.Run(self.folder / "half"))
        self.assertIn("done", self.pipewright("run", "half/", "--resume").err, "a finished one, too")

    def test_a_folder_is_no_experiment(self):
        self.train(MLP, "x")
        self.assert_errors(
            self.pipewright("run", "x", code=EXPERIMENT), r"^x: is a folder; `pipewright run x --resume` goes on"
        )
        self.assert_errors(
            self.pipewright("run", "x", "--resume", "--out", "y", code=EXPERIMENT),
            r"^x: is a folder.*another --out give x/experiment\.yaml$",
        )
        (self.folder / "empty").mkdir()
        self.assert_errors(
            self.pipewright("run", "empty", "--resume", code=EXPERIMENT), "^empty: holds no run to go on with"
        )

    def test_the_command_suggested_after_a_signal_works_as_printed(self):
        self.check_suggested_command("threads", 100)

    # Another experiment

    def test_what_differs_is_named(self):
        self.killed_in_a_checkpoint(FOUR, "x")
        cases = {
            ("optimizer.lr=0.5",): r"\(optimizer\.lr 0\.02 → 0\.5\)",
            ("train.checkpoint.every=2", "train.seed=5"): r"\(train\.seed 1 → 5, train\.checkpoint\.every 1 → 2\)",
            ("scheme={name: gpipe}",): r'\(scheme\.name "model_parallel" → "gpipe"\)',
        }
        for sets, pattern in cases.items():
            with self.subTest(sets):
                flags = [flag for each in sets for flag in ("--set", each)]
                self.refused("x", *flags, pattern=rf"^x: the folder holds a run of another experiment {pattern}; give")

    def test_a_finished_run_under_another_layout_is_done(self):
        self.train(CNN, "x")
        self.refused(
            "x", "--set", "pipeline.stages=2",
            pattern=r"^x: the run is done already, in another way \(pipeline\.stages 3 → 2\)",
        )
        self.refused(
            "x", "--set", "output.trace=true", pattern=r"^x: the run is done already, .*\(output\.trace false → true\)"
        )
        done = self.resume("x", "--set", "pipeline.execution=threads")
        self.assertIn('another layout, which changes no bit (execution "serial" → "threads")', done.err)
        self.assertIn("done, see x", done.err)

    # More epochs

    def test_more_epochs_where_the_past_is_the_same(self):
        for name in ("undrained", "within"):
            self.check_more_epochs(name)

    def test_more_epochs_of_another_past_are_refused(self):
        cosine = changed(FOUR, {"lr_schedule": {"name": "cosine"}})
        self.killed_in_a_checkpoint(cosine, "x", 2)
        self.refused(
            "x", "--set", "train.epochs=7",
            pattern=r"train\.epochs 4 → 7: .* the learning rate at epoch 2 was 0\.017\d* and would be 0\.019\d*;",
        )
        self.train(cosine, "y")
        self.refused("y", "--set", "train.epochs=7", pattern="train.epochs 4 → 7: this is another training")
        self.assertEqual(self.record("y")["state"], "done")

    def test_fewer_epochs_and_no_checkpoint_are_refused(self):
        self.killed_in_a_checkpoint(FOUR, "x", 2)
        self.refused("x", "--set", "train.epochs=2", pattern="train.epochs 4 → 2: the training is beyond that")
        self.train(FOUR, "y")
        self.refused("y", "--set", "train.epochs=2", pattern="^y: the run is done after 4 epochs, train.epochs 2 asks for")
        self.train(MLP, "z")
        self.refused("z", "--set", "train.epochs=2", pattern="done and has kept no checkpoint to go on from")

    # Data and weights elsewhere

    def test_moved_data_and_weights_are_the_same_experiment(self):
        self.write("data/data.safetensors", samples())
        before = self.train(changed(TENSORS, {"train.epochs": 0}), "before")
        self.write("init/w.safetensors", before.bytes())
        experiment = changed(TENSORS, {"model.weights": "init/w.safetensors"})
        whole = self.train(experiment, "whole")
        run = self.killed_in_a_checkpoint(experiment, "x")
        (self.folder / "data").rename(self.folder / "elsewhere")
        (self.folder / "init").rename(self.folder / "there")
        moved = ["--set", "dataset.file=elsewhere/data.safetensors", "--set", "model.weights=there/w.safetensors"]
        self.assertIn("going on after epoch 1", self.resume("x", *moved).err)
        self.assert_same_result(whole, run)
        self.assertIn("done, see whole", self.pipewright("run", "whole", "--resume", *moved).err)
        self.write("elsewhere/data.safetensors", samples(0.25))
        self.assert_errors(
            self.pipewright("run", "whole", "--resume", *moved, code=EXPERIMENT),
            r"^whole: .*another experiment \(dataset\.file had another content then\)",
        )

    def test_changed_data_or_weights_are_another_experiment(self):
        self.write("data/data.safetensors", samples())
        before = self.train(changed(TENSORS, {"train.epochs": 0}), "before")
        self.write("w.safetensors", before.bytes())
        self.killed_in_a_checkpoint(changed(TENSORS, {"model.weights": "w.safetensors"}), "x")
        contents = self.record("x")["contents"]
        self.assertEqual(sorted(contents), ["dataset.file", "model.weights"])
        tensors = safetensors.read(self.folder / "w.safetensors")
        name = next(iter(tensors))
        values = safetensors.values(tensors[name])
        values[0] += 1
        tensors[name] = tensor("F32", tensors[name].shape, values)
        self.write("w.safetensors", safetensors.encoded(tensors))
        self.refused("x", pattern=r"^x: .*another experiment \(model\.weights had another content then\)")

    def test_a_schedule_file_belongs_to_its_run(self):
        for path, text in (("a.csv", ONE_WAY), ("moved/a.csv", ONE_WAY)):
            self.write(path, text)
        experiment = changed(FOUR, {"scheme": {"name": "csv_schedule", "file": "a.csv"}, "pipeline.stages": 2})
        whole = self.train(experiment, "whole")
        run = self.killed_in_a_checkpoint(experiment, "x")
        self.write("a.csv", OTHER_WAY)
        self.refused("x", pattern=r'^x: .*another experiment \(scheme\.sha256 "[0-9a-f]+… → "[0-9a-f]+…\)')
        self.assert_errors(
            self.pipewright("run", "x", "--resume", code=EXPERIMENT),
            r"^x/experiment\.yaml:\d+:\d+: scheme\.sha256 is not that of \S*a\.csv",
        )
        self.resume("x", "--set", "scheme.file=moved/a.csv")
        self.assert_same_result(whole, run)

    def test_a_schedule_file_is_read_once(self):
        self.write("a.csv", ONE_WAY)
        experiment = changed(
            FOUR, {"scheme": {"name": "csv_schedule", "file": "a.csv"}, "pipeline.stages": 2, "train.epochs": 40}
        )
        whole = self.train(experiment, "whole")
        self.write("x.yaml", experiment)
        process = self.start("run", "x.yaml", "--quiet", "--out", "x")
        self.wait_for_a_checkpoint(process, "x")
        (self.folder / "a.csv").unlink()
        done = self.finish(process)
        self.assertEqual(done.code, 0, done.err)
        self.assert_same_result(whole, harness.Run(self.folder / "x"))

    # Another processor

    def test_another_processor_is_remarked(self):
        run = self.killed_in_a_checkpoint(FOUR, "x")
        now = self.record("x")["instruction_set"]
        self.assertTrue(self.record("x")["processor"])
        if now == "DEFAULT":
            skips.lacks("instruction-sets")
        done = self.resume("x", environment={"ATEN_CPU_CAPABILITY": "default"})
        pattern = rf"the instruction set is not the one that the run was begun with \({now} → DEFAULT\): bits may"
        self.assertRegex(done.err, pattern)
        self.assertEqual(run.state(), "done")
        self.assertEqual(self.record("x")["instruction_set"], "DEFAULT")
        self.assertRegex(" ".join(self.record("x")["remarks"]), pattern)

    # Damage

    def test_a_damaged_checkpoint_gives_way_to_the_one_before(self):
        whole = self.train(FIVE, "whole")
        for name in ("000018/stage-1.safetensors", "000018/metrics.safetensors", "manifest.json"):
            for cut in (None, 0, 10):
                out = f"{name.replace('/', '_')}_{cut}"
                with self.subTest(out):
                    run = self.killed_in_a_checkpoint(FIVE, out, 3)
                    path = run.path / "checkpoint" / name
                    content = path.read_bytes()
                    path.unlink() if cut is None else path.write_bytes(content[:cut])
                    done = self.resume(out)
                    self.assertIn("going on after epoch 2", done.err)
                    self.assertRegex(
                        done.err, rf"the newest checkpoint is damaged \({out}/checkpoint/{name}: .*\); going on from the one"
                    )
                    self.assert_same_result(whole, run)

    def test_steps_are_part_of_a_checkpoint(self):
        whole = self.train(FIVE, "whole")
        run = self.killed_in_a_checkpoint(FIVE, "x", 3)
        log = run.path / "checkpoint/steps-000000.csv"
        content = log.read_bytes()
        log.write_bytes(content + b"3,0,half a r")  # as a kill leaves it
        (run.path / "steps.csv").unlink()
        self.resume("x")
        self.assert_same_result(whole, run)
        run = self.killed_in_a_checkpoint(FIVE, "y", 3)
        log = run.path / "checkpoint/steps-000000.csv"
        log.write_bytes(log.read_bytes().replace(b"\n2,", b"\n9,"))
        self.assertIn("steps-000000.csv: is damaged", self.resume("y").err)
        self.assert_same_result(whole, run)
        run = self.killed_in_a_checkpoint(FIVE, "z", 3)
        (run.path / "checkpoint/steps-000000.csv").unlink()
        self.refused("z", code=DATA, pattern="^z/checkpoint/steps-000000.csv: cannot open.*--overwrite to begin anew$")

    def test_without_steps_none_are_kept(self):
        run = self.train(FOUR, "x", "--set", "output.steps=false")
        self.assertEqual([name for name in run.names() if "steps" in name], [])
        run = self.killed_in_a_checkpoint(changed(FOUR, {"output.steps": False}), "y")
        done = self.resume("y", "--set", "output.steps=true")
        self.assertIn("steps.csv begins after epoch 1: until there the run had output.steps: false", done.err)
        self.assertEqual([row["epoch"] for row in run.rows("steps.csv")], [e for e in "123" for _ in range(6)])

    def test_a_record_that_cannot_be_read_is_a_matter_of_data(self):
        self.killed_in_a_checkpoint(FOUR, "x")
        record = self.folder / "x/run.json"
        content = record.read_bytes()
        self.write("x/run.json", content[:20])
        self.assert_errors(self.resume("x", code=DATA), plain("x/run.json: is damaged: it is not JSON"))
        self.write("x/run.json", content)
        environment = self.failing("x/run.json", "read", 1)
        self.assert_errors(
            self.resume("x", code=DATA, environment=environment), "^x/run.json: cannot read: Input/output error$"
        )
        self.resume("x")


if __name__ == "__main__":
    harness.main()
