# SPDX-License-Identifier: Apache-2.0
"""Measured time: what `run` says with output.trace, what trace.json holds, and what `timeline` makes of it."""

import json
import re
import shutil
import xml.etree.ElementTree

import harness
from harness import DATA, EXPERIMENT, MLP, changed

TRACED = changed(MLP, {"output.trace": True, "pipeline.execution": "threads"})
TIME = r"\d+\.\d+ (µs|ms|s)"
SHARE = r"\d+\.\d %"
WORKER = rf"(?m)^ {{w}} +{SHARE} +{SHARE} +{SHARE} +{SHARE} +(nobody|worker \d+, {TIME})"


def events_of(run, kind):
    return [event for event in json.loads(run.bytes("trace.json"))["traceEvents"] if event.get("cat") == kind]


class Timeline(harness.EndToEnd):
    def traced(self, changes=None):
        self.write("x.yaml", changed(TRACED, changes or {}))
        return self.pipewright("run", "x.yaml", "--out", "x"), harness.Run(self.folder / "x")

    def test_a_traced_run_says_what_its_workers_did(self):
        done, _ = self.traced()
        self.assertRegex(done.err, rf"(?m)^measured over 6 mini-batches: {TIME}, bubble {SHARE}$")
        for worker in (0, 1):
            self.assertRegex(done.err, WORKER.replace("{w}", str(worker)))
        self.assertNotIn("codecs", done.err)
        self.assertNotIn("measured over", self.pipewright("run", "x.yaml", "--out", "quiet", "--quiet").err)

    def test_a_run_and_its_timeline_say_the_same(self):
        run, _ = self.traced()
        lines = [re.search(r"(?m)^measured over .*: ([\d.]+) ms, bubble ([\d.]+) %$", text).groups()
                 for text in (run.err, self.pipewright("timeline", "x").out)]
        for one, other, last_digit in zip(*lines, (0.01, 0.1)):
            self.assertLessEqual(abs(float(one) - float(other)), 1.1 * last_digit)  # a trace has whole nanoseconds

    def test_codecs_have_a_column(self):
        done, run = self.traced({"pipeline.compression": {"name": "fp16"}})
        self.assertRegex(done.err, r"(?m)^ worker +busy +sends +waits +other +longest for +codecs$")
        self.assertGreater(len(events_of(run, "codec")), 0)

    def test_waits_are_slices_between_actions(self):
        _, run = self.traced()
        waits = events_of(run, "wait")
        self.assertGreater(len(waits), 0)
        for wait in waits:
            self.assertEqual(wait["name"], f"waits for worker {1 - wait['tid']}")
        for worker in (0, 1):
            kinds = ("forward", "backward", "update", "wait")
            slices = [e for kind in kinds for e in events_of(run, kind) if e["tid"] == worker]
            self.assertEqual(len([e for e in slices if e["cat"] != "wait"]), 18)
            slices.sort(key=lambda e: e["ts"])
            for one, next_one in zip(slices, slices[1:]):
                self.assertLessEqual(one["ts"] + one.get("dur", 0), next_one["ts"] + 0.002)  # each rounded to 1 ns

    def test_timeline_draws_and_blames(self):
        self.traced()
        done = self.pipewright("timeline", "x", "--longest", "3", "--json", "t.json")
        self.assertRegex(done.out, rf"^planned  {TIME}; idle \d+ %\nmeasured over 6 mini-batches: {TIME}, bubble {SHARE}\n")
        self.assertRegex(done.out, rf"(?m)^idle: ((handover|order|straggler|codec|other) {TIME}(, )?)+$")
        rows = re.findall(rf"(?m)^ +{TIME} +{TIME}  [01] .*(?:handover|order|straggler|codec) ", done.out)
        self.assertEqual(len(rows), 3, done.out)
        picture = (self.folder / "x" / "timeline.svg").read_text()
        xml.etree.ElementTree.fromstring(picture)
        figures = json.loads((self.folder / "t.json").read_text())
        waiting = sum(worker["waiting"] for worker in figures["workers"])
        self.assertAlmostEqual(figures["bubble"], waiting / 2 / figures["makespan"])
        self.assertEqual(picture.count("<title>idle for "), len(figures["idle"]))
        for idle in figures["idle"]:
            parts = sum(idle[blame] for blame in ("handover", "straggler", "order", "codec", "other"))
            self.assertAlmostEqual(parts, idle["end"] - idle["begin"])
        self.pipewright("run", "x.yaml", "--out", "x", "--overwrite")
        self.assertFalse((self.folder / "x" / "timeline.svg").exists(), "it was of the run before")

    def test_workers_that_share_cores_wait_for_the_system_too(self):
        self.traced()
        record = json.loads((self.folder / "x/run.json").read_text())
        for cores, shown in [(1, True), (2, False), (64, False)]:
            self.write("x/run.json", json.dumps({**record, "cores": cores}))
            done = self.pipewright("timeline", "x")
            self.assertEqual("2 workers share 1 core: waits are the scheduler's, too" in done.out, shown, done.out)
            self.assertNotIn("link", done.out)
        (self.folder / "x/run.json").unlink()
        self.pipewright("timeline", "x")

    def test_devices_other_than_a_processor_have_links(self):
        self.traced()
        experiment = (self.folder / "x/experiment.yaml").read_text()
        self.write("x/experiment.yaml", re.sub("(?m)^  device: cpu$", "  device: [cuda, cuda]", experiment))
        done = self.pipewright("timeline", "x", "--json", "t.json")
        self.assertNotIn("handover", done.out)
        self.assertIn("link", json.loads((self.folder / "t.json").read_text())["idle"][0])

    def test_workers_that_take_turns_have_no_bubble(self):
        done, run = self.traced({"pipeline.execution": "serial"})
        self.assertRegex(done.err, r"execution: serial lets the workers take turns, so that no bubble can be measured")
        self.assertEqual(events_of(run, "wait"), [])
        timeline = self.pipewright("timeline", "x", "--svg", "t.svg")
        self.assertNotIn("to blame", timeline.out)
        xml.etree.ElementTree.parse(self.folder / "t.svg")

    def test_what_was_not_measured_is_refused(self):
        self.write("x.yaml", MLP)
        self.pipewright("run", "x.yaml", "--out", "x")
        done = self.pipewright("timeline", "x", code=DATA)
        self.assert_errors(done, r"^x/trace.json: is not there; output.trace: true makes `pipewright run` write one$")
        self.pipewright("schedule", "x.yaml", "--trace", "planned.json")
        shutil.copy(self.folder / "planned.json", self.folder / "x" / "trace.json")
        done = self.pipewright("timeline", "x", code=DATA)
        self.assert_errors(done, r"^x/trace.json: is no whole trace of a run \(it was not measured, or by another version\); ")
        self.assert_errors(self.pipewright("timeline", "x", "--longest", "0", code=EXPERIMENT), r"^--longest is 0; expected")


if __name__ == "__main__":
    harness.main()
