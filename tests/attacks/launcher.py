# SPDX-License-Identifier: Apache-2.0
"""Runs commands for attack.py and tells what they cost: one JSON object a line in, one out.

The kernel counts the memory of a process that starts another one as the other's, too; so what starts
the program must be small, which attack.py with its hostile files is not.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time


def run(order):
    with open(order["out"], "wb") as out, open(order["err"], "wb") as err:
        process = subprocess.Popen(
            order["command"], cwd=order["folder"], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            env=os.environ | order["environment"],
        )
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (60, 60))
    resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    ended, hung = threading.Event(), threading.Event()

    def watch():
        if not ended.wait(order["hangs_after"]):
            hung.set()
            process.kill()

    watcher = threading.Thread(target=watch)
    watcher.start()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its number stays its own until then
    ended.set()
    watcher.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "code": None if hung.is_set() else process.returncode,
        "seconds": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss * 1024,
    }


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
