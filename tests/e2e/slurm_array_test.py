# SPDX-License-Identifier: Apache-2.0
"""What `sweep --slurm` writes, submits and asks, with the parts of Slurm played by fakes.

The fake sbatch notes its arguments and says a job's number; the fake squeue shows the file `queue`.
Tasks are run here by bash, as slurmd would.
"""

import os
import re
import signal
import subprocess
import unittest.mock

import harness
from harness import EXPERIMENT, FINE, INTERRUPTED, MLP, SWEEP, changed

WORKER = 5
TWO = changed(MLP, {"name": "two", "sweep": {"grid": {"train.seed": [1, 2]}}})
AWKWARD = "it's a \"sweep\" of 50%a $HOME `id` #1"

SBATCH = """#!/bin/bash
echo "$@" >>{folder}/submitted
echo "welcome to the cluster"
echo 7
"""
SQUEUE = """#!/bin/bash
if [ -e {folder}/queue ]; then cat {folder}/queue; exit; fi
echo 'slurm_load_jobs error: Invalid job id specified' >&2
exit 1
"""


class SlurmArray(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.fake("sbatch", SBATCH)
        self.fake("squeue", SQUEUE)
        self.path(f"{self.folder}/bin:{os.environ['PATH']}")

    def fake(self, name, text):
        self.write(f"bin/{name}", text.replace("{folder}", str(self.folder))).chmod(0o755)

    def path(self, path):
        patch = unittest.mock.patch.dict(os.environ, {"PATH": path})
        patch.start()
        self.addCleanup(patch.stop)

    def sweep(self, experiment, *flags, out="sw", code=FINE):
        self.write("s.yaml", experiment)
        return self.pipewright("sweep", "s.yaml", "--out", out, *flags, code=code)

    def submissions(self):
        file = self.folder / "submitted"
        return file.read_text().splitlines() if file.exists() else []

    def task(self, number, array=1, out="sw"):
        """A task of the array, not waited for."""
        script = self.folder / out / f"slurm/{array}/array.sh"
        environment = os.environ | {"SLURM_ARRAY_TASK_ID": str(number)}
        task = subprocess.Popen(
            ["bash", script],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(task.wait)
        self.addCleanup(task.kill)
        return task

    def run_task(self, number, **place):
        task = self.task(number, **place)
        printed, _ = task.communicate(timeout=harness.SECONDS_LIMIT)
        return task.returncode, printed

    def states(self, out="sw"):
        return [harness.Run(file.parent).state() for file in sorted((self.folder / out).glob("*/run.json"))]

    # The script

    def test_a_dry_run_prints_the_script_and_writes_nothing(self):
        self.path(str(self.folder))  # nor does it need Slurm
        options = ("--sbatch", "--partition=gpu --time=1:00:00", "--sbatch=-A me")
        done = self.sweep(TWO, "--slurm", "--dry-run", "--jobs", "3", *options)
        lines = done.out.splitlines()
        self.assertEqual(lines[0], "#!/bin/bash")
        self.assertEqual(
            [line for line in lines if line.startswith("#SBATCH ")],
            [
                '#SBATCH --job-name="two"',
                "#SBATCH --array=1-2%3",
                "#SBATCH --ntasks=1",
                "#SBATCH --cpus-per-task=1",
                f'#SBATCH --output="{self.folder}/sw/slurm/1/task-%a.log"',
                "#SBATCH --open-mode=append",
                "#SBATCH --partition=gpu --time=1:00:00",
                "#SBATCH -A me",
            ],
        )
        self.assertEqual(done.lines, ["task 1: seed 1", "task 2: seed 2"])
        self.assertFalse((self.folder / "sw").exists())
        self.assertEqual(self.submissions(), [])

    def test_a_task_asks_for_the_cores_of_its_largest_run(self):
        threads = {"pipeline.execution": "threads", "pipeline.threads": 2}
        sweep = changed(TWO, threads | {"sweep": {"grid": {"pipeline.stages": [1, 2]}}})
        script = self.sweep(sweep, "--slurm", "--dry-run").out
        self.assertIn("\n#SBATCH --cpus-per-task=4\n", script)

    def gpus(self, *flags, **changes):
        """The lines of the script that ask for GPUs."""
        sweep = changed(TWO, {"pipeline.stages": 4} | changes)
        script = self.sweep(sweep, "--slurm", "--dry-run", *flags).out
        return [line.removeprefix("#SBATCH ") for line in script.splitlines() if re.search("#SBATCH .*(gpu|gres|-G)", line)]

    def test_a_task_asks_for_a_gpu_for_each_worker_on_one(self):
        for device, threads, mpi in (
            ("cpu", [], []),
            ("cuda", ["--gres=gpu:4"], ["--gpus=4"]),
            ("cuda:1", ["--gres=gpu:2"], ["--gpus=2"]),
            (["cpu", "cuda", "cuda", "cpu"], ["--gres=gpu:2"], ["--gpus=2"]),
        ):
            for execution, lines in (("serial", threads), ("threads", threads), ("mpi", mpi)):
                with self.subTest(device=device, execution=execution):
                    self.assertEqual(
                        lines, self.gpus(**{"pipeline.device": device, "pipeline.execution": execution})
                    )
        self.assertEqual(["--gres=gpu:4"], self.gpus("--set", "pipeline.device=cuda"))
        mine = self.gpus("--set", "pipeline.device=cuda", "--sbatch=--gpus=1")
        self.assertEqual(["--gpus=1"], mine)

    def test_points_per_task(self):
        three = changed(TWO, {"sweep": {"grid": {"train.seed": [1, 2, 3]}}})
        done = self.sweep(three, "--slurm", "--dry-run", "--points-per-task", "2")
        self.assertIn("\n#SBATCH --array=1-2\n", done.out)
        self.assertEqual(done.lines, ["task 1: seed 1", "task 1: seed 2", "task 2: seed 3"])

    def test_any_folder_and_name_survive_the_script(self):
        awkward = changed(TWO, {"name": "-e .. n", "sweep": {"points": [{"label": "-n  50.a _"}]}})
        self.sweep(awkward, "--slurm", out=AWKWARD)
        self.assertEqual(self.run_task(1, out=AWKWARD), (0, "-n  50.a _: exit code 0\n"))
        self.assertEqual(self.states(AWKWARD), ["done"])

    def test_a_folder_that_slurm_cannot_be_told_is_refused(self):
        refused = self.sweep(TWO, "--slurm", out="back\\slash", code=EXPERIMENT)
        self.assert_errors(refused, r"back\\slash/slurm/1: sbatch cannot be given this folder for its logs; .*--out whose")
        self.assertEqual(self.submissions(), [])

    # Its tasks

    def test_tasks_leave_what_the_sweep_leaves(self):
        self.sweep(TWO, out="here")
        self.sweep(TWO, "--slurm")
        for number in (1, 2):
            self.assertEqual(self.run_task(number), (0, f"seed {number}: exit code 0\n"))
        for file in (self.folder / "here").glob("*/final.safetensors"):
            there = self.folder / "sw" / file.parent.name / file.name
            self.assertEqual(file.read_bytes(), there.read_bytes())
        self.assertFalse((self.folder / "sw/results.sqlite").exists())
        collected = self.sweep(TWO, "--resume")
        self.assertIn("2 of 2 runs are done already", collected.err)
        self.assertTrue((self.folder / "sw/results.sqlite").exists())

    def test_a_failing_point_does_not_stop_the_others_of_its_task(self):
        points = [{"label": "bad", "optimizer.lr": 1e30}, {"label": "good", "optimizer.lr": 0.05}]
        mixed = changed(TWO, {"scheme": {"name": "pipedream"}, "sweep": {"points": points}})
        self.sweep(mixed, "--slurm", "--points-per-task", "2")
        self.assertEqual(self.run_task(1), (1, "bad: exit code 6\ngood: exit code 0\n"))
        collected = self.sweep(mixed, "--resume", code=SWEEP)
        self.assertRegex(collected.err, r"^2 runs: 1 done, 1 failed\n  bad failed: worker 1, stage 1")

    def test_a_signal_lets_the_run_save_its_state_and_starts_no_other(self):
        endless = changed(TWO, {"loader.limit_train": 960, "train.epochs": 100000})
        self.sweep(endless, "--slurm", "--points-per-task", "2")
        task = self.task(1)
        self.wait_until(lambda: list((self.folder / "sw").glob("*/epochs.csv")))
        os.killpg(task.pid, signal.SIGTERM)
        printed, _ = task.communicate(timeout=harness.SECONDS_LIMIT)
        self.assertEqual((task.returncode, printed), (1, "seed 1: exit code 130\n"))
        self.assertEqual(self.states(), ["interrupted"])

    def test_a_task_without_its_list_fails(self):
        self.sweep(TWO, "--slurm")
        (self.folder / "sw/slurm/1/points.tsv").unlink()
        code, printed = self.run_task(1)
        self.assertEqual(code, 1)
        self.assertIn("points.tsv: No such file", printed)

    # Submitting

    def test_a_submission_says_how_to_watch_and_collect(self):
        done = self.sweep(TWO, "--slurm", "--set", "optimizer.lr=0.5", out="a b")
        folder = self.folder / "a b/slurm/1"
        self.assertEqual(
            done.lines[:4],
            [
                f"job 7: 2 runs in 2 tasks, see {folder}/array.sh",
                "watch:    squeue --jobs=7",
                "cancel:   scancel 7",
                "collect:  pipewright sweep s.yaml --set optimizer.lr=0.5 --out 'a b' --resume",
            ],
        )
        self.assertEqual(self.submissions(), [f"--parsable {folder}/array.sh"])

    def test_without_slurm_nothing_is_written(self):
        (self.folder / "empty").mkdir()
        self.path(f"{self.folder}/empty")
        refused = self.sweep(TWO, "--slurm", code=EXPERIMENT)
        self.assert_errors(refused, r"^there is no sbatch on the PATH.*--dry-run.*without --slurm")
        self.assertFalse((self.folder / "sw").exists())

    def test_a_refused_submission_leaves_no_array(self):
        self.fake("sbatch", "#!/bin/bash\necho 'sbatch: error: Invalid job array specification' >&2\nexit 1\n")
        refused = self.sweep(TWO, "--slurm", code=EXPERIMENT)
        self.assert_errors(refused, r"^sbatch did not submit the sweep: .*Invalid job array.*--points-per-task")
        self.fake("sbatch", SBATCH)
        self.assertIn("slurm/1/array.sh", self.sweep(TWO, "--slurm").err)

    def test_ctrl_c_does_not_part_the_submission_from_its_number(self):
        self.fake("sbatch", "#!/bin/bash\ntrap 'echo 7; exit' INT\nkill -INT $PPID\nwhile :; do :; done\n")
        self.assertEqual(self.sweep(TWO, "--slurm").lines[1], "watch:    squeue --jobs=7")

    def test_an_interrupted_submission_is_never_forgotten(self):
        self.fake("sbatch", "#!/bin/bash\nkill -INT $PPID\nexec sleep 60\n")
        self.assertIn("slurm/1: interrupted before sbatch", self.sweep(TWO, "--slurm", code=INTERRUPTED).err)
        self.fake("sbatch", SBATCH)
        for flags in (("--slurm",), ("--resume",)):
            refused = self.sweep(TWO, *flags, code=WORKER)
            self.assert_errors(refused, r"slurm/1: .* its job is not known; .*delete")
        self.assertEqual(self.submissions(), [])

    # Asking the queue

    def test_what_is_in_the_queue_is_not_submitted_again(self):
        self.sweep(TWO, "--slurm")
        self.write("queue", "7 1 RUNNING\n7 2 PENDING\n")
        again = self.sweep(TWO, "--slurm")
        self.assertEqual(again.lines[0], "2 runs: 1 running, 1 pending")
        self.assertEqual(again.lines[-1], "2 runs are in the queue, see squeue --jobs=7")
        self.assertEqual(len(self.submissions()), 1)
        self.assertEqual(self.states(), [])

    def test_only_what_is_missing_is_submitted_again(self):
        three = changed(TWO, {"sweep": {"grid": {"train.seed": [1, 2, 3]}}})
        self.sweep(three, "--slurm")
        self.run_task(1)
        self.write("queue", "7 1 COMPLETED\n7 2 REQUEUED\n7 3 TIMEOUT\n")
        again = self.sweep(three, "--slurm", "--resume")
        self.assertEqual(again.lines[0], "3 runs: 1 done, 1 running, 1 missing")
        self.assertRegex(again.lines[1], r"^job 7: 1 run in 1 task, see .*/slurm/2/array.sh$")
        self.assertEqual(self.run_task(1, array=2), (0, "seed 3: exit code 0\n"))

    def test_only_what_is_missing_runs_here(self):
        self.sweep(TWO, "--slurm")
        self.write("queue", "7 1 PENDING\n")
        here = self.sweep(TWO, "--resume")
        self.assertEqual(here.lines[0], "2 runs: 1 pending, 1 missing")
        self.assertRegex(here.lines[1], r"seed 2: test_accuracy ")
        self.assertIn("1 of 2 runs done, see ", here.err)
        self.assertIn("1 run is in the queue", here.err)

    def test_a_run_that_died_with_its_task_goes_on(self):
        self.sweep(TWO, "--slurm")
        self.run_task(1)
        run = next((self.folder / "sw").glob("*/run.json"))
        run.write_text(run.read_text().replace('"done"', '"running"'))
        self.assertEqual(self.sweep(TWO, "--resume").lines[0], "2 runs: 1 interrupted, 1 missing")
        self.assertEqual(self.states(), ["done", "done"])

    def test_without_an_answer_nothing_is_started(self):
        self.sweep(TWO, "--slurm")
        self.fake("squeue", "#!/bin/bash\necho 'squeue: error: Unable to contact controller' >&2\nexit 1\n")
        for flags in (("--slurm",), ("--resume",)):
            refused = self.sweep(TWO, *flags, code=WORKER)
            self.assert_errors(refused, r"slurm/1: cannot ask Slurm whether job 7 is over: squeue: ")
        self.assertEqual((len(self.submissions()), self.states()), (1, []))

    def test_overwrite_begins_anew(self):
        self.sweep(TWO)
        self.assertRegex(self.sweep(TWO, "--slurm", code=EXPERIMENT).err, r"holds 2 finished runs .*--resume")
        self.sweep(TWO, "--slurm", "--overwrite")
        self.assertEqual(self.states(), [])
        self.write("queue", "7 1 RUNNING\n7 2 PENDING\n")
        for flags in ((), ("--slurm",)):
            refused = self.sweep(TWO, "--overwrite", *flags, code=EXPERIMENT)
            self.assert_errors(refused, r"^sw: 2 runs are in the queue, .*; scancel")

    # The command line

    def test_options_that_make_no_sense(self):
        for flags, pattern in (
            (("--dry-run",), r"^--dry-run is for clusters and needs --slurm$"),
            (("--sbatch=-p x",), r"^--sbatch is for clusters"),
            (("--slurm", "--points-per-task", "0"), r"^--points-per-task is 0; expected at least 1$"),
            (("--slurm", "--sbatch", "partition=x"), r"^--sbatch is 'partition=x'; expected .*--partition=gpu"),
            (("--slurm", "--sbatch", "--array=1-2"), r"^--sbatch is '--array=1-2'; .*--jobs"),
        ):
            self.assert_errors(self.sweep(TWO, *flags, code=EXPERIMENT), pattern)
        self.assertEqual(self.submissions(), [])


if __name__ == "__main__":
    harness.main()
