# SPDX-License-Identifier: Apache-2.0
"""`simulate`: a schedule in virtual time, from a table of costs or a profile."""

import json
import os
import re
import resource
import subprocess
import xml.etree.ElementTree

import harness
from harness import BINARY, DATA, EXPERIMENT, FINE, MLP, SOURCE_DIR, changed

GPIPE = changed(
    MLP,
    {
        "pipeline.stages": 4,
        "pipeline.microbatches": 8,
        "model.widths": [64, 32, 32, 32, 10],
        "scheme": {"name": "gpipe"},
    },
)
COSTS = {"forward": 1, "activation_bytes": 1000, "parameter_bytes": 500, "input_bytes": 100}


class Simulate(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.write("x.yaml", GPIPE)
        self.write("costs.yaml", COSTS)

    def simulated(self, *arguments):
        """The figures of a simulation with the table of costs."""
        self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--json", "s.json", *arguments)
        return json.loads((self.folder / "s.json").read_text())

    def test_gpipe_has_its_textbook_bubble(self):
        done = self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--minibatches", "1")
        self.assertRegex(done.out, r"makespan +33\.00 s")
        self.assertRegex(done.out, r"bubble +27\.3 %")
        figures = self.simulated("--minibatches", "1")
        self.assertEqual(figures["makespan"], 33)
        self.assertEqual(figures["bubble"], 3 / 11)  # whole seconds, divided once
        self.assertEqual([worker["peak"]["activations"] for worker in figures["workers"]], [8000] * 4)
        self.assertEqual(len(figures["links"]), 6)

    def test_throughput_is_samples_of_the_steady_part(self):
        self.assertEqual(self.simulated()["samples_per_second"], 16 / 33)

    def test_a_drawing_has_the_transfers_where_they_are_slow_enough_to_be_seen(self):
        for bandwidth, there in ((1e-6, True), (1e6, False)):  # of 100 bytes: 0.1 s, and 0.1 ps
            self.write("h.yaml", {"devices": {"count": 4}, "within": {"bandwidth_gb_per_s": bandwidth}})
            flags = ("--hardware", "h.yaml", "--minibatches", "1", "--svg", "x.svg")
            self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", *flags)
            drawn = (self.folder / "x.svg").read_text()
            for words in ("sent to a later worker", "sent to an earlier worker", "100 B to worker 1, 1.00 s to 1.10 s"):
                self.assertEqual(words in drawn, there, words)

    def test_presets_of_hardware_run(self):
        for file in sorted((SOURCE_DIR / "experiments/hardware").glob("*.yaml")):
            small = ["--set", "pipeline.stages=2"] if file.stem == "laptop" else []
            self.assertGreater(self.simulated("--hardware", file, *small)["makespan"], 0, file)

    def test_passes_too_short_to_be_believed_are_remarked_on(self):
        device = {"count": 4, "teraflops": 15.7, "memory_gb_per_s": 900}
        self.write("fast.yaml", {"devices": device})
        note = "note: passes take less than 50 µs on average"
        self.assertIn(note, self.pipewright("simulate", "x.yaml", "--hardware", "fast.yaml").out)
        seconds = self.pipewright("simulate", "x.yaml", "--hardware", "fast.yaml", "--costs", "costs.yaml")
        self.assertNotIn(note, seconds.out)
        self.write("launching.yaml", {"devices": {**device, "launch_us": 5}})
        self.assertNotIn(note, self.pipewright("simulate", "x.yaml", "--hardware", "launching.yaml").out)

    def test_operators_that_are_launched_take_their_time(self):
        device = {"count": 4, "teraflops": 15.7, "memory_gb_per_s": 900}
        self.write("free.yaml", {"devices": device})
        self.write("launching.yaml", {"devices": {**device, "launch_us": 5}})
        self.write("one.yaml", changed(GPIPE, {"pipeline.microbatches": 1}))
        run = ["simulate", "one.yaml", "--minibatches", "1", "--json", "s.json", "--hardware"]
        self.pipewright(*run, "free.yaml")
        self.assertLess(json.loads((self.folder / "s.json").read_text())["makespan"], 5e-6)
        self.pipewright(*run, "launching.yaml")
        # Each of four layers starts a product with a bias and, but for the last, an activation; a backward starts
        # twice as many, except that the first makes no gradient of the data. Stage 0 updates last.
        passes = ((2 + 2 + 2 + 1) + 2 * (2 + 2 + 1) + 2) * 5e-6
        update = self.update_kernels() * 5e-6
        self.assertAlmostEqual(json.loads((self.folder / "s.json").read_text())["makespan"], passes + update)

    def update_kernels(self):
        """What a profile counts for the first layer's update: the same operators for its weight and its bias."""
        self.pipewright("profile", "one.yaml", "--device", "meta", "--out", "counted.yaml")
        count = int(re.search("update_kernels: ([0-9]+)", (self.folder / "counted.yaml").read_text())[1])
        self.assertEqual(count % 2, 0)
        self.assertGreaterEqual(count, 2 * 3)  # at least lr · gradient, the difference and a copy
        return count

    def said(self, *arguments):
        """The first line that is printed, and what --json says of the same."""
        done = self.pipewright("simulate", "x.yaml", "--json", "s.json", *arguments)
        first = done.out.splitlines()[0]
        self.assertEqual(first, "times: " + json.loads((self.folder / "s.json").read_text())["costs_from"])
        self.assertEqual(done.out.count("times: "), 1)
        return first

    def test_a_profile_is_taken_if_it_is_named(self):
        done = self.pipewright("simulate", "x.yaml", code=EXPERIMENT)
        self.assertIn("`pipewright profile x.yaml` measures it", done.err)
        self.assertEqual(len(done.lines), 1, done.err)
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        self.pipewright("simulate", "x.yaml", code=EXPERIMENT)  # profile.yaml is there, but nobody named it
        named = ["--profile-file", "profile.yaml"]
        self.assertIn("samples/s", self.pipewright("simulate", "x.yaml", *named).out)
        self.assertIn(
            "this profile does not fit: it is of micro-batches of 2 samples, this experiment has 4",
            self.pipewright("simulate", "x.yaml", *named, "--set", "pipeline.microbatches=4", code=EXPERIMENT).err,
        )

    def test_the_first_line_says_where_costs_come_from(self):
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        v100 = ["--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml"]
        profile = (self.folder / "profile.yaml").read_text()
        day = re.search("(?m)^measured: (.*)$", profile)[1].strip('"')
        model = re.search("(?m)^device_model: (.*)$", profile)[1].strip('"')
        self.assertRegex(day, r"^20\d\d-\d\d-\d\d$")
        self.assertEqual(self.said("--costs", "costs.yaml"), "times: costs.yaml, a table")
        self.assertEqual(
            self.said("--profile-file", "profile.yaml"),
            f"times: profile.yaml, measured on cpu ({model}), this machine, on {day}",
        )
        self.assertEqual(
            self.said(*v100),
            "times: operations and bytes of the model at the rates of DGX-1, 8 x V100: float32 at 15.7 × 0.5 TFLOPS",
        )
        self.assertEqual(
            self.said(*v100, "--profile-file", "profile.yaml", "--other-device"),
            f"times: profile.yaml, measured on cpu ({model}), this machine, on {day}; "
            "taken for Tesla V100-SXM2 at speed 1",
        )
        profile = re.sub("(?m)^(device_model|measured): .*\n", "", profile)  # as 0.5 wrote it
        self.write("profile.yaml", re.sub("(?m)^machine: .*$", "machine: elsewhere", profile))
        self.assertIn("measured on cpu, on the machine elsewhere", self.said("--profile-file", "profile.yaml"))
        self.write("profile.yaml", re.sub("(?m)^machine: .*\n", "", profile))  # as 0.3 wrote it
        self.assertEqual(self.said("--profile-file", "profile.yaml"), "times: profile.yaml, measured on cpu")

    def test_a_profile_of_another_device_is_refused_unless_it_is_wanted(self):
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        profile = re.sub("(?m)^device_model: .*$", 'device_model: "Example 9000"', (self.folder / "profile.yaml").read_text())
        self.write("profile.yaml", profile)
        devices = {"count": 4, "speed": 4, "name": "Tesla V100"}
        self.write("v100.yaml", {"name": "four V100", "devices": devices})
        named = ["simulate", "x.yaml", "--profile-file", "profile.yaml", "--hardware"]
        done = self.pipewright(*named, "v100.yaml", code=EXPERIMENT)
        self.assertEqual(
            done.err,
            "profile.yaml: this profile was measured on cpu (Example 9000), and the devices of four V100 are Tesla "
            "V100; measure there, or give --other-device to take its times all the same, at speed 4 (devices.speed)\n",
        )
        self.assertIn("taken for Tesla V100 at speed 4", self.pipewright(*named, "v100.yaml", "--other-device").out)
        self.write("same.yaml", {"devices": {**devices, "name": "example-9000 (2 cores)"}})
        self.assertIn("measured on cpu (Example 9000)", self.pipewright(*named, "same.yaml").out)

    def test_a_profile_in_the_folder_changes_nothing(self):
        v100 = ["--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml"]
        before = self.pipewright("simulate", "x.yaml", *v100).out
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        self.assertEqual(self.pipewright("simulate", "x.yaml", *v100).out, before)

    def test_what_decides_the_costs_decides_a_cut_by_time_too(self):
        by_time = ["--set", "pipeline.balance=time"]
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        self.assertIn("4 stages", self.pipewright("simulate", "x.yaml", *by_time, "--profile-file", "profile.yaml").out)
        v100 = ["--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml"]
        self.assertIn("4 stages", self.pipewright("simulate", "x.yaml", *by_time, *v100).out)

    def test_tables_and_pictures_say_where_modelled_times_come_from(self):
        v100 = ["--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml"]
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        done = self.pipewright("table", "x.yaml", "--metric", "modelled_bubble", *v100)
        self.assertEqual(
            done.lines,
            [
                "modelled times: operations and bytes of the model at the rates of DGX-1, 8 x V100: float32 at "
                "15.7 × 0.5 TFLOPS"
            ],
        )

    def test_every_format_has_its_rate_or_is_said_to_have_none(self):
        v100 = ["--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml"]
        float16 = ["--set", "train.precision=float16"]
        self.assertIn(": float16 at 125 × 0.5 TFLOPS", self.said(*v100, *float16))
        without = self.said(*v100, *float16, "--set", "hardware.devices.float16_teraflops=0")
        self.assertIn("float16 at 15.7 × 0.5 TFLOPS (no rate for float16: float32's is taken)", without)
        done = self.pipewright("simulate", "x.yaml", *v100, "--set", "train.precision=bfloat16", code=EXPERIMENT)
        self.assertEqual(
            done.err,
            "--set train.precision: train.precision is bfloat16, in which the devices of DGX-1, 8 x V100 (Tesla V100-SXM2) do not "
            "compute: devices.bfloat16_teraflops is none; expected float32 or float16\n",
        )

    def test_the_first_layer_makes_no_gradient_of_the_data(self):
        # One layer of 512 × 512 and 64 samples: 2 · 64 · 512² operations at 0.5 TFLOPS take 67.1 µs; a backward takes
        # no more, because the data need no gradient. Behind another such layer it takes twice as much.
        self.write("slow.yaml", {"devices": {"count": 2, "teraflops": 1, "memory_gb_per_s": 1e6, "efficiency": 0.5}})
        one = {"model.widths": [512, 512], "pipeline.stages": 1, "pipeline.microbatches": 1, "loader.batch_size": 64}
        seconds = 2 * 64 * 512**2 / 0.5e12
        for widths, stages, forwards in [([512] * 2, 1, 2), ([512] * 3, 1, 5), ([512] * 3, 2, 5)]:
            self.write("x.yaml", changed(GPIPE, {**one, "model.widths": widths, "pipeline.stages": stages}))
            self.pipewright("simulate", "x.yaml", "--hardware", "slow.yaml", "--minibatches", "1", "--json", "s.json")
            figures = json.loads((self.folder / "s.json").read_text())
            self.assertAlmostEqual(figures["makespan"], forwards * seconds, delta=1e-3 * seconds)

    def test_a_profile_without_times_is_refused(self):
        self.pipewright("profile", "x.yaml", "--device", "meta", "--out", "counted.yaml")
        done = self.pipewright("simulate", "x.yaml", "--profile-file", "counted.yaml", code=EXPERIMENT)
        self.assertRegex(done.err, r"^counted.yaml: this profile was counted on the device meta and has no times")

    def test_drawings(self):
        self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--svg", "s.svg", "--trace", "t.json")
        xml.etree.ElementTree.parse(self.folder / "s.svg")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        self.assertEqual(max(event["dur"] for event in events if event.get("ph") == "X"), 2000000)

    def test_the_bubble_has_its_causes_and_the_last_line_an_answer(self):
        self.write("costs.yaml", {"forward": [1, 3, 1, 1], "parameter_bytes": 500})
        done = self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--json", "s.json")
        figures = json.loads((self.folder / "s.json").read_text())
        parts = figures["bubble_parts"]
        self.assertAlmostEqual(sum(parts.values()), figures["bubble"])
        # Stages that all took the mean, 1.5 s forwards and 3 s backwards, would idle for three micro-batches each mini-batch.
        self.assertAlmostEqual(parts["schedule"], 3 * 4.5 * figures["minibatches"] / figures["makespan"])
        self.assertRegex(done.out, r"bubble +\d\d\.\d %.*: \d+\.\d % by the schedule itself, \d+\.\d % by uneven stages")
        pace = f"{figures['samples_per_second']:.2f}"
        self.assertRegex(done.out.splitlines()[-2], rf"^In short: {pace} samples/s; workers compute \d\d % of their "
                                                    r"time, .* worker \d needs most memory, 1\.5 KiB\.$")

    def test_a_cut_by_time_is_advised_where_it_helps(self):
        uneven = changed(GPIPE, {"model.widths": [64, 2048, 16, 16, 16, 16, 16, 16, 10], "pipeline.stages": 2})
        a100 = ["--hardware", "dgx-a100", "--set", "hardware.devices.launch_us=50"]
        self.write("x.yaml", uneven)
        done = self.pipewright("simulate", "x.yaml", *a100)
        promised = re.search(r"note: .*pipeline\.balance: time, with which it would be (\S+) samples/s", done.out)
        self.assertTrue(promised, done.out)
        by_time = self.pipewright("simulate", "x.yaml", *a100, "--set", "pipeline.balance=time").out
        self.assertIn(f"throughput  {promised[1]} samples/s", by_time)
        self.assertNotIn("pipeline.balance", by_time)
        self.assertNotIn("pipeline.balance", self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml").out)

    def test_hardware_that_is_shipped_has_names(self):
        listed = self.pipewright("list", "hardware").out
        for file in (SOURCE_DIR / "experiments/hardware").glob("*.yaml"):
            self.assertRegex(listed, rf"(?m)^  {file.stem} +\S")
        by_name = self.pipewright("simulate", "x.yaml", "--hardware", "dgx1-v100").out
        by_file = self.pipewright("simulate", "x.yaml", "--hardware", SOURCE_DIR / "experiments/hardware/dgx1-v100.yaml").out
        self.assertEqual(by_name, by_file)
        table = ["table", "x.yaml", "--metric", "modelled_bubble", "--hardware"]
        self.assertIn("modelled times", self.pipewright(*table, "dgx1-v100").err)
        for command in (["simulate", "x.yaml", "--hardware"], table):
            wrong = self.pipewright(*command, "dgx1-v10", code=EXPERIMENT)
            self.assertIn("neither such a file nor hardware of that name; did you mean 'dgx1-v100'?", wrong.err)
        self.write("dgx1-v100", "devices: {count: 3}\n")  # a file of that name goes first
        self.assertIn("has 3 devices", self.pipewright("simulate", "x.yaml", "--hardware", "dgx1-v100", "--costs", "costs.yaml", code=EXPERIMENT).err)

    def test_what_takes_for_ever_is_refused_and_never_the_best(self):
        slow = "hardware.within.bandwidth_gb_per_s"
        done = self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--set", f"{slow}=5e-324", code=EXPERIMENT)
        self.assertEqual(done.err, f"--set: {slow} is 5e-324; expected 0, or at least 1e-09\n")
        sweep = ["--set", "hardware.devices.count=4", "--set", f"sweep={{grid: {{{slow}: [5e-324, 1]}}}}", "--csv", "s.csv"]
        self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--sweep", *sweep)
        csv = (self.folder / "s.csv").read_text()
        self.assertNotIn("nan", csv)
        self.assertNotIn("inf", csv.replace("info", ""))

    def test_a_simulation_takes_the_memory_that_is_expected_of_it(self):
        # The estimate is what a refusal says; the truth is what the same simulation takes more than a small one.
        limit = 3 << 30
        for more, minibatches in [([], 300000), (["--json", "s.json"], 30000)]:
            named = ["simulate", "x.yaml", "--costs", "costs.yaml", *more, "--minibatches"]
            refused = self.limited(limit, *named, str(minibatches))
            said = re.search(r"mini-batches of 8 micro-batches takes about (\d+\.\d+) GiB for .* actions.*ulimit -v allows "
                             r"3\.00 GiB; choose fewer with --minibatches$", refused.stderr)
            self.assertTrue(said, refused.stderr)
            self.assertEqual(refused.returncode, DATA)
            small = minibatches // 20
            measured = self.peak(*named, str(minibatches // 10)) - self.peak(*named, str(small))
            expected = float(said[1]) * 2**30 * (0.1 - 0.05)
            self.assertLess(measured, expected)
            self.assertGreater(measured, 0.6 * expected)

    def limited(self, most, *arguments):
        return subprocess.run(
            [BINARY, *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        )

    def peak(self, *arguments):
        """The most bytes that the program held."""
        with open(os.devnull, "w") as nowhere:
            process = subprocess.Popen([BINARY, *map(str, arguments)], cwd=self.folder, stdout=nowhere)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        self.assertEqual(status, FINE)
        return 1024 * usage.ru_maxrss

    def test_a_large_shape_is_simulated_with_as_many_mini_batches_as_show_it(self):
        wide = {"model.widths": [64] + [8] * 199 + [10], "pipeline": {"stages": 200, "microbatches": 512}}
        self.write("x.yaml", changed(GPIPE, {**wide, "loader.batch_size": 512, "loader.limit_train": 512}))
        done = self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml")
        count = int(re.search(r"(\d+) mini-batches of 512", done.out)[1])
        self.assertLess(200 * 512 * 2 * count, 5e6)
        self.assertGreater(count, 5)

    def test_a_device_that_is_too_small_is_named(self):
        self.write("small.yaml", {"devices": {"count": 4, "memory_gib": 1e-6}})
        done = self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--hardware", "small.yaml")
        self.assertRegex(done.out, r"note: worker 0 needs \S+ KiB, its device has 1.0 KiB; most of it is activations")
        self.assertIn("note: 3 more workers need more than their devices have", done.out)

    def test_all_that_is_wrong_with_a_file_is_said(self):
        self.write("bad.yaml", {"devices": {"count": 2, "memory": 3}, "hots": 1})
        done = self.pipewright(
            "simulate", "x.yaml", "--costs", "costs.yaml", "--hardware", "bad.yaml", code=EXPERIMENT
        )
        self.assertEqual(len(done.lines), 2, done.err)
        self.assertIn("did you mean 'hosts'?", done.err)
        self.write("bad.yaml", {"devices": {"count": 2}})
        done = self.pipewright(
            "simulate", "x.yaml", "--costs", "costs.yaml", "--hardware", "bad.yaml", code=EXPERIMENT
        )
        self.assertEqual(
            done.err,
            "the hardware 'unnamed' has 2 devices, but the schedule needs one for each of 4 workers; "
            "raise hosts or devices.count\n",
        )


if __name__ == "__main__":
    harness.main()
