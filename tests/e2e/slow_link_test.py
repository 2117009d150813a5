# SPDX-License-Identifier: Apache-2.0
"""Two processes in network namespaces of their own, with 1 MB/s between them: a healthy run goes on
however long a message takes, and one whose link breaks ends after `pipeline.timeout`.

Only root can make namespaces, with `ip` and `tc` (Debian: iproute2).
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import harness
import skips
from harness import BINARY, changed
from mpi_failures_test import processes

# The weights behind the wide layer are 10 MB: 10 s of the link, several times the timeout.
TIMEOUT = 4
SLOW = {
    "dataset": {"name": "synthetic", "train": 64, "test": 32},
    "loader": {"batch_size": 32},
    "model": {"name": "mlp", "widths": [32, 64, 1600, 1600, 10]},
    "pipeline": {"stages": 2, "balance": [1, 3], "execution": "mpi", "timeout": TIMEOUT},
    "scheme": {"name": "gpipe"},
    "optimizer": {"name": "sgd", "lr": 0.01},
    "train": {"epochs": 1, "checkpoint": {"every": 0}},
}
RATE = "8mbit"


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def setUpModule():
    for program in ("ip", "tc", "unshare"):
        if not skips.has(program):
            skips.lacks("network-namespaces", f"there is no {program}")
    try:
        command("ip", "netns", "add", f"pipewright-{os.getpid()}")
        command("ip", "netns", "del", f"pipewright-{os.getpid()}")
    except subprocess.CalledProcessError as error:
        skips.lacks("network-namespaces", error.stderr.decode().strip())


@skips.needs("mpirun")
class SlowLink(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.spaces = [f"pipewright-{os.getpid()}-{end}" for end in "ab"]
        ends = [f"pw{os.getpid()}{end}" for end in "ab"]  # 15 letters at most
        for space in self.spaces:
            command("ip", "netns", "add", space)
            self.addCleanup(command, "ip", "netns", "del", space)
            self.addCleanup(self.end_all_in, space)
        a, b = self.spaces
        command("ip", "link", "add", ends[0], "netns", a, "type", "veth", "peer", "name", ends[1], "netns", b)
        for number, (space, end) in enumerate(zip(self.spaces, ends), 1):
            command("ip", "-n", space, "addr", "add", f"10.213.77.{number}/24", "dev", end)
            command("ip", "-n", space, "link", "set", "lo", "up")
            command("ip", "-n", space, "link", "set", end, "up")
            command("tc", "-n", space, "qdisc", "add", "dev", end, "root", "tbf",
                    "rate", RATE, "burst", "32k", "latency", "400ms")
        self.ends = ends
        self.agent = self.write("agent", f'#!/bin/sh\nshift\nexec ip netns exec {b} unshare --uts sh -c "hostname {b}; cd {self.folder}; $*"\n')
        self.agent.chmod(0o755)

    @staticmethod
    def end_all_in(space):
        """What mpirun has started there and can no longer reach."""
        found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
        for process in found.stdout.split():
            os.kill(int(process), signal.SIGKILL)

    def begin(self, experiment):
        self.write("slow.yaml", experiment)
        a, _ = self.spaces
        mpirun = [
            "mpirun", "--quiet", "--allow-run-as-root", "--bind-to", "none", "-n", "2",
            "-host", "10.213.77.1:1,10.213.77.2:1", "--mca", "plm_rsh_agent", str(self.agent),
            "--mca", "btl_tcp_if_include", "10.213.77.0/24", "--mca", "oob_tcp_if_include", "10.213.77.0/24",
        ]  # fmt: skip
        run = subprocess.Popen(
            ["ip", "netns", "exec", a, "unshare", "--uts", "sh", "-c", f'hostname {a}; exec "$@"', "sh",
             *mpirun, BINARY, "run", "slow.yaml", "--out", "out"],
            cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def test_a_healthy_run_is_never_ended(self):
        began = time.monotonic()
        done = self.finish(self.begin(SLOW))
        self.assertEqual(done.code, 0, done.err)
        self.assertGreater(time.monotonic() - began, 2 * TIMEOUT, "the link was not slow")
        far = harness.Run(self.folder / "out")
        near = self.train(changed(SLOW, {"pipeline.execution": "serial"}), "near")
        self.assert_same_weights(near, far)

    def test_a_link_that_breaks_ends_the_run(self):
        run = self.begin(changed(SLOW, {"train": {"epochs": 4000}, "model.widths": [32, 64, 16, 16, 10]}))
        self.wait_until((self.folder / "out" / "epochs.csv").exists, run)
        command("ip", "-n", self.spaces[1], "link", "set", self.ends[1], "down")
        # mpirun itself waits for the other machine's half; the run's processes do not.
        self.wait_until(lambda: not processes(self.folder))
        state = json.loads((self.folder / "out" / "run.json").read_text())
        self.assertEqual(state["state"], "failed")
        # Each process misses the other; the first to say so is the one on record.
        self.assertRegex(
            state["error"],
            r"^worker (\d), stage \1, \1[FBU]\d+( \((done|not begun)\))?: its process \d+ on .* has not answered",
        )
        run.kill()
        for pipe in (run.stdout, run.stderr):
            pipe.close()


if __name__ == "__main__":
    harness.main()
