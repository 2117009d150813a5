# SPDX-License-Identifier: Apache-2.0
"""Execution traces of `simulate --chakra` as Google's protobuf reads them, replayed here on links that take no time.

The messages are described here once more, from et_def.proto of MLCommons' Chakra.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).resolve()
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/e2e")]
import harness
import skips
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
T = descriptor_pb2.FieldDescriptorProto
FIELDS = {
    "AttributeProto": [
        ("name", 1, T.TYPE_STRING, False),
        ("int32_val", 7, T.TYPE_INT32, False),
        ("int64_val", 9, T.TYPE_INT64, False),
        ("bool_val", 27, T.TYPE_BOOL, False),
        ("string_val", 29, T.TYPE_STRING, False),
    ],
    "GlobalMetadata": [("version", 1, T.TYPE_STRING, False), ("attr", 2, T.TYPE_MESSAGE, True)],
    "Node": [
        ("id", 1, T.TYPE_UINT64, False),
        ("name", 2, T.TYPE_STRING, False),
        ("type", 3, T.TYPE_INT32, False),
        ("ctrl_deps", 4, T.TYPE_UINT64, True),
        ("data_deps", 5, T.TYPE_UINT64, True),
        ("duration_micros", 7, T.TYPE_UINT64, False),
        ("attr", 10, T.TYPE_MESSAGE, True),
    ],
}


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        oneof = name == "AttributeProto"
        if oneof:
            message.oneof_decl.add(name="value")
        for field, number, kind, many in fields:
            added = message.field.add(name=field, number=number, type=kind)
            added.label = T.LABEL_REPEATED if many else T.LABEL_OPTIONAL
            if kind == T.TYPE_MESSAGE:
                added.type_name = ".ChakraProtoMsg.AttributeProto"
            if oneof and number > 1:
                added.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
        for name in ("GlobalMetadata", "Node")
    ]


GlobalMetadata, Node = messages()


def framed(content):
    """The messages of a file, each behind its length."""
    at = 0
    while at < len(content):
        size = shift = 0
        while True:
            byte = content[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert at + size <= len(content), "the last message is cut off"
        yield content[at : at + size]
        at += size


def attributes(node):
    return {each.name: getattr(each, each.WhichOneof("value")) for each in node.attr}


def read(path):
    first, *rest = framed(path.read_bytes())
    metadata = GlobalMetadata.FromString(first)
    assert metadata.version == "0.0.4", metadata
    nodes = [Node.FromString(each) for each in rest]
    for node in nodes:
        assert len(unknown_fields.UnknownFieldSet(node)) == 0, node
        assert all(each.WhichOneof("value") for each in node.attr), node
    return nodes


class Replay:
    """Ends of all nodes in microseconds, where messages and sums take no time."""

    def __init__(self, traces):
        self.traces = [{node.id: node for node in nodes} for nodes in traces]
        self.sends, self.groups = {}, {}
        for worker, nodes in enumerate(traces):
            met = Counter()
            for node in nodes:
                has = attributes(node)
                if node.type == SEND:
                    self.sends[has["comm_tag"]] = (worker, node.id)
                if node.type == COLLECTIVE:
                    key = has["pg_name"], met[has["pg_name"]]
                    met[has["pg_name"]] += 1
                    self.groups.setdefault(key, []).append((worker, node.id))
        self.group_of = {each: group for group in self.groups.values() for each in group}
        self.ends = {}
        for worker, nodes in enumerate(traces):
            for node in nodes:
                self.end((worker, node.id))

    def waits(self, place):
        worker, node = place[0], self.traces[place[0]][place[1]]
        for each in self.group_of.get(place, [place]):
            of = self.traces[each[0]][each[1]]
            yield from ((each[0], other) for other in (*of.data_deps, *of.ctrl_deps))
        if node.type == RECEIVE:
            yield self.sends[attributes(node)["comm_tag"]]

    def end(self, place):
        """Without recursion, for traces are long; a circle of nodes is an error."""
        stack, entered = [place], set()
        while stack:
            at = stack[-1]
            missing = [each for each in self.waits(at) if each not in self.ends]
            if at in self.ends or not missing:
                node = self.traces[at[0]][at[1]]
                begin = max((self.ends[each] for each in self.waits(at)), default=0)
                self.ends[at] = begin + node.duration_micros
                stack.pop()
                continue
            assert at not in entered, f"a circle through {at}"
            entered.add(at)
            stack.extend(missing)
        return self.ends[place]

    def makespan(self):
        return max(self.ends.values()) / 1e6


SCHEMES = [
    ("gpipe", {"stages": 4, "microbatches": 6}),
    ("one_f_one_b", {"stages": 4, "microbatches": 6, "replicas": 2}),
    ("interleaved", {"stages": 4, "microbatches": 4, "placement": [0, 1, 0, 1]}),
    ("zb_v", {"stages": 4, "microbatches": 4}),
    ("dualpipe", {"stages": 4, "microbatches": 6, "replicas": 2}),
    ("dualpipe_v", {"stages": 4, "microbatches": 6}),
    ("pipedream", {"stages": 4}),
    ("interlocking", {"stages": 4}),
]
COSTS = "forward: [0.011, 0.0173, 0.009, 0.0121]\nbackward: 0.0234567\ninput_bytes: [0, 1000, 2000, 3000]\nparameter_bytes: 4096\n"


class Chakra(harness.EndToEnd):
    def simulated(self, scheme, pipeline, hardware=""):
        """The traces, the figures of the simulation, and the events of its timeline by worker."""
        self.write("x.yaml", {"name": "x", "scheme": {"name": scheme}, "pipeline": pipeline})
        (self.folder / "costs.yaml").write_text(COSTS)
        (self.folder / "h.yaml").write_text("devices: {count: 8, speed: 0.7}\n" + hardware)
        (self.folder / "traces").mkdir(exist_ok=True)
        self.pipewright("simulate", "x.yaml", "--costs", "costs.yaml", "--hardware", "h.yaml", "--minibatches", "5",
                        "--chakra", f"traces/{scheme}", "--json", "f.json", "--trace", "t.json")  # fmt: skip
        figures = json.loads((self.folder / "f.json").read_text())
        files = list((self.folder / "traces" / scheme).glob("*.et"))
        traces = [read(self.folder / "traces" / scheme / f"x.{worker}.et") for worker in range(len(files))]
        events = Counter(
            event["tid"]
            for event in json.loads((self.folder / "t.json").read_text())["traceEvents"]
            if event["ph"] in "Xi"
        )
        return traces, figures, events

    def check(self, traces, figures, events):
        self.assertEqual(len(traces), len(events))
        messages = {SEND: {}, RECEIVE: {}}
        for worker, nodes in enumerate(traces):
            self.assertEqual([node.id for node in nodes], list(range(1, len(nodes) + 1)))
            actions = [node for node in nodes if node.type == COMPUTE or node.type == COLLECTIVE]
            self.assertEqual(len(actions), events[worker])
            self.assertEqual(len({node.name for node in nodes}), len(nodes))
            for node in nodes:
                self.assertLess(max(node.data_deps, default=0), node.id)
                has = attributes(node)
                self.assertIs(has["is_cpu_op"], False)
                if node.type in messages:
                    self.assertEqual(has["comm_src" if node.type == SEND else "comm_dst"], worker)
                    self.assertNotIn(has["comm_tag"], messages[node.type])
                    messages[node.type][has["comm_tag"]] = has
        self.assertEqual(messages[SEND], messages[RECEIVE])
        return messages[SEND].values()

    def test_has_every_action_and_message_and_takes_as_long(self):
        for scheme, pipeline in SCHEMES:
            with self.subTest(scheme):
                traces, figures, events = self.simulated(scheme, pipeline)
                sent = self.check(traces, figures, events)
                self.assertGreater(len(sent), 10)
                self.assertAlmostEqual(Replay(traces).makespan(), figures["makespan"], delta=1e-6)

    def test_messages_are_those_of_the_links(self):
        traces, figures, events = self.simulated("zb_v", {"stages": 4, "microbatches": 4})
        of_links = Counter()
        for has in self.check(traces, figures, events):
            of_links[has["comm_src"], has["comm_dst"], "messages"] += 1
            of_links[has["comm_src"], has["comm_dst"], "bytes"] += has["comm_size"]
        expected = {
            (link["from"], link["to"], key): link[key] for link in figures["links"] for key in ("messages", "bytes")
        }
        self.assertEqual(of_links, expected)

    def test_stragglers_and_jitter_are_in_the_seconds(self):
        traces, figures, events = self.simulated(
            "one_f_one_b", {"stages": 4, "microbatches": 6}, "jitter: {compute: 0.3}\n"
        )
        self.check(traces, figures, events)
        self.assertAlmostEqual(Replay(traces).makespan(), figures["makespan"], delta=1e-6)

    def test_groups_are_the_replicas_of_each_stage(self):
        traces, _, _ = self.simulated("one_f_one_b", {"stages": 4, "microbatches": 2, "replicas": 2})
        groups = json.loads((self.folder / "traces/one_f_one_b/x.groups.json").read_text())
        sums = {
            worker: {attributes(node)["pg_name"] for node in nodes if node.type == COLLECTIVE}
            for worker, nodes in enumerate(traces)
        }
        for number, workers in groups.items():
            self.assertEqual(workers, [worker for worker, of in sums.items() if number in of])
        for nodes in traces:
            for node in nodes:
                if node.type == COLLECTIVE:
                    self.assertEqual(attributes(node)["comm_type"], 0)
                    self.assertEqual(attributes(node)["comm_size"], 4096)


if __name__ == "__main__":
    skips.main()
