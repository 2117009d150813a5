# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster over the hosts of hosts.py: slurmctld on the first, munged and slurmd on each, one core a host."""

import subprocess

import hosts
import slurm_cluster

OWN = "/run/slurm"  # a folder that each host has for itself
PORTS = {"controller_port": 6817, "node_port": 6818}  # nobody else is in these networks
# What takes minutes otherwise: a job begins, is ended, and begins again on another node when its own is missed.
MORE = """\
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SlurmdTimeout=10
KillWait=10
PartitionName=gpu Nodes=ALL MaxTime=INFINITE State=UP
"""


def why_not():
    return slurm_cluster.why_not() or hosts.why_not()


class SlurmHosts(hosts.Hosts):
    def __init__(self, test, count, **links):
        super().__init__(test, count, **links)
        first = self.names[0]
        nodes = "".join(f"NodeName={name} NodeAddr={self.address(name)} CPUs=1 State=UNKNOWN\n" for name in self.names)
        common = slurm_cluster.CONFIGURATION.format(folder=OWN, controller=f"{first}({self.address(first)})", **PORTS)
        common = common.replace("/munge.socket", "/munge.socket,cred_expire=5")
        (self.folder / "slurm.conf").write_text(nodes + common + MORE)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # without, slurmd looks for one, and uses none
        slurm_cluster.write_key(self.folder)
        for name in self.names:
            self.run(name, f"mkdir -p {OWN}/state {OWN}/spool; cp munge.key {OWN}")
            self._daemon(name, *slurm_cluster.munged(OWN))
        self._daemon(first, "slurmctld", "-D", "-c")
        for name in self.names:
            self._daemon(name, "slurmd", "-D", "-N", name)
        self.wait_until(lambda: set(self.states().values()) == {"idle"}, "the nodes' start")

    def _daemon(self, name, *words):
        """It ends with its host."""
        log = open(self.folder / f"{words[0]}-{name}.out", "w")
        self._test.addCleanup(log.close)
        process = subprocess.Popen(self.ssh(name, f"exec {' '.join(words)}"), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._test.addCleanup(process.wait)
        self._test.addCleanup(process.kill)

    def ssh(self, name, script):
        return super().ssh(name, f"export SLURM_CONF={self.folder}/slurm.conf; {script}")

    def run(self, name, script, code=0):
        """What a script prints on a host; it may end with any code where that is None."""
        done = subprocess.run(self.ssh(name, script), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=slurm_cluster.SECONDS_LIMIT)
        if code is not None:
            self._test.assertEqual(code, done.returncode, f"{script}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def rows(self, script):
        """What a command of Slurm lists, as {first word: second}; nothing while slurmctld is starting."""
        lines = [line.split() for line in self.run(self.names[0], script, code=None).splitlines()]
        return {words[0]: words[1] for words in lines if len(words) == 2}

    def states(self):
        """{host: what Slurm thinks of it}."""
        return self.rows("sinfo --noheader --Node --partition=all --format='%N %T'")

    def tasks(self, state="running"):
        """{task: its hosts} of the tasks of arrays in a state."""
        return self.rows(f"squeue --noheader --array --states={state} --format='%K %N'")

    def wait_until(self, condition, what):
        try:
            slurm_cluster.wait_until(condition, what)
        except TimeoutError as error:
            logs = "".join(f"== {file.name}\n{file.read_text()[-3000:]}" for file in self.folder.glob("slurm*.out"))
            raise AssertionError(f"{error}\n{self.states()}\n{self.run(self.names[0], 'squeue', code=None)}\n{logs}") from None

    def wait(self):
        """Until the queue is empty."""
        self.wait_until(lambda: not self.run(self.names[0], "squeue --noheader", code=None), "the queue")
