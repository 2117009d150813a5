# SPDX-License-Identifier: Apache-2.0
"""Several hosts, each with a network, a name, processes and an sshd of its own: `mpirun --host` over ssh.

docs/manual/howto/cluster.md says how somebody does the same on real ones.
"""

import json
import subprocess
import time
from pathlib import Path

import harness
import hosts
import skips
from harness import BINARY, MLP, changed

FOUR = changed(MLP, {"pipeline.stages": 4, "model.widths": [64, 48, 40, 32, 10], "scheme.name": "pipedream"})
LONG = changed(FOUR, {"train.epochs": 100_000, "train.checkpoint": {"every": 1}, "train.evaluate_every": 1000})
# Seconds until a run ends of which a host is gone, and says so. mpirun itself may wait longer for that host's half.
NAMED_WITHIN = 10
MINIBATCHES = 6  # of an epoch
TRIES = 3  # where other work takes the cores away, it may be late


def setUpModule():
    reason = hosts.why_not()
    if reason:
        skips.lacks("hosts", reason)


def mpi(experiment):
    return changed(experiment, {"pipeline.execution": "mpi"})


@skips.needs("mpirun")
class Hosts(harness.EndToEnd):
    def launch(self, cluster, *words, name="x.yaml", binary=BINARY):
        run = subprocess.Popen(
            cluster.ssh("a", cluster.mpirun(binary, "run", name, *words)), cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.addCleanup(self.close, run)
        return run

    @staticmethod
    def close(run):
        run.kill()
        run.communicate()

    def far(self, cluster, experiment, out):
        self.write("x.yaml", mpi(experiment))
        done = self.finish(self.launch(cluster, "--out", out, "--quiet"))
        self.assertEqual(0, done.code, done.err)
        return harness.Run(self.folder / out)

    def test_they_are_hosts(self):
        cluster = hosts.Hosts(self, 2)
        said = [subprocess.run(cluster.ssh(name, "hostname; ls /tmp/private; ps -e | wc -l"), capture_output=True, text=True).stdout for name in "ab"]
        self.assertEqual(["a", "b"], [text.split()[0] for text in said])
        for text in said:
            self.assertLess(int(text.split()[-1]), 10, "it sees other processes than its own")

    def compare(self, count, rate=None, delay_ms=0):
        experiment = changed(FOUR, {"pipeline.stages": count})
        far = self.far(hosts.Hosts(self, count, rate, delay_ms), experiment, "far")
        self.assert_same_weights(self.train(experiment, "near"), far)

    def test_two_have_the_weights_of_one_process(self):
        self.compare(2)

    def test_four_with_a_gigabit_have_the_weights_of_one_process(self):
        self.compare(4, "1gbit")

    def test_four_with_slow_links_have_the_weights_of_one_process(self):
        self.compare(4, "200mbit", 50)

    def begin(self, cluster):
        """A long training over all hosts, which has a checkpoint."""
        self.write("x.yaml", mpi(LONG))
        run = self.launch(cluster, "--out", "out")
        self.wait_until(self.last_checkpoint, run)
        return run

    def last_checkpoint(self):
        """The number of mini-batches before it, or 0."""
        manifest = self.folder / "out/checkpoint/manifest.json"
        return json.loads(manifest.read_text())["minibatches"] if manifest.exists() else 0

    def left(self, cluster, names):
        """Processes of the run on these hosts."""
        found = []
        for name in names:
            for pid in cluster.processes(name):
                try:
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0].endswith(b"/pipewright"):
                    found.append(pid)
        return found

    def lose(self, how, cause):
        """A host goes: the processes on the others end in time, the folder says which is gone, and the others go on."""
        took = []
        while not took or (took[-1] > NAMED_WITHIN and len(took) < TRIES):
            if took:
                self.doCleanups()
                self.setUp()
            cluster = hosts.Hosts(self, 4)
            run = self.begin(cluster)
            began = time.monotonic()
            getattr(cluster, how)("c")
            self.wait_until(lambda: not self.left(cluster, "abd"))
            took.append(time.monotonic() - began)
            state = json.loads((self.folder / "out/run.json").read_text())
            self.assertEqual("failed", state["state"])
            self.assertRegex(state["error"], cause)
            self.close(run)
        self.assertLessEqual(took[-1], NAMED_WITHIN, f"it took {took} s")
        self.go_on(cluster, ["a:2", "b", "d"])

    def go_on(self, cluster, left):
        epochs = self.last_checkpoint() // MINIBATCHES + 3
        script = cluster.mpirun(BINARY, "run", "x.yaml", "--out", "out", "--resume", "--set", f"train.epochs={epochs}", "--quiet", hosts=left)
        done = subprocess.run(cluster.ssh("a", script), cwd=self.folder, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assert_same_weights(self.train(changed(FOUR, {"train.epochs": epochs, "train.evaluate_every": 1000}), "near"), harness.Run(self.folder / "out"))
        self.discard_parts()

    def discard_parts(self):
        """Of processes that were killed while they wrote."""
        for part in (self.folder / "out").rglob("*.part"):
            part.unlink()

    GONE = r"^worker (\d), stage \1, \1[FBU]\d+( \((done|not begun)\))?: its process \d+ on [a-d] has not answered"

    def test_one_whose_network_goes_is_named_and_the_others_go_on(self):
        self.lose("cut", self.GONE)

    def test_one_whose_processes_are_frozen_is_named_and_the_others_go_on(self):
        self.lose("freeze", r"^worker 2, stage 2, .*: its process \d+ on c has not answered")

    def test_one_whose_power_fails_is_named_and_the_others_go_on(self):
        self.lose("kill", self.GONE)

    def test_one_that_is_cut_for_two_seconds_comes_back(self):
        """Shorter than a process waits for another: TCP sends again what was lost."""
        cluster = hosts.Hosts(self, 4)
        run = self.begin(cluster)
        cluster.cut("c")
        time.sleep(2)
        cluster.join("c")
        before = self.last_checkpoint()
        self.wait_until(lambda: self.last_checkpoint() > before + 5 * MINIBATCHES or run.poll() is not None)
        self.assertIsNone(run.poll(), "the run ended")
        for name in cluster.names:
            cluster.kill(name)
            cluster.first[name].wait()
        self.discard_parts()

    def test_a_folder_that_is_not_shared_is_noticed_before_anything_is_trained(self):
        cluster = hosts.Hosts(self, 2)
        self.write("x.yaml", mpi(changed(FOUR, {"pipeline.stages": 2})))
        done = self.finish(self.launch(cluster, "--out", "/tmp/private/out"))
        self.assertNotEqual(0, done.code)
        self.assertRegex(done.err, r"(?m)^/tmp/private/out.* shared by all hosts")
        self.assertNotIn("epoch 1/", done.err)


if __name__ == "__main__":
    harness.main()
