# SPDX-License-Identifier: Apache-2.0
"""What a terminal gets: a status line that fits, and colours only where they are wanted."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import harness
from harness import FINE, INTERRUPTED, MLP, changed

COLUMNS = 40
STATUS = re.compile(r"\r\x1b\[K([^\r\n]+)(?=\r\x1b)")  # drawn, and then drawn anew or removed


class Terminal(harness.EndToEnd):
    def on_terminal(self, *arguments, environment=None, until=None):
        """All that the program writes on a terminal, and its exit code. Once that matches `until`, Ctrl-C."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        settings = os.environ | {"TERM": "xterm", "NO_COLOR": ""} | (environment or {})
        process = subprocess.Popen(
            [harness.BINARY, *arguments],
            cwd=self.folder,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(theirs)
        seen = b""
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:  # the program has closed it
                break
            if not read:
                break
            seen += read
            if until and re.search(until, seen.decode(errors="replace")):
                process.send_signal(signal.SIGINT)
                until = None
        os.close(ours)
        return process.wait(timeout=harness.SECONDS_LIMIT), seen.decode()

    def test_the_progress_bar_is_cut_to_the_terminal(self):
        name = "a run whose name alone is longer than the terminal has columns"
        self.write("x.yaml", changed(MLP, {"name": name, "train.epochs": 100_000}))
        code, seen = self.on_terminal("run", "x.yaml", "--out", "out", until="a run whose name alone")
        self.assertEqual(code, INTERRUPTED, seen)
        bars = STATUS.findall(seen)
        self.assertTrue(bars, seen)
        for bar in bars:
            self.assertLess(len(bar), COLUMNS)
            self.assertTrue(bar.endswith("…"), bar)

    def test_colours_are_for_terminals_that_want_them(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "gpipe"}}))
        code, seen = self.on_terminal("schedule", "x.yaml")
        self.assertEqual(code, FINE, seen)
        self.assertIn("\x1b[34m", seen, "forward passes are blue")
        plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
        self.assertNotIn("\x1b", plain)
        for setting in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual(self.on_terminal("schedule", "x.yaml", environment=setting), (FINE, plain))
        self.assertEqual(self.pipewright("schedule", "x.yaml").out.count("\x1b"), 0)

    def test_a_schedule_is_folded_at_the_width_of_the_terminal(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 4}))
        code, seen = self.on_terminal("schedule", "x.yaml", environment={"NO_COLOR": "1"})
        self.assertEqual(code, FINE, seen)
        grid = [line for line in seen.splitlines() if line.startswith(("slot ", "worker "))]
        self.assertTrue(grid, seen)
        self.assertLessEqual(max(map(len, grid)), COLUMNS)
        piped = self.pipewright("schedule", "x.yaml").out.splitlines()
        self.assertLess(sum(line.startswith("worker 0") for line in piped), sum(line.startswith("worker 0") for line in grid))

    def test_where_no_escape_sequence_may_go_there_is_no_status_line(self):
        self.write("x.yaml", changed(MLP, {"train.epochs": 3}))
        sweep = {"grid": {"train.seed": [1, 2]}}
        self.write("s.yaml", changed(MLP, {"sweep": sweep}))
        for setting in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            for command in (
                ("run", "x.yaml", "--out", "out", "--overwrite"),
                ("sweep", "s.yaml", "--out", "sw", "--overwrite"),
                ("profile", "x.yaml", "--repetitions", "1", "--out", "p.yaml"),
            ):
                code, seen = self.on_terminal(*command, environment=setting)
                self.assertEqual(code, FINE, seen)
                self.assertNotIn("\x1b", seen)
                self.assertEqual(seen.count("\r"), seen.count("\r\n"), "no line is drawn anew")


if __name__ == "__main__":
    harness.main()
