# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of one node, made of this machine, for as long as a test module runs.

munged, slurmctld and slurmd are started by hand, with their files in a folder of their own and on
ports that were free: a Slurm that the machine may have is not touched. They end with this process,
however it ends.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
SECONDS_LIMIT = 120  # of everything that is waited for
CPUS = 2
GPUS = ("/dev/null", "/dev/zero")  # Slurm wants files of theirs, and opens none

CONFIGURATION = """\
ClusterName=pipewright
SlurmctldHost={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def munged(folder):
    """The words that start it, with its files in a folder where its key is."""
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed", "log-file": "log"}
    return ["munged", "--foreground", *(f"--{option}={folder}/munge.{file}" for option, file in files.items())]


def write_key(folder):
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(1024))


def program(name):
    """Debian keeps daemons where a user's PATH may not lead."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def why_not():
    """Why there can be no cluster here; "" when there can."""
    missing = [name for name in PROGRAMS if program(name) is None]
    if missing:
        return f"Slurm is not installed: no {', '.join(missing)} (Debian: slurm-wlm, munge)"
    return "" if os.geteuid() == 0 else "only root can start Slurm's daemons"


def wait_until(condition, what):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > SECONDS_LIMIT:
            raise TimeoutError(f"{what} takes more than {SECONDS_LIMIT} s")
        time.sleep(0.1)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="pipewright-slurm-"))
        self.folder.chmod(0o755)  # munged wants its socket to be reachable
        self.daemons = []

    def start(self):
        """Sets SLURM_CONF for this process and its children."""
        controller_port, node_port = free_ports(2)
        configuration = self.folder / "slurm.conf"
        host = socket.gethostname().split(".")[0]
        node = f"NodeName={host} NodeAddr=127.0.0.1 CPUs={CPUS} Gres=gpu:{len(GPUS)} State=UNKNOWN\n"
        configuration.write_text(
            f"GresTypes=gpu\n{node}"
            + CONFIGURATION.format(
                folder=self.folder, controller=f"{host}(127.0.0.1)", controller_port=controller_port, node_port=node_port
            )
        )
        (self.folder / "gres.conf").write_text("".join(f"Name=gpu File={file}\n" for file in GPUS))
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        write_key(self.folder)
        os.environ["SLURM_CONF"] = str(configuration)
        self.daemon(*munged(self.folder))
        wait_until((self.folder / "munge.socket").exists, "munged")
        self.daemon("slurmctld", "-D", "-c")
        self.daemon("slurmd", "-D")
        wait_until(lambda: self.ask("sinfo", "--noheader", "--format=%T") == "idle", "the node's start")

    def daemon(self, name, *arguments):
        with open(self.folder / f"{name}.out", "wb") as output:
            self.daemons.append(
                subprocess.Popen(
                    [program(name), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
            )

    def ask(self, *command):
        """What one of Slurm's commands prints; also where it fails, while a daemon is starting."""
        for daemon in self.daemons:
            if daemon.poll() is not None:
                raise RuntimeError(f"{daemon.args[0]} has ended\n{self.logs()}")
        words = [program(command[0]), *command[1:]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_LIMIT)
        return done.stdout.strip()

    def queue(self):
        """{task: state} of what is pending or running."""
        lines = self.ask("squeue", "--noheader", "--array", "--format=%K %T").splitlines()
        # A task that ends while it is asked for has no number any more.
        return {int(task) if task.isdigit() else task: state for task, state in (line.split() for line in lines)}

    def wait(self):
        """Until the queue is empty."""
        wait_until(lambda: not self.queue(), "the queue")

    def cancel(self):
        self.ask("scancel", "--user=root")
        self.wait()

    def logs(self):
        files = sorted(self.folder.glob("*.out"))
        return "".join(f"== {file.name}\n{file.read_text()[-2000:]}" for file in files)

    def stop(self):
        try:
            if len(self.daemons) == 3:
                self.cancel()  # jobs are no children of ours
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            pass  # then they are left to slurmd's own end
        finally:
            for daemon in reversed(self.daemons):
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
            os.environ.pop("SLURM_CONF", None)
            shutil.rmtree(self.folder, ignore_errors=True)
