# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine: each has its own network, host name, processes, temporary folder and sshd.

A bridge joins them, and what a host sends and gets goes through queues with the rate and the delay of its link (tc). They
share this machine's files but for /tmp and /run, which each has for itself; the folder of the test stays shared.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import skips

NET = "10.213.78"
# Arguments: the host's name, the test's folder, sshd. Ends as the host's first process: with it all others end.
BEGIN = r"""
hostname "$1"
mount --make-rprivate /
exec 9<"$2"
mount -t tmpfs none /run
mkdir -p /run/shared /run/sshd
mount --bind /proc/self/fd/9 /run/shared
mount -t tmpfs none /tmp
mkdir -p "$2" /tmp/private
mount --move /run/shared "$2"
mount --bind "$2/etc-hosts" /etc/hosts
exec 9<&-
exec "$3" -D -e -f "$2/ssh/$1.conf"
"""


def command(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)


def sshd():
    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")


def why_not():
    """Why there can be no hosts, or nothing."""
    if os.geteuid() != 0:
        return "only root can make hosts"
    for program in ("ip", "tc", "unshare", "ssh", "ssh-keygen"):
        if not shutil.which(program):
            return f"there is no {program}"
    if not sshd():
        return "there is no sshd"
    try:
        command("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "true")
        command("ip", "netns", "add", f"pipewright-{os.getpid()}")
        command("ip", "netns", "del", f"pipewright-{os.getpid()}")
    except subprocess.CalledProcessError as error:
        return error.stderr.decode().strip()
    return ""


def delays():
    """Whether this kernel can make packets wait."""
    name = f"pipewright-{os.getpid()}"
    command("ip", "netns", "add", name)
    try:
        command("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        return True
    except subprocess.CalledProcessError:
        return False
    finally:
        command("ip", "netns", "del", name)


class Hosts:
    """`count` hosts a, b, … around a bridge. `folder` is shared by them."""

    def __init__(self, test, count, rate=None, delay_ms=0):
        self.folder, self.names = test.folder, [chr(ord("a") + i) for i in range(count)]
        self.mark = f"pw{os.getpid()}"
        self.first = {}  # the first process of each host; when it ends, all others of the host end
        self._test = test
        self._write_ssh()
        self._space("net")
        self._in("net", "ip", "link", "add", "bridge", "type", "bridge")
        self._in("net", "ip", "link", "set", "bridge", "up")
        for name in self.names:
            self._space(name)
            command("ip", "link", "add", "eth0", "netns", self._name(name), "type", "veth", "peer", "name", name, "netns", self._name("net"))
            self._in(name, "ip", "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                self._in(name, "ip", "link", "set", device, "up")
            self._in("net", "ip", "link", "set", "dev", name, "master", "bridge", "up")
            if rate:
                self._in(name, *self._queue("eth0", rate, delay_ms))
                self._in("net", *self._queue(name, rate))
        for name in self.names:
            self._begin(name)
        for name in self.names:
            self._wait_for(name)

    @staticmethod
    def _queue(device, rate, delay_ms=0):
        words = ["tc", "qdisc", "add", "dev", device, "root"]
        if delay_ms and not delays():
            skips.left_out("delays between hosts", "netem")
        elif delay_ms:
            return [*words, "netem", "rate", rate, "limit", "100000", "delay", f"{delay_ms}ms"]
        return [*words, "tbf", "rate", rate, "burst", "256k", "latency", "400ms"]

    def address(self, name):
        return f"{NET}.{self.names.index(name) + 1}"

    def _name(self, space):
        return f"{self.mark}-{space}"

    def _space(self, space):
        command("ip", "netns", "add", self._name(space))
        self._test.addCleanup(command, "ip", "netns", "del", self._name(space))

    def _in(self, space, *words):
        command("ip", "netns", "exec", self._name(space), *words)

    def _write_ssh(self):
        folder = self.folder / "ssh"
        folder.mkdir(mode=0o700)
        self.folder.chmod(0o755)
        command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key")
        shutil.copy(folder / "key.pub", folder / "authorized")
        for name in self.names:
            (folder / f"{name}.conf").write_text(
                f"HostKey {folder}/key\nAuthorizedKeysFile {folder}/authorized\nPidFile none\nUsePAM no\nStrictModes no\n"
                "PermitRootLogin prohibit-password\nPermitUserEnvironment no\nAcceptEnv OMP_NUM_THREADS\n"
            )
        (folder / "config").write_text(
            f"Host *\nIdentityFile {folder}/key\nIdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
            "LogLevel ERROR\nSendEnv OMP_NUM_THREADS\nConnectTimeout 5\n"
        )
        lines = [f"{self.address(name)} {name}\n" for name in self.names]
        (self.folder / "etc-hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))

    def _begin(self, name):
        log = open(self.folder / "ssh" / f"{name}.log", "w")
        self._test.addCleanup(log.close)
        host = subprocess.Popen(
            ["ip", "netns", "exec", self._name(name), "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-euc", BEGIN, "sh", name, str(self.folder), sshd()],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        self.first[name] = host
        self._test.addCleanup(host.wait)
        self._test.addCleanup(host.kill)

    def _wait_for(self, name):
        for _ in range(100):
            if subprocess.run(self.ssh(name, "true"), capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"host {name} does not answer: {(self.folder / 'ssh' / f'{name}.log').read_text()}")

    def ssh(self, name, script):
        """The words that run a script on a host, as somebody who has logged in on the first one."""
        words = ["ssh", "-F", str(self.folder / "ssh/config"), name, f"cd {self.folder} && {script}"]
        return ["ip", "netns", "exec", self._name(self.names[0]), "unshare", "--mount", "sh", "-euc",
                f'mount --bind {self.folder}/etc-hosts /etc/hosts; exec "$@"', "sh", *words]  # fmt: skip

    def mpi_variables(self):
        """The line of a script that lets mpirun reach the hosts, as root and with more processes than cores."""
        settings = {
            "plm_rsh_agent": f"'ssh -F {self.folder}/ssh/config'", "btl_tcp_if_include": f"{NET}.0/24",
            "oob_tcp_if_include": f"{NET}.0/24", "hwloc_base_binding_policy": "none", "orte_execute_quiet": "1",
        }  # fmt: skip
        return f"export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {' '.join(f'OMPI_MCA_{key}={value}' for key, value in settings.items())}\n"

    def mpirun(self, *program, hosts=None):
        """The script that starts a process on each host."""
        return self.mpi_variables() + " ".join(["mpirun --host", ",".join(hosts or self.names), *map(str, program)])

    def processes(self, name):
        """This machine's numbers of a host's processes, without its first."""
        found, new = [], [self.first[name].pid]
        while new:
            children = []
            for pid in new:
                try:
                    for task in Path(f"/proc/{pid}/task").iterdir():
                        children += map(int, (task / "children").read_text().split())
                except OSError:
                    pass
            found += children
            new = children
        return found

    def freeze(self, name):
        for pid in self.processes(name):
            os.kill(pid, signal.SIGSTOP)

    def kill(self, name):
        """The power fails."""
        self.cut(name)
        self.first[name].kill()

    def cut(self, name):
        self._in(name, "ip", "link", "set", "eth0", "down")

    def join(self, name):
        self._in(name, "ip", "link", "set", "eth0", "up")
