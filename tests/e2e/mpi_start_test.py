# SPDX-License-Identifier: Apache-2.0
"""A process that dies or is stopped while a run of several starts is named, and the run ends soon."""

import os
import signal
import time

import harness
import skips
from harness import FINE, INTERRUPTED, WORKER, changed
from mpi_failures_test import LONG, MpiProcesses, processes, state_of

# The promise of core/processes, in seconds by the clock from the stop of a process, or from the start of a run in
# which one dies. Where other work takes the cores, one of three tries has to keep it.
WITHIN, TRIES = 10, 3
# Calls of MPI of one process, each with what it does then. Three processes meet with three calls of MPI_Isend, and the
# next two say who the process is.
MOMENTS = (
    ("load", 1, "its program is being loaded"),
    ("MPI_Init_thread", 1, "it is about to begin MPI"),
    ("MPI_Comm_dup", 1, "MPI has begun"),
    ("MPI_Comm_dup", 2, "it makes communicators with the others"),
    ("MPI_Isend", 1, "it meets the others"),
    ("MPI_Isend", 3, "it has met one of them"),
    ("MPI_Isend", 4, "it is about to say who it is"),
    ("MPI_Isend", 5, "one of two others knows who it is"),
    ("MPI_Improbe", 1, "it listens for the first time"),
    ("MPI_Isend", 7, "the team has begun to work"),
    ("MPI_Isend", 9, "and has sent some messages"),
)


@skips.needs("mpirun")
class MpiStart(MpiProcesses):
    def ends_named(self, number, call, at, rank):
        """The run ends with one line that names the process, within the promised time once."""
        failing = self.moment(number, call, at, rank)
        times = []
        for _ in range(TRIES):
            run = self.start("run", "long.yaml", "--out", "out", environment=failing)
            if number == signal.SIGSTOP:
                self.wait_until(lambda: self.stopped(rank), run, may_end=True)
            began = time.monotonic()
            done = self.ends(run, WORKER)
            times.append(time.monotonic() - began)
            how = "was killed" if number == signal.SIGKILL else "(has not answered for 5 s|was stopped for 6 s)"
            self.assert_errors(done, rf"^worker {rank}(, .*)?: its process( \d+ on \S+)? {how}")
            self.left_no_running_run(rank)
            if times[-1] <= WITHIN:
                return
        self.fail(f"it took {times} s, not {WITHIN} s")

    def left_no_running_run(self, rank):
        """Whatever is in the folder says that the run has failed, and a new one may begin there."""
        if (self.folder / "out" / "run.json").exists():
            self.assertEqual(self.state()["state"], "failed")
            self.assertIn(f"worker {rank}", self.state()["error"])

    def test_a_process_dies(self):
        self.write("long.yaml", LONG)
        for index, (call, at, what) in enumerate(MOMENTS):
            with self.subTest(what):
                self.ends_named(signal.SIGKILL, call, at, index % 3)
        self.pipewright("run", "long.yaml", "--out", "out", "--overwrite", "--set", "train.epochs=1", code=FINE)

    def test_a_process_is_stopped(self):
        self.write("long.yaml", LONG)
        for index, (call, at, what) in enumerate(MOMENTS):
            with self.subTest(what):
                self.ends_named(signal.SIGSTOP, call, at, (index + 1) % 3)

    def test_the_program_ends_by_itself(self):
        self.write("long.yaml", LONG)
        program = self.write("ending", "#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 1 ] && exit 127\nexec \"$@\"\n")
        program.chmod(0o755)
        real = next(path for path in os.environ["PATH"].split(":") if os.access(f"{path}/mpirun", os.X_OK))
        fake = self.write(
            "bin/mpirun",
            f"""#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
words.insert(words.index("-n") + 2, "{program}")
os.execv("{real}/mpirun", ["mpirun", *words])
""",
        )
        fake.chmod(0o755)
        path = {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
        done = self.pipewright("run", "long.yaml", "--out", "out", code=WORKER, environment=path)
        # The others may end before the launcher has seen them.
        who = r"(worker 1: its process( \d+ on \S+)?|a process of the run)"
        self.assert_errors(done, f"^{who} ended with code 127 while MPI connected the workers$")

    def test_ctrl_c(self):
        """Whenever it comes, the run ends as an interrupted one, and that is said once."""
        self.write("long.yaml", LONG)
        for index, (call, at, what) in enumerate(MOMENTS):
            with self.subTest(what):
                self.interrupted_while_stopped(call, at, index % 3)

    def test_ctrl_c_while_one_process_knows_all_and_another_does_not(self):
        """The one then speaks for the team, and the other still leaves that to the launcher."""
        self.write("long.yaml", LONG)
        for rank in (0, 1, 2, 0, 1, 2):
            self.interrupted_while_stopped("MPI_Isend", 5, rank)

    def interrupted_while_stopped(self, call, at, rank):
        stop = self.moment(signal.SIGSTOP, call, at, rank)
        run = self.start("run", "long.yaml", "--out", "out", environment=stop)
        self.wait_until(lambda: self.stopped(rank), run)
        time.sleep(0.3)  # the others come as far as they can
        run.send_signal(signal.SIGINT)
        done = self.ends(run, INTERRUPTED)  # Open MPI may warn of its own
        self.assertEqual(sum("interrupted" in line for line in done.lines), 1, done.err)

    def test_a_process_dies_or_is_stopped_when_the_run_has_been_trained(self):
        self.write("long.yaml", changed(LONG, {"train.epochs": 1}))
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for rank, (call, at) in enumerate((("MPI_Ibarrier", 1), ("MPI_Ibarrier", 2), ("MPI_Finalize", 1))):
                with self.subTest(call=call, at=at, number=number):
                    began = time.monotonic()
                    run = self.start(
                        "run", "long.yaml", "--out", "out", "--overwrite", "--quiet",
                        environment=self.moment(number, call, at, rank),
                    )  # fmt: skip
                    done = self.ends(run, WORKER)
                    self.assert_errors(done, rf"^worker {rank}(, .*)?: its process \d+ on \S+ was (killed|stopped for 6 s)")
                    self.assertEqual(self.state()["state"], "done")
                    self.assertLess(time.monotonic() - began, TRIES * WITHIN)

    def moment(self, number, call, at, rank):
        """An environment in which a process gets the signal before its at-th such call: see failing_mpi.cpp."""
        library = os.environ.get("PIPEWRIGHT_FAILING_MPI", "")
        if not library:
            skips.lacks("test-programs")
        return {
            "LD_PRELOAD": library,
            "FAILING_MPI_CALL": call,
            "FAILING_MPI_AT": str(at),
            "FAILING_MPI_RANK": str(rank),
            "FAILING_MPI_SIGNAL": str(int(number)),
        }

    def stopped(self, rank):
        """Whether the process of that rank has been stopped."""
        process = processes(self.folder).get(rank)
        return process is not None and state_of(process) == "T"


if __name__ == "__main__":
    harness.main()
