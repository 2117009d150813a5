# SPDX-License-Identifier: Apache-2.0
"""What the machine does not have, memory, threads, open files, is said in one line with exit code 3."""

import os
import resource
import socket
import subprocess

import harness
import skips
from harness import BINARY, DATA, EXPERIMENT, FINE, MLP, SWEEP, WORKER, changed, plain

FAILING_THREADS = os.environ.get("PIPEWRIGHT_FAILING_THREADS", "")  # see failing_threads.cpp
GIB = 1 << 30

# 160,000 GiB of parameters, said by 13 characters.
HUGE = {
    "dataset": {"name": "synthetic", "train": 16},
    "loader": {"batch_size": 4},
    "model": {"name": "mlp", "widths": [8, 1000000000000, 8, 4]},
    "pipeline": {"stages": 3, "balance": "layers"},
    "optimizer": {"name": "sgd", "lr": 0.01},
    "train": {"epochs": 1},
}
# A few MiB of parameters, and 8 GiB of activations.
WIDE = changed(
    HUGE,
    {
        "dataset.train": 2000,
        "loader.batch_size": 2000,
        "model.widths": [8, 1000000, 4],
        "pipeline.stages": 2,
    },
)
SMALL = changed(MLP, {"loader.limit_train": 32, "pipeline": {"stages": 2, "replicas": 2, "balance": "layers"}})


class Limited(harness.EndToEnd):
    def limited(self, limit, most, *arguments, environment=None):
        """The program under a limit of the system's."""
        done = subprocess.run(
            [BINARY, *map(str, arguments)],
            cwd=self.folder,
            env=os.environ | (environment or {}),
            capture_output=True,
            text=True,
            timeout=harness.SECONDS_LIMIT,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(limit, (most, most)),
        )
        return harness.Finished(done.returncode, done.stdout, done.stderr)

    def assert_refused(self, done, code, pattern):
        self.assertEqual(done.code, code, done.out + done.err)
        self.assert_errors(done, pattern)


class Memory(Limited):
    NEED = r"^stage [01]: its parameters, gradients and optimizer state need \d+\.\d\d GiB; "

    def test_more_parameters_than_the_machine_has_memory_are_refused_with_stage_and_bytes(self):
        self.write("huge.yaml", HUGE)
        for command in (("check",), ("run", "--quiet", "--out", "out")):
            with self.subTest(command[0]):
                done = self.finish(self.start(*command[:1], "huge.yaml", *command[1:]))
                self.assert_refused(done, DATA, self.NEED + r".*(has|allows) \d")
        self.assertFalse((self.folder / "out" / "run.json").exists(), "the run had not begun")

    def test_a_limit_of_the_process_counts_as_the_machine_does(self):
        self.write("large.yaml", changed(HUGE, {"model.widths": [8, 200000000, 8, 4]}))
        for command in (("check",), ("run", "--quiet")):
            done = self.limited(resource.RLIMIT_AS, 4 * GIB, *command[:1], "large.yaml", *command[1:])
            self.assert_refused(done, DATA, self.NEED + r"ulimit -v allows 4\.00 GiB$")

    def test_a_schedule_for_eyes_is_refused_before_it_takes_the_memory(self):
        self.write("deep.yaml", {"model": {"name": "mlp", "widths": [8] * 201}, "pipeline": {"stages": 200, "microbatches": 512}})
        self.write("four.yaml", {"model": {"name": "mlp", "widths": [8] * 5}, "pipeline": {"stages": 4, "microbatches": 2}})
        self.write("costs.yaml", {"forward": 1})
        drawing = ("schedule", "deep.yaml", "--set", "loader.batch_size=512", "--set", "scheme.name=gpipe",
                   "--minibatches", "16")
        many = ("synthesize", "four.yaml", "--costs", "costs.yaml", "--minibatches", "1000000", "--within", "5s")
        both = ("compare", "four.yaml", "four.yaml", "--minibatches", "1000000")
        for command, what in (
            (drawing, r"the drawing has 200 lines of [\d,]+ columns, which take \d+\.\d\d GiB"),
            (("schedule", "four.yaml", "--minibatches", "1000000"), "the schedule has at least 16.0 M actions"),
            (many, "the schedule has at least 16.0 M actions"),
            (both, "the schedule has at least 16.0 M actions"),
        ):
            with self.subTest(command[0]):
                done = self.limited(resource.RLIMIT_AS, GIB + GIB // 2, *command)
                self.assert_refused(done, DATA, what + r".*; ulimit -v allows 1\.50 GiB")

    def test_check_says_what_fits_too(self):
        self.write("small.yaml", SMALL)
        done = self.pipewright("check", "small.yaml")
        self.assertRegex(done.out, r"(?m)^memory      \d+\.\d [KM]iB for parameters, gradients and optimizer "
                                   r"state; .*(has|allows) \d+\.\d\d GiB")

    def test_memory_that_runs_out_in_a_pass_is_said_with_its_place(self):
        for execution in ("serial", "threads"):
            self.write("wide.yaml", changed(WIDE, {"pipeline.execution": execution}))
            done = self.limited(resource.RLIMIT_AS, 5 * GIB, "run", "wide.yaml", "--out", execution, "--quiet")
            self.assert_refused(
                done,
                DATA,
                r"^worker 0, stage 0, 0F0.*: memory ran out: 7\.45 GiB were asked for at once; ulimit -v allows 5\.00 GiB$",
            )
            self.assertEqual(harness.Run(self.folder / execution).state(), "failed")

    @skips.needs("mpirun")
    def test_in_a_process_of_several_it_is_a_worker_that_failed(self):
        self.write("wide.yaml", changed(WIDE, {"pipeline.execution": "mpi"}))
        done = self.limited(resource.RLIMIT_AS, 5 * GIB, "run", "wide.yaml", "--out", "out", "--quiet")
        self.assert_refused(done, WORKER, r"^worker 0, stage 0, 0F0.*: memory ran out: 7\.45 GiB")
        self.write("huge.yaml", changed(HUGE, {"pipeline.execution": "mpi"}))
        done = self.finish(self.start("run", "huge.yaml", "--out", "huge", "--quiet"))
        self.assert_refused(done, WORKER, self.NEED)

    def test_a_sweep_goes_on_after_the_run_that_needs_too_much(self):
        sweep = changed(SMALL, {"dataset.name": "synthetic", "model.widths": [8, 8, 8, 4]})
        sweep["sweep"] = {"points": [{"label": "fits"}, {"label": "huge", "model.widths": [8, 10**12, 8, 4]}]}
        self.write("sweep.yaml", sweep)
        done = self.pipewright("sweep", "sweep.yaml", "--out", "out", "--jobs", "1", code=SWEEP)
        self.assertIn("huge", done.err)
        self.assertRegex(done.err, r"exit code 3: stage [01]: its parameters, gradients")
        done = self.pipewright("check", "sweep.yaml", code=DATA)
        self.assert_errors(done, r"^stage [01]: its parameters.*\(run 'huge.*'\)$")


class Sizes(harness.EndToEnd):
    """Numbers that would take all memory are refused before any is taken."""

    def refused(self, changes, code, pattern):
        self.write("size.yaml", changed(HUGE, {"model.widths": [8, 8, 8, 4]} | changes))
        done = self.finish(self.start("check", "size.yaml"))
        self.assertEqual(done.code, code, done.err)
        self.assertRegex(done.err, pattern)
        self.assertNotIn("bug", done.err)

    def test_of_the_pipeline(self):
        self.refused({"pipeline.stages": 10**9}, EXPERIMENT, r"size.yaml:\d+:\d+: pipeline.stages")
        self.refused({"pipeline.microbatches": 10**9}, EXPERIMENT, r"size.yaml:\d+:\d+: pipeline.microbatches")
        self.refused({"pipeline.replicas": 10**9}, EXPERIMENT, r"size.yaml:\d+:\d+: pipeline.replicas")
        self.refused(
            {"pipeline": {"stages": 3, "replicas": 4096, "placement": [0, 1, 4095]}},
            EXPERIMENT,
            r"size.yaml:\d+:\d+: pipeline",
        )

    def test_of_the_training(self):
        self.refused({"train.epochs": 10**12}, EXPERIMENT, r"size.yaml:\d+:\d+: train.epochs")
        self.refused({"loader.batch_size": 10**18}, EXPERIMENT, r"size.yaml:\d+:\d+: loader.batch_size")
        self.refused({"dataset.train": 10**12}, EXPERIMENT, r"size.yaml:\d+:\d+: dataset.train")
        self.refused({"dataset": {"name": "synthetic", "train": 10**9, "shape": [10**9]}}, EXPERIMENT, r"size.yaml:\d+:\d+: ")

    def test_of_the_schedule_with_actions_and_bytes(self):
        self.refused(
            {"train": {"epochs": 10**6, "drain": "never"}, "dataset.train": 10**6, "scheme": {"name": "pipemare"}},
            DATA,
            r"^size.yaml:\d+:\d+: the schedule has at least 1500\.00 G actions .* take at least \d+\.\d\d GiB; .*train\.drain",
        )
        self.refused(
            {"train": {"epochs": 10**6, "drain": "never"}, "dataset.train": 10**6},
            DATA,
            r"^size.yaml:\d+:\d+: the schedule has 250\.00 G micro-batches .*train\.drain",
        )
        self.write("small.yaml", SMALL)
        done = self.finish(self.start("schedule", "small.yaml", "--minibatches", 2000000000))
        self.assertEqual(done.code, DATA, done.err)
        self.assert_errors(done, r"^the schedule has at least 16\.00 G actions")

    def test_of_the_hardware(self):
        self.write("small.yaml", SMALL)
        self.write("many.yaml", "name: many\nhosts: 65536\ndevices: {count: 65536}\n")
        done = self.finish(self.start("simulate", "small.yaml", "--hardware", "many.yaml"))
        self.assertEqual(done.code, EXPERIMENT, done.err)
        self.assert_errors(
            done,
            r"^many\.yaml:2:8: hardware\.hosts is 65,536 and hardware\.devices\.count 65,536, "
            r"which makes 4,294,967,296 devices; at most 65,536",
        )


@skips.needs("test-programs", FAILING_THREADS)
class Threads(Limited):
    CANNOT = r"cannot be started: Resource temporarily unavailable"

    def failing(self, k, **more):
        return {
            "LD_PRELOAD": FAILING_THREADS,
            "FAILING_THREADS_NAME": "pipewright",
            "FAILING_THREADS_AT": str(k),
        } | more

    def every_failure(self, changes):
        """Returns how many threads there were."""
        self.write("threads.yaml", changed(SMALL, changes))
        for k in range(1, 200):
            command = ("run", "threads.yaml", "--quiet", "--out", "out", "--overwrite")
            done = self.finish(self.start(*command, environment=self.failing(k)))
            if done.code == FINE:
                return k - 1
            with self.subTest(k=k):
                self.assertEqual(done.code, DATA, done.err)
                self.assert_errors(done, self.CANNOT)
                self.assertEqual(harness.Run(self.folder / "out").state(), "failed")
        self.fail("it never ended well")

    def test_every_worker_that_cannot_be_started(self):
        self.assertGreaterEqual(self.every_failure({"pipeline.execution": "threads", "loader.prefetch": 0}), 4)

    def test_every_thread_of_the_loader_and_of_operators(self):
        self.assertGreaterEqual(self.every_failure({"loader.prefetch": 2}), 2)
        # one a worker besides its own; OpenMP's own, once these have been seen to be possible, end the process
        self.write("pools.yaml", changed(SMALL, {"pipeline.execution": "threads", "pipeline.threads": 2}))
        for k in range(1, 5):
            done = self.finish(self.start("run", "pools.yaml", "--quiet", "--out", f"pools{k}", environment=self.failing(k)))
            self.assertEqual(done.code, DATA, done.err)
            self.assert_errors(done, r"pipeline\.threads \(4 times 2\) " + self.CANNOT)

    @skips.needs("mpirun")
    def test_a_process_of_several_without_its_keeper_ends_them_all(self):
        self.write("mpi.yaml", changed(SMALL, {"pipeline": {"stages": 2, "balance": "layers", "execution": "mpi"}}))
        said = []
        for k in range(1, 7):  # the first ones are MPI's own, which ends the process or does without
            environment = self.failing(k, FAILING_THREADS_RANK="1")
            done = self.finish(self.start("run", "mpi.yaml", "--quiet", "--out", f"out{k}", environment=environment))
            if "cannot be started" in done.err:
                self.assertEqual(done.code, WORKER, done.err)
            if done.code != FINE:
                self.assertTrue(done.err.strip(), f"silent at {k}")
            said += done.lines
        self.assertRegex("\n".join(said), r"(?m)^rank 1 on \S+: a thread for the messages of this process " + self.CANNOT)
        self.assertRegex("\n".join(said), r"(?m)^worker 1, stage 1, 1F0: a thread for \S+( run)? " + self.CANNOT)


class Files(Limited):
    def test_too_few_descriptors_are_said_with_the_limit(self):
        self.write("long.yaml", changed(SMALL, {"train.epochs": 100000}))
        run = self.start("run", "long.yaml", "--quiet", "--out", "out")
        self.wait_until((self.folder / "out" / "checkpoint").exists, run)
        resource.prlimit(run.pid, resource.RLIMIT_NOFILE, (3, 3))
        self.assert_refused(
            self.finish(run), DATA, r"^out/.*: cannot .*: Too many open files \(this process may have 3 files open, ulimit -n\)$"
        )

    def test_a_name_too_long_is_no_bug(self):
        self.write("small.yaml", SMALL)
        for out in ("n" * 300, "f/" + "n" * 300 + "/out"):
            done = self.finish(self.start("run", "small.yaml", "--quiet", "--out", out))
            self.assert_refused(done, DATA, r"File name too long$")

    @skips.needs("test-programs", harness.FAILING_FILES)
    def test_a_disk_that_fails_when_a_run_is_resumed_is_no_mistake_in_the_experiment(self):
        self.train(SMALL, "small")
        done = self.resume("small", code=DATA, environment=self.failing("small/run.json", "read", 1))
        self.assert_errors(done, r"run\.json: cannot read: Input/output error$")

    def test_a_file_that_is_not_there_was_named_wrongly(self):
        done = self.pipewright("check", "missing.yaml", code=EXPERIMENT)
        self.assert_errors(done, r"^missing.yaml: cannot open: No such file or directory$")


class Ranks(harness.EndToEnd):
    """Before there is a team."""

    def test_what_a_batch_job_has_left_in_the_environment_silences_no_command(self):
        self.write("bad.yaml", "model: {name: nothing}\n")
        for stale in ({"OMPI_COMM_WORLD_RANK": "1"}, {"PMI_RANK": "3"}, {"PMIX_RANK": "2"}):
            done = self.pipewright("check", "bad.yaml", code=EXPERIMENT, environment=stale)
            self.assert_errors(done, r"^bad.yaml:1:\d+: ")
            done = self.pipewright("run", "bad.yaml", code=EXPERIMENT, environment=stale)
            self.assert_errors(done, r"^rank \d on \S+: bad.yaml:1:\d+: ")

    def mpirun(self, script):
        command = ["mpirun", "--quiet", "--oversubscribe", "-n", "2"]
        if os.geteuid() == 0:
            command.insert(1, "--allow-run-as-root")
        done = subprocess.run(
            [*command, "sh", "-c", script],
            cwd=self.folder, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT, stdin=subprocess.DEVNULL,
        )
        return harness.Finished(done.returncode, done.stdout, done.stderr)

    @skips.needs("mpirun")
    def test_what_one_host_lacks_is_said_with_rank_and_host(self):
        self.write("0.yaml", changed(SMALL, {"pipeline": {"stages": 2, "balance": "layers", "execution": "mpi"}}))
        done = self.mpirun(f"exec {BINARY} run $OMPI_COMM_WORLD_RANK.yaml --quiet --out out")
        self.assertEqual(done.code, EXPERIMENT, done.err)
        self.assert_errors(done, rf"^rank 1 on {plain(socket.gethostname())}: 1.yaml: cannot open: No such file")

    @skips.needs("mpirun")
    def test_what_all_find_wrong_is_said_once(self):
        # The first process has spoken when the other one begins, so that their pace does not matter.
        command = f"{BINARY} run missing.yaml --quiet --out out"
        done = self.mpirun(
            f"if [ $OMPI_COMM_WORLD_RANK = 0 ]; then {command}; code=$?; touch spoken; exit $code; fi; "
            f"until [ -e spoken ]; do sleep 0.05; done; exec {command}"
        )
        self.assertEqual(done.code, EXPERIMENT, done.err)
        self.assert_errors(done, r"^missing.yaml: cannot open: No such file")


if __name__ == "__main__":
    harness.main()
