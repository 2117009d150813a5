# SPDX-License-Identifier: Apache-2.0
"""pipeline.memory_format: what is recorded, resumed and left in files."""

import signal
import struct

import harness
import skips
from harness import CNN, MLP, changed

LONGER = changed(CNN, {"train.epochs": 3})
LAST = {"pipeline.memory_format": "channels_last"}
AUTO = {"pipeline.memory_format": "auto"}
# Eighteen updates of a small model in another order of sums, of a thousand products each, in float32.
ROUNDING = 18_000 * 2**-24


class MemoryFormat(harness.EndToEnd):
    def recorded(self, run):
        text = (run.path / "experiment.yaml").read_text()
        line = next(line for line in text.splitlines() if line.startswith("  memory_format: "))
        return line.removeprefix("  memory_format: ")

    def assert_near(self, a, b):
        one, other = a.tensors(), b.tensors()
        self.assertEqual(list(one), list(other))
        for name, tensor in one.items():
            self.assertEqual(tensor.shape, other[name].shape)
            numbers = f"<{len(tensor.data) // 4}f"
            for x, y in zip(struct.unpack(numbers, tensor.data), struct.unpack(numbers, other[name].data)):
                self.assertLessEqual(abs(x - y), ROUNDING * max(1, abs(x)), name)

    def test_nobody_who_does_not_ask_sees_a_difference(self):
        silent = self.train(CNN, "silent")
        self.assertEqual(self.recorded(silent), "contiguous")
        said = self.train(changed(CNN, {"pipeline.memory_format": "contiguous"}), "said")
        self.assert_same_result(silent, said)

    def test_files_do_not_depend_on_the_format(self):
        # With a learning rate of 0 the weights stay what they were in the beginning.
        for precision in ("float32", "bfloat16"):
            still = changed(
                CNN, {"optimizer": {"name": "sgd", "lr": 0}, "train.precision": precision, "train.epochs": 1}
            )
            contiguous = self.train(still, f"contiguous_{precision}")
            last = self.train(changed(still, LAST), f"last_{precision}")
            a, b = contiguous.parameters(), last.parameters()
            self.assertEqual([name for name, tensor in a.items() if tensor.data != b[name].data], [])
            self.assertEqual(list(contiguous.tensors()), list(last.tensors()))

    def test_weights_of_either_format_begin_the_other(self):
        trained = self.train(changed(CNN, LAST), "trained")
        begin = {"model.weights": str(trained.path / "final.safetensors"), "train.epochs": 1}
        for more in ({}, LAST):
            still = changed(CNN, begin | more | {"optimizer": {"name": "sgd", "lr": 0}})
            run = self.train(still, f"again{len(more)}")
            a, b = trained.parameters(), run.parameters()
            self.assertEqual([name for name, tensor in a.items() if tensor.data != b[name].data], [])

    def test_results_differ_by_rounding_only(self):
        self.assert_near(self.train(CNN, "contiguous"), self.train(changed(CNN, LAST), "last"))

    def test_what_auto_takes_is_measured_once_and_recorded(self):
        run = self.train(changed(CNN, AUTO), "first")
        taken = self.recorded(run)
        self.assertIn(taken, ("contiguous", "channels_last"))
        self.assertEqual(len(list(self.folder.glob("profile-*.yaml"))), 2)
        self.write("second.yaml", changed(CNN, AUTO))
        done = self.pipewright("run", "second.yaml", "--out", "second")
        self.assertNotIn("measuring", done.err)
        self.assertRegex(
            done.err,
            rf"pipeline\.memory_format: auto gives {taken}: a micro-batch takes \S+ ms in channels_last and \S+ ms in",
        )
        second = harness.Run(self.folder / "second")
        self.assert_same_result(run, second)
        self.assert_same_result(run, self.train(changed(CNN, {"pipeline.memory_format": taken}), "said"))
        self.pipewright("run", "first/experiment.yaml", "--quiet", "--out", "again")
        self.assert_same_result(run, harness.Run(self.folder / "again"))

    @skips.needs("mpirun")
    def test_processes_take_what_one_of_them_has_measured(self):
        serial = self.train(changed(CNN, AUTO), "serial")
        processes = self.train(changed(CNN, AUTO | {"pipeline.execution": "mpi"}), "processes")
        self.assertEqual(self.recorded(serial), self.recorded(processes))
        self.assert_same_result(serial, processes)

    def test_models_without_convolutions_have_nothing_to_gain(self):
        self.write("mlp.yaml", MLP)
        plain = self.train(MLP, "plain")
        automatic = self.train(changed(MLP, AUTO), "automatic")
        self.assertEqual(self.recorded(automatic), "contiguous")
        self.assertEqual(list(self.folder.glob("profile-*.yaml")), [])
        self.assert_same_result(plain, automatic)
        remark = "pipeline.memory_format is channels_last, which changes nothing, because the model has no convolutions"
        wanted = ("--set", "pipeline.memory_format=channels_last")
        done = self.pipewright("run", "mlp.yaml", "--out", "wanted", *wanted)
        self.assertEqual(done.err.count(remark), 1, done.err)
        self.assertIn(remark, self.pipewright("check", "mlp.yaml", *wanted).out)
        self.assert_same_result(plain, harness.Run(self.folder / "wanted"))

    @skips.needs("test-programs", harness.FAILING_FILES)
    def test_a_resumed_run_keeps_its_format(self):
        whole = self.train(changed(LONGER, LAST), "whole")
        run = self.killed(changed(LONGER, LAST), "stopped")
        self.assertNotIn("layout", self.resume("stopped").err)
        self.assert_same_result(whole, run)
        # auto takes what the run has recorded: nothing is measured
        run = self.killed(changed(LONGER, LAST), "automatic")
        done = self.resume("automatic", "--set", "pipeline.memory_format=auto")
        self.assertNotIn("measuring", done.err)
        self.assertNotIn("layout", done.err)
        self.assertEqual(list(self.folder.glob("profile-*.yaml")), [])
        self.assertEqual(self.recorded(run), "channels_last")
        self.assert_same_result(whole, run)

    @skips.needs("test-programs", harness.FAILING_FILES)
    def test_a_run_can_be_resumed_in_the_other_format(self):
        whole = self.train(LONGER, "whole")
        for before, after in (("contiguous", "channels_last"), ("channels_last", "contiguous")):
            out = f"from_{before}"
            run = self.killed(changed(LONGER, {"pipeline.memory_format": before}), out)
            done = self.resume(out, "--set", f"pipeline.memory_format={after}")
            self.assertIn(f'resumed under another layout (pipeline.memory_format "{before}" → "{after}")', done.err)
            self.assertEqual(run.state(), "done")
            self.assert_near(whole, run)

    def killed(self, experiment, out):
        """A run that died with one checkpoint behind it, in the middle of writing the next one."""
        self.write(f"{out}.yaml", experiment)
        environment = self.failing(f"{out}/checkpoint/manifest.json", "rename", 3, kill=True)
        self.pipewright(
            "run", f"{out}.yaml", "--quiet", "--out", out, code=-signal.SIGKILL, environment=environment
        )
        return harness.Run(self.folder / out)


if __name__ == "__main__":
    harness.main()
