# SPDX-License-Identifier: Apache-2.0
"""Scales of time and curvature, other words for the same machine, and clocks that begin elsewhere.

Rates are changed by powers of two, which round nothing: what follows is compared to the bit."""

import json

import invariance
from invariance import Invariance, changed, csv_rows, tolerances

SCHEMES = ("gpipe", "pipedream", "spectrain", "zb_h1", "pipedream_2bw", "xpipe", "interlocking")
MODEL = {
    "model": {"name": "mlp", "widths": [64, 48, 32, 24, 10]},
    "pipeline": {"stages": 4, "microbatches": 4, "replicas": 2},
    "loader": {"batch_size": 32},
    "optimizer": {"name": "adam"},
}
# Every key of a machine that is a time or a rate.
MACHINE = {
    "hosts": 2,
    "devices": {"count": 4, "teraflops": 1, "memory_gb_per_s": 64, "efficiency": 0.5, "launch_us": 2, "memory_gib": 16},
    "within": {"latency_us": 4, "bandwidth_gb_per_s": 2, "shared": True},
    "between": {"latency_us": 16, "bandwidth_gb_per_s": 0.5},
    "links": [{"from": 0, "to": 1, "latency_us": 1, "bandwidth_gb_per_s": 8}],
    "buses": [{"name": "b", "devices": [0, 1, 2], "bandwidth_gb_per_s": 4}],
    "host": {"latency_us": 2, "bandwidth_gb_per_s": 1},
    "codecs": [{"name": "uniform", "encode_gb_per_s": 1, "decode_gb_per_s": 2}],
    "copies": {"engines": 1},
}
CODED = changed(MODEL, {"pipeline.compression": {"name": "uniform", "bits": 8}})
RATES = ("teraflops", "memory_gb_per_s", "bandwidth_gb_per_s", "encode_gb_per_s", "decode_gb_per_s")
TIMES = ("latency_us", "launch_us")


def faster(value, factor):
    """The machine with all rates times the factor, and all times divided by it."""
    if isinstance(value, list):
        return [faster(each, factor) for each in value]
    if not isinstance(value, dict):
        return value
    changed_by = {name: factor for name in RATES} | {name: 1 / factor for name in TIMES}
    return {
        key: each * changed_by[key] if key in changed_by else faster(each, factor) for key, each in value.items()
    }


def seconds_scaled(value, factor):
    """Figures of `simulate --json` with all seconds divided by the factor and all rates times it."""
    seconds = {"makespan", "seconds_per_minibatch", "computing", "communicating", "idle", "busy", "waiting", "peak_at"}
    if isinstance(value, list):
        return [seconds_scaled(each, factor) for each in value]
    if not isinstance(value, dict):
        return value
    scaled = {}
    for key, each in value.items():
        if key in seconds:
            scaled[key] = each / factor
        elif key == "samples_per_second":
            scaled[key] = each * factor
        elif key == "memory":
            scaled[key] = [[time / factor, use] for time, use in each]
        else:
            scaled[key] = seconds_scaled(each, factor)
    return scaled


class Time(Invariance):
    def figures(self, machine, scheme, *flags, base=CODED):
        self.write("x.yaml", changed(base, {"scheme": {"name": scheme}}))
        self.write("h.yaml", machine)
        self.pipewright("simulate", "x.yaml", "--hardware", "h.yaml", "--json", "x.json", *flags)
        return json.loads((self.folder / "x.json").read_text())

    def test_of_machines_that_are_four_times_as_fast_is_a_quarter(self):
        points = {}
        for scheme in SCHEMES:
            for name, machine in (("plain", MACHINE), ("fast", faster(MACHINE, 4))):
                points[f"{scheme} {name}"] = {"scheme": {"name": scheme}, "hardware": machine}
        found = self.simulated(CODED, points)
        for scheme in SCHEMES:
            plain, fast = (dict(found[f"{scheme} {name}"]) for name in ("plain", "fast"))
            for key in ("title", "candidate", "varied", "mark"):
                plain.pop(key), fast.pop(key)
            self.assertEqual(fast, seconds_scaled(plain, 4), scheme)
        # Every figure of one, by itself: workers, links, buses, and memory over time.
        for flags in ((), ("--set", "pipeline.offload=always", "--set", "pipeline.fetch_ahead=0")):
            machines = (MACHINE, faster(MACHINE, 4))
            plain, fast = (self.figures(machine, "pipedream", *flags) for machine in machines)
            for each in (plain, fast):
                each.pop("costs_from")
            self.assertEqual(fast, seconds_scaled(plain, 4))
            waiting = [worker["offload"]["waiting"] for worker in plain["workers"] if "offload" in worker]
            self.assertEqual(any(each > 0 for each in waiting), bool(flags))

    def test_of_costs_in_other_units_is_in_other_units(self):
        """Costs in place of counts: 16 times the seconds, on links of a 16th of the speed."""
        bytes_of = {"input_bytes": 1e6, "output_bytes": 2e6, "activation_bytes": 3e6, "parameter_bytes": 4e6}
        costs = {"forward": [0.25, 0.5, 0.5, 0.375], "backward": 0.5, "update": 0.125}
        self.write("plain.yaml", costs | bytes_of)
        slow = {key: [16 * c for c in cost] if isinstance(cost, list) else 16 * cost for key, cost in costs.items()}
        self.write("slow.yaml", slow | bytes_of)
        plain = self.figures(MACHINE, "spectrain", "--costs", "plain.yaml", base=MODEL)
        slow = self.figures(faster(MACHINE, 1 / 16), "spectrain", "--costs", "slow.yaml", base=MODEL)
        for each in (plain, slow):
            each.pop("costs_from")
        self.assertEqual(slow, seconds_scaled(plain, 1 / 16))

    def test_of_a_machine_in_other_words_is_the_same(self):
        plain = {"devices": {"count": 8, "teraflops": 1, "memory_gb_per_s": 64}, "within": {"latency_us": 4, "bandwidth_gb_per_s": 2}}
        pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
        others = {
            "plain": plain,
            "links": plain
            | {"within": {}, "links": [{"from": a, "to": b, "both_ways": False} | plain["within"] for a, b in pairs]},
            "efficiency": changed(plain, {"devices.teraflops": 0.5, "devices.efficiency": 1}),
            "speeds": changed(plain, {"devices.speeds": [1] * 8}),
            "speed": changed(
                plain, {"devices.speed": 2, "devices.slowdown": [2] * 8}
            ),
            "hosts": {"hosts": 8, "devices": plain["devices"] | {"count": 1}, "between": plain["within"] | {"shared": False}},
        }
        points = {f"{scheme} {name}": {"scheme": {"name": scheme}, "hardware": machine}
                  for scheme in ("gpipe", "pipedream", "spectrain") for name, machine in others.items()}  # fmt: skip
        found = self.simulated(MODEL, points)
        for label, point in found.items():
            same = found[f"{label.split()[0]} plain"]
            for key in ("seconds_per_minibatch", "samples_per_second", "bubble", "peak_bytes", "bytes_per_minibatch", "state"):
                self.assertEqual(point[key], same[key], f"{label}: {key}")

    def test_of_an_added_device_that_nobody_uses_is_the_same(self):
        more = changed(MACHINE, {"hosts": 3})
        found = self.simulated(CODED, {"two": {"hardware": MACHINE}, "three": {"hardware": more}})
        two, three = ({key: found[name][key] for key in ("seconds_per_minibatch", "bubble", "peak_bytes")} for name in ("two", "three"))
        self.assertEqual(two, three)


class Edges(Invariance):
    def stability(self, *flags):
        return json.loads(self.pipewright("stability", "x.yaml", "--format", "json", *flags).out)

    def test_scale_with_the_curvature(self):
        """The largest stable learning rate on λ·H is that on H divided by λ; the stages' edges are products, and depend
        on neither. The radius at lr / λ on λ·H is that at lr on H."""
        matrix = [[2.0, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], [0, 0, 1, 2]]
        self.write("plain.json", {"matrix": matrix})
        self.write("steep.json", {"matrix": [[4 * h for h in row] for row in matrix]})
        for scheme in ("gpipe", "pipedream", "spectrain", "pipemare"):
            self.write(
                "x.yaml",
                changed(MODEL, {"scheme": {"name": scheme}, "optimizer": {"name": "sgd", "lr": 0.0625, "momentum": 0.5}}),
            )
            plain = self.stability("--hessian", "plain.json")
            steep = self.stability("--hessian", "steep.json", "--set", "optimizer.lr=0.015625")
            self.assertEqual(plain["stages"], steep["stages"], scheme)
            # An edge is found by bisection to a relative 1e-9; two of them are apart by twice that.
            self.assert_near(plain["coupled_edge"], 4 * steep["coupled_edge"], 2e-9, scheme)
            self.assert_near(plain["spectral_radius"], steep["spectral_radius"], 1e-9, scheme)

    def test_do_not_depend_on_replicas_or_placement(self):
        for scheme in ("pipedream", "spectrain", "pipemare"):
            self.write("x.yaml", changed(MODEL, {"scheme": {"name": scheme}, "pipeline.replicas": 1}))
            plain = self.stability()
            for key, value in (("pipeline.replicas", 4), ("pipeline.placement", [1, 0, 1, 0])):
                self.assertEqual(plain, self.stability("--set", f"{key}={value}"), f"{scheme}, {key}")


class Clocks(Invariance):
    """A measured trace that begins at another time, or runs at another speed."""

    def setUp(self):
        super().setUp()
        base = changed(
            invariance.MLP, {"scheme": {"name": "pipedream"}, "output.trace": True, "pipeline.execution": "threads"}
        )
        self.run_folder = self.train(base, "run").path
        self.trace = (self.run_folder / "trace.json").read_text()

    def figures(self):
        self.pipewright("timeline", "run", "--json", "t.json")
        return json.loads((self.folder / "t.json").read_text())

    def with_times(self, ts, dur):
        """The program's own trace, with other times."""
        trace = json.loads(self.trace)
        for event in trace["traceEvents"]:
            for key, change in (("ts", ts), ("dur", dur)):
                if key in event:
                    event[key] = change(event[key])
            if "sending" in event.get("args", {}):
                event["args"]["sending"] = dur(event["args"]["sending"])
        head = {key: value for key, value in trace.items() if key != "traceEvents"}
        lines = ",\n".join(json.dumps(event) for event in trace["traceEvents"])
        (self.run_folder / "trace.json").write_text(f"{json.dumps(head)[:-1]}, \"traceEvents\":[\n{lines}\n]}}\n")
        return self.figures()

    def assert_equal_figures(self, a, b, factor=1.0):
        """Times of a trace have three digits behind the point of a microsecond; ours are sums of at most 200 of them."""
        self.assertEqual(type(a), type(b))
        if isinstance(a, dict):
            self.assertEqual(list(a), list(b))
            for key in a:
                scale = 1 if key in ("bubble", "planned_bubble") else factor
                self.assert_equal_figures(a[key], b[key], scale if isinstance(a[key], float) else factor)
        elif isinstance(a, list):
            self.assertEqual(len(a), len(b))
            for x, y in zip(a, b):
                self.assert_equal_figures(x, y, factor)
        elif isinstance(a, float):
            self.assertAlmostEqual(a * factor, b, delta=1e-3 * tolerances.rounded(200) + 1e-12 * max(1, factor))
        else:
            self.assertEqual(a, b)

    def test_that_begin_later_change_no_figure(self):
        plain = self.with_times(lambda t: t, lambda t: t)
        self.assert_equal_figures(plain, self.with_times(lambda t: round(t + 4096, 3), lambda t: t))

    def test_that_run_at_half_the_speed_double_all_figures(self):
        plain = self.with_times(lambda t: t, lambda t: t)
        self.assert_equal_figures(plain, self.with_times(lambda t: round(2 * t, 3), lambda t: round(2 * t, 3)), 2.0)

    def test_parts_add_up(self):
        figures = self.figures()
        for worker in figures["workers"]:
            parts = [each for key, each in worker.items() if key not in ("worker", "coding", "longest_for")]
            self.assertAlmostEqual(sum(parts), figures["makespan"], delta=1e-12)
            self.assertLessEqual(worker["coding"], worker["busy"])
        waiting = sum(worker["waiting"] for worker in figures["workers"])
        self.assertAlmostEqual(figures["bubble"] * figures["makespan"] * len(figures["workers"]), waiting, delta=1e-12)
        self.assertLessEqual(figures["planned"], figures["makespan"])
        for idle in figures["idle"]:
            blames = [each for key, each in idle.items() if key not in ("worker", "begin", "end", "sender", "blame")]
            self.assertAlmostEqual(sum(blames), idle["end"] - idle["begin"], delta=1e-12)
            self.assertEqual(idle[idle["blame"]], max(blames))
        for worker in figures["workers"]:
            own = [idle for idle in figures["idle"] if idle["worker"] == worker["worker"]]
            self.assertAlmostEqual(sum(idle["end"] - idle["begin"] for idle in own), worker["waiting"], delta=1e-12)


class Profiles(Invariance):
    def test_a_counted_profile_is_in_proportion_to_its_samples(self):
        """Operations and bytes of boundaries are those of a sample times the samples; parameters are those of the model."""
        found = {}
        for samples in (4, 8):
            self.write("x.yaml", changed(MODEL, {"loader.batch_size": 8 * samples}))
            self.pipewright("profile", "x.yaml", "--device", "meta", "--out", f"{samples}.yaml")
            layers, layer = [], None
            for line in (self.folder / f"{samples}.yaml").read_text().splitlines():
                key, _, value = line.strip().removeprefix("- ").partition(": ")
                if key == "name":
                    layer = {}
                    layers.append(layer)
                if layer is not None:
                    layer[key] = value
                elif key in ("samples", "input_bytes"):
                    found[samples, key] = int(value)
            found[samples] = layers
        self.assertEqual(found[8, "samples"], 2 * found[4, "samples"])
        self.assertEqual(found[8, "input_bytes"], 2 * found[4, "input_bytes"])
        self.assertEqual(found[4, "input_bytes"], found[4, "samples"] * 64 * 4)
        widths = MODEL["model"]["widths"]
        for number, (few, many) in enumerate(zip(found[4], found[8], strict=True)):
            for key in ("flops", "output_bytes"):
                self.assertEqual(float(many[key]), 2 * float(few[key]), key)
            # The last layer has the loss, which keeps one float32 whatever the samples are: the sum of their weights.
            once = 4 if number + 1 == len(found[4]) else 0
            self.assertEqual(int(many["activation_bytes"]) - once, 2 * (int(few["activation_bytes"]) - once))
            self.assertEqual(int(many.get("half_bytes", 0)), 2 * int(few.get("half_bytes", 0)), number)
            for key in ("parameters", "parameter_bytes", "buffer_bytes", "kernels", "update_kernels"):
                self.assertEqual(many[key], few[key], key)
            inputs, outputs = widths[number : number + 2]
            self.assertEqual(float(few["flops"]), 2 * 4 * inputs * outputs)
            self.assertEqual(int(few["output_bytes"]), 4 * 4 * outputs)
            self.assertEqual(int(few["parameters"]), (inputs + 1) * outputs)
            self.assertEqual(int(few["parameter_bytes"]), 4 * (inputs + 1) * outputs)
            for key in ("peak_bytes", "peak_adding_bytes"):
                self.assertGreaterEqual(int(many[key]), int(few[key]), key)
                self.assertLessEqual(int(many[key]), 2 * int(few[key]), key)


class Schedules(Invariance):
    def test_formats_have_the_same_actions(self):
        """The CSV has every action; so has the trace, in which what takes no slot is an instant."""
        self.write("x.yaml", changed(MODEL, {"scheme": {"name": "pipedream"}}))
        self.pipewright("schedule", "x.yaml", "--csv", "s.csv", "--trace", "s.json", "--minibatches", 3)
        rows = csv_rows((self.folder / "s.csv").read_text())
        events = [event for event in json.loads((self.folder / "s.json").read_text())["traceEvents"] if event["ph"] in "Xi"]
        # A mini-batch has 4 forwards, 4 backwards, a reduction and an update at each of 4 stages of 2 replicas.
        self.assertEqual(len(rows), 3 * 4 * 2 * (4 + 4 + 2))
        kept = ("stage", "replica", "minibatch")
        in_trace = sorted((event["cat"], *(str(event["args"][key]) for key in kept), event["ts"]) for event in events)
        in_csv = sorted((row["kind"], *(row[key] for key in kept), float(row["start"])) for row in rows)
        slot = next(event["ts"] for event in events if event["ts"] > 0 and event["cat"] == "forward") / 1
        self.assertEqual([event[:4] for event in in_trace], [row[:4] for row in in_csv])
        self.assertEqual([event[4] for event in in_trace], [row[4] * slot for row in in_csv])
        self.assertEqual(sorted({float(row["slots"]) for row in rows}), [0, 1, 2])


if __name__ == "__main__":
    invariance.main()
