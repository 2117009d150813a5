# SPDX-License-Identifier: Apache-2.0
"""Sweeps and runs on a Slurm of several hosts, which each test starts: nodes that leave, jobs that go back into the queue.

docs/manual/howto/cluster.md says how somebody does the same on a real one, and its commands are run here.
"""

import re
from pathlib import Path

import harness
import pages
import skips
import slurm_hosts
from harness import BINARY, MLP, changed

MPI = changed(MLP, {"pipeline.execution": "mpi"})
SEEDS = {"sweep": {"grid": {"train.seed": [1, 2, 3, 4]}}}
# Five seconds, in which Slurm learns of something ten times over.
EPOCHS = 1000
LONG = changed(MLP, {"train.epochs": EPOCHS, "train.evaluate_every": EPOCHS, "train.checkpoint": {"every": 1}})


def setUpModule():
    reason = slurm_hosts.why_not()
    if reason:
        skips.lacks("slurm", reason)


class SlurmHosts(harness.EndToEnd):
    def sweep(self, cluster, experiment, flag):
        self.write("s.yaml", experiment)
        return cluster.run("a", f"{BINARY} sweep s.yaml --out there {flag}")

    def runs(self, out="there"):
        return [harness.Run(file.parent) for file in sorted((self.folder / out).glob("*/run.json"))]

    def hosts_of(self, runs):
        """Where each has run last."""
        return [re.search(r"Last at work: pid \d+ on host (\w+)", (run.path / ".pipewright").read_text())[1] for run in runs]

    def compare(self, experiment):
        """The sweep on this machine has the same bits."""
        self.write("here.yaml", experiment)
        self.pipewright("sweep", "here.yaml", "--out", "here")
        here, there = self.runs("here"), self.runs()
        self.assertEqual(len(here), len(there))
        for one, other in zip(here, there):
            self.assertEqual("done", other.state())
            self.assert_same_weights(one, other)

    def discard_parts(self):
        """Of a process whose host has gone while it wrote."""
        for part in self.folder.rglob("*.part"):
            part.unlink()

    def test_an_array_has_tasks_on_both_hosts(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        experiment = changed(MLP, SEEDS)
        self.sweep(cluster, experiment, "--slurm")
        cluster.wait()
        self.assertEqual({"a", "b"}, set(self.hosts_of(self.runs())))
        self.assertIn("4 of 4 runs are done already", self.sweep(cluster, experiment, "--resume"))
        self.compare(experiment)

    @skips.needs("mpirun")
    def test_a_task_has_processes_on_both_hosts(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        self.sweep(cluster, changed(MPI, {"sweep": {"grid": {"train.seed": [1, 2]}}}), "--slurm")
        cluster.wait()
        self.assertEqual({"1": "a,b", "2": "a,b"}, cluster.tasks("completed"))
        self.compare(changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}}))

    @skips.needs("mpirun")
    def test_srun_starts_processes_on_both_hosts(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        if "pmix" not in cluster.run("a", "srun --mpi=list"):
            skips.lacks("pmix")
        self.write("x.yaml", MPI)
        said = cluster.run("a", f"srun --mpi=pmix --nodes=2 --ntasks=2 {BINARY} run x.yaml --out there --quiet")
        self.assertEqual("", said)
        self.assert_same_weights(self.train(MLP, "here"), harness.Run(self.folder / "there"))

    def test_the_other_host_goes_on_when_one_is_drained(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        lengths = [{"label": f"{n}", "train.seed": n, "train.epochs": EPOCHS if n < 2 else 1} for n in range(5)]
        experiment = changed(LONG, {"sweep": {"points": lengths}})
        self.sweep(cluster, experiment, "--slurm")
        cluster.wait_until(lambda: sorted(cluster.tasks().values()) == ["a", "b"], "two tasks")
        cluster.run("a", "scontrol update nodename=b state=drain reason=repair")
        self.assertEqual(["a", "b"], sorted(cluster.tasks().values()), "what runs there runs to its end")
        cluster.wait()
        self.assertEqual("drained", cluster.states()["b"])
        self.assertEqual(["a", "a", "a", "a", "b"], sorted(self.hosts_of(self.runs())))
        self.compare(experiment)

    def begin(self, cluster, experiment):
        """The job of one long task, which has a checkpoint; its host."""
        job = re.search(r"^job (\d+)", self.sweep(cluster, experiment, "--slurm"))[1]
        checkpoints = lambda: list((self.folder / "there").glob("*/checkpoint/manifest.json"))
        cluster.wait_until(checkpoints, "a checkpoint")
        return job, cluster.tasks()["1"]

    def goes_on(self, cluster, experiment, host=None):
        cluster.wait()
        (run,) = self.runs()
        if host:
            self.assertEqual([host], self.hosts_of([run]))
        self.assertRegex((run.path / "log.txt").read_text(), r"(?m)^going on after epoch \d+$")
        self.compare(experiment)

    def test_a_requeued_task_goes_on_on_another_host(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        experiment = changed(LONG, {"sweep": {"grid": {"train.seed": [1]}}})
        job, host = self.begin(cluster, experiment)
        cluster.run("a", f"scontrol update nodename={host} state=drain reason=repair; scontrol requeue {job}_1")
        cluster.wait_until(lambda: not cluster.tasks(), "the end of the first half")
        self.assertEqual("interrupted", self.runs()[0].state())
        self.assertRegex(self.sweep(cluster, experiment, "--resume"), "1 run is in the queue")
        self.goes_on(cluster, experiment, {"a": "b", "b": "a"}[host])

    @skips.needs("mpirun")
    def test_a_requeued_task_goes_on_with_processes_on_both_hosts(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        experiment = changed(LONG, {"sweep": {"grid": {"train.seed": [1]}}})
        job, _ = self.begin(cluster, changed(experiment, {"pipeline.execution": "mpi"}))
        cluster.run("a", f"scontrol requeue {job}_1")
        self.goes_on(cluster, experiment)

    def test_a_task_whose_host_fails_goes_on_on_another(self):
        cluster = slurm_hosts.SlurmHosts(self, 2)
        cluster.run("a", "scontrol update nodename=a state=drain reason=repair")
        experiment = changed(LONG, {"sweep": {"grid": {"train.seed": [1]}}})
        self.begin(cluster, experiment)
        cluster.kill("b")
        cluster.run("a", "scontrol update nodename=a state=resume")
        cluster.wait_until(lambda: cluster.tasks().get("1") == "a", "Slurm's own requeue")
        self.goes_on(cluster, experiment, "a")
        self.discard_parts()

    @skips.needs("mpirun")
    def test_the_page_does_what_it_says(self):
        cluster = slurm_hosts.SlurmHosts(self, 4)
        (self.folder / "build").symlink_to(Path(BINARY).parent)
        (self.folder / "experiments").symlink_to(pages.SOURCE / "experiments")
        for block in pages.blocks(pages.README, "yaml"):
            self.write(block.file or "part.yaml", block.text)
        for block in pages.blocks(pages.MANUAL / "howto/cluster.md", "sh"):
            script = block.text.replace("quickstart.yaml", f"quickstart.yaml --set '{pages.FEWER}'")
            begun = 'until squeue --noheader --jobs="$job" --states=running,completed | grep -q .; do sleep 0.1; done'
            cluster.run("a", cluster.mpi_variables() + script.replace("\nscontrol requeue", f"\n{begun}\nscontrol requeue"))
        cluster.wait()
        (self.folder / "there").symlink_to("runs/cluster")
        self.assertEqual({"done"}, {run.state() for run in self.runs()})
        self.write("whole.yaml", re.sub(r"(?m)^sweep:.*\n", "", (self.folder / "first.yaml").read_text()))
        self.pipewright("run", "whole.yaml", "--out", "here", "--quiet")
        for out in ("srun", "batch", "far"):
            self.assert_same_weights(harness.Run(self.folder / "here"), harness.Run(self.folder / "runs" / out))


if __name__ == "__main__":
    harness.main()
