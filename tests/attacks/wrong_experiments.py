# SPDX-License-Identifier: Apache-2.0
"""Experiment files that are wrong in every way we could think of: each is refused with exit code 2 (3 or
4 where it says so), one line with the place of the fault, within 2 s of processor time and 256 MiB.
"""

import itertools
import json

import attack
from attack import DATA, EXPERIMENT, SCHEDULE, Case, fifo, folder, hole, link, listening

HEALTHY = "model: {name: mlp}\n"
CASES = []


def case(name, text, *says, at="", **more):
    """A file x.yaml; `at`: line:column of the fault."""
    files = {"x.yaml": text} | more.pop("files", {})
    place = f"x.yaml:{at}: " if at else more.pop("place", "")
    CASES.append(Case(name, files, place=place, says=says, **more))


def in_section(dotted, value):
    """`a.b` as "a: {b: value}", and the column of the value."""
    *sections, key = dotted.split(".")
    before = "".join(f"{section}: {{" for section in sections) + f"{key}: "
    text = before + value + "}" * len(sections)
    return text + "\n", f"1:{len(before) + 1}"


# --- every option, of a wrong kind or out of its range --------------------------------------------

INTEGERS = (
    "loader.batch_size loader.limit_train loader.limit_test loader.validation loader.bucket loader.prefetch "
    "pipeline.stages pipeline.microbatches pipeline.replicas pipeline.threads train.epochs train.seed "
    "train.evaluate_every train.checkpoint.every translation.beam translation.max_length lr_schedule.size "
    "lr_schedule.warmup.length"
).split()
NUMBERS = (
    "optimizer.lr optimizer.momentum optimizer.weight_decay lr_schedule.gamma lr_schedule.power lr_schedule.end_lr "
    "lr_schedule.warmup.start loss.label_smoothing pipeline.cut.bandwidth"
).split()
FLAGS = "loader.shuffle loader.drop_last loader.reshuffle optimizer.nesterov output.steps output.trace".split()
CHOICES = (
    "pipeline.execution pipeline.recompute pipeline.batch_norm train.precision train.gradient train.drain "
    "train.checkpoint.unit lr_schedule.name lr_schedule.per model.weights_format model.activation"
).split()
LISTS = "pipeline.placement model.widths lr_schedule.milestones".split()
SECTIONS = (
    "dataset loader model loss translation pipeline scheme optimizer lr_schedule train output pipeline.compression"
).split()

WRONG = {
    "integer": (
        ("many", "'many'"), ("-1", "-1"), ("1.5", "1.5"), (".nan", ".nan"), ("1e400", "1e400"),
        ("99999999999999999999", "99999999999999999999"), ("true", "true"), ("[1]", "a list"),
        ("{a: 1}", "a mapping"), ('"1"', "quotes"), ("-9223372036854775808", "-9223372036854775808"), (".inf", ".inf"),
    ),
    "number": (
        ("fast", "'fast'"), ("-1", "-1"), (".nan", ".nan"), ("-.inf", "-.inf"), ("1e400", "1e400"), ("yes", "yes"),
        ("[0.1]", "a list"), ('"0.1"', "quotes"), ("0x1p3", "0x1p3"), ("1,5", "1"), ("~", "empty"),
    ),
    "flag": (("1", "1"), ("on", "on"), ('"true"', "quotes"), ("[true]", "a list"), ("True", "True"), ("maybe", "maybe")),
    "choice": (("1", "1"), ("nothing_like_it", "nothing_like_it"), ("[serial]", "a list"), ("true", "true"), ('""', "expected")),
    "list": (("4", "4"), ("{a: 1}", "a mapping"), ("[a, b]", "'a'"), ("[1.5]", "1.5"), ("[-3]", "-3"), ("[[1]]", "a list")),
    "section": (("7", "7"), ("text", "'text'"), ("[a]", "a list"), ("true", "true")),
}
TAKEN = {"integer": 4, "number": 4, "flag": 3, "choice": 3, "list": 5, "section": 2}

for kind, options in (("integer", INTEGERS), ("number", NUMBERS), ("flag", FLAGS), ("choice", CHOICES),
                      ("list", LISTS), ("section", SECTIONS)):
    values = itertools.cycle(WRONG[kind])  # goes on, so that each option meets other ones
    for option in options:
        for value, shown in itertools.islice(values, TAKEN[kind]):
            text, at = in_section(option, value)
            if value == "1,5":  # two entries of the mapping
                case(f"{option}={value}", text, "5", place="x.yaml:1:")
            elif kind == "list" and value.startswith("["):
                case(f"{option}={value}", text, option, shown, place="x.yaml:1:")
            else:
                words = (shown,) if value in (".nan", ".inf", "-.inf", "1e400", "yes", "on", "True", "0x1p3",
                                              "99999999999999999999") else (option, shown)
                case(f"{option}={value}", text, *words, at=at)

# --- names that are not there ----------------------------------------------------------------------

for section in ("loader", "model", "loss", "pipeline", "scheme", "optimizer", "lr_schedule", "train", "output"):
    case(f"unknown key in {section}", f"{section}: {{zzzqqq: 1}}\n", f"'{section}.zzzqqq'", at=f"1:{len(section) + 4}")
for section, wrong, meant in (
    ("loader", "batchsize", "batch_size"), ("pipeline", "stage", "stages"), ("train", "epoch", "epochs"),
    ("optimizer", "momentun", "momentum"), ("lr_schedule", "gama", "gamma"), ("output", "step", "steps"),
):
    case(f"near miss {section}.{wrong}", f"{section}: {{{wrong}: 1}}\n", f"did you mean '{meant}'", at=f"1:{len(section) + 4}")
for section in ("dataset", "model", "loss", "scheme", "optimizer", "pipeline.compression"):
    for value, shown in (("zzzqqq", "'zzzqqq'"), ("17", "17"), ("[mlp]", "a list"), ("../mlp", "'../mlp'")):
        text, at = in_section(f"{section}.name", value)
        case(f"{section}.name={value}", text, f"{section}.name", shown, at=at)
case("section misspelt", HEALTHY + "optimzer: {lr: 1}\n", "did you mean 'optimizer'", at="2:1")
case("section in capitals", HEALTHY + "Optimizer: {lr: 1}\n", "'Optimizer'", at="2:1")
case("dotted key in the file", HEALTHY + "train.epochs: 3\n", "train: {epochs", at="2:1")
case("dotted key in a section", "pipeline: {cut.memory: 3}\n", "dotted keys", at="1:12")
case("options of another part", "scheme: {name: gpipe, version: 1}\n", "'scheme.version'", at="1:23")
case("metrics unknown", "metrics: [top6]\n", "top6", "top5", at="1:10")
case("metrics a mapping", "metrics: {top5: true}\n", "expected a list", at="1:10")
case("device unknown", "pipeline: {device: gpu}\n", "pipeline.device", "'gpu'", at="1:20")
case("device huge", "pipeline: {device: cuda:99999999999}\n", "pipeline.device", at="1:20")
case("device list empty", "pipeline: {device: []}\n", "empty", at="1:20")
case("compression edge", "pipeline: {stages: 2, compression: {forward: {name: bf16}, edges: [7]}}\n", "edges", place="x.yaml:1:")
case("compression direction", "pipeline: {stages: 2, compression: {sideways: {name: bf16}}}\n", "sideways", place="x.yaml:1:")
case("codec bits", "pipeline: {stages: 2, compression: {name: uniform, bits: 99}}\n", "bits is 99", place="x.yaml:1:")
case("codec share", "pipeline: {stages: 2, compression: {name: top_k, zzz: 2}}\n", "zzz", place="x.yaml:1:")
case("empty section", "model:\n  name:\n", "model.name is empty", at="2:3")

# --- syntax ------------------------------------------------------------------------------------------

for name, text, says, at in (
    ("unclosed list", "model: [mlp\n", "'['", ""),
    ("unclosed mapping", "model: {name: mlp\n", "'{'", ""),
    ("unclosed quote", 'name: "abc\n', "quote", ""),
    ("unclosed single quote", "name: 'abc\n", "quote", ""),
    ("closing bracket only", "model: ]\n", "closes nothing", "1:8"),
    ("tab indents", "model:\n\tname: mlp\n", "a tab cannot indent", "2:1"),
    ("no space after colon", "model: {name:mlp}\n", "", ""),
    ("two colons", "name: a: b\n", "':'", "1:8"),
    ("stray text", "model: {name: mlp}\nnonsense\n", "", ""),
    ("wrong indentation", "train:\n  epochs: 1\n   seed: 2\n", "", ""),
    ("less indentation", "train:\n    epochs: 1\n  seed: 2\n", "", ""),
    ("list in a mapping", "train:\n  epochs: 1\n  - seed\n", "", ""),
    ("at sign", "name: @home\n", "quotes", "1:7"),
    ("backtick", "name: `home`\n", "quotes", "1:7"),
    ("percent", "%YAML 1.2\n---\nname: a\n", "directives", "1:1"),
    ("two documents", "name: a\n---\nname: b\n", "second document", "2:1"),
    ("document end and more", "name: a\n...\nname: b\n", "second document", "3:1"),
    ("tag", "name: !!str abc\n", "tags", "1:7"),
    ("tag of python", "name: !!python/object/apply:os.system [id]\n", "tags", "1:7"),
    ("merge key", "base: &b {name: mlp}\nmodel:\n  <<: *b\n", "merge keys", "3:3"),
    ("unknown alias", "name: *nothing\n", "alias", "1:7"),
    ("alias as a key", "name: &n a\n*n : 1\n", "alias", "2:1"),
    ("alias inside itself", "model: &m {name: *m}\n", "alias", "1:18"),
    ("number as a key", "1: a\n", "not a text", "1:1"),
    ("flag as a key", "true: a\n", "not a text", "1:1"),
    ("null as a key", "~: a\n", "a key", "1:1"),
    ("list as a key", "[a]: b\n", "a key", "1:1"),
    ("mapping as a key", "? {a: b}\n: c\n", "a key", ""),
    ("question mark", "? name\n", "", ""),
    ("key without a value", "model: {name}\n", "stands alone", "1:9"),
    ("empty entries", "model: {widths: [1,,2]}\n", "extra comma", ""),
    ("bad escape", 'name: "\\q"\n', "escape", ""),
    ("half an escape", 'name: "\\x4"\n', "", ""),
    ("NUL escape", 'name: "a\\0b"\n', "NUL", "1:7"),
    ("octal", "train: {epochs: 010}\n", "write 10", "1:17"),
    ("hexadecimal", "train: {epochs: 0x10}\n", "write 16", "1:17"),
    ("underscores", "train: {epochs: 1_000}\n", "write 1000", "1:17"),
    ("point first", "optimizer: {lr: .5}\n", "write 0.5", "1:17"),
    ("sexagesimal", "train: {epochs: 1:30}\n", "", "1:17"),
    ("date", "train: {epochs: 2024-01-01}\n", "train.epochs", "1:17"),
    ("block text", "train: {epochs: 1}\nmodel: |\n  mlp\n", "model", "2:8"),
    ("folded text", "train: >\n  x\n", "train", "1:8"),
    ("comment glued", "train: {epochs: 1#2}\n", "train.epochs", "1:17"),
    ("only a comment", "# nothing\n", "empty", "1:1"),
    ("empty file", "", "empty", "1:1"),
    ("only spaces", "   \n\n   \n", "empty", "1:1"),
    ("a list", "- model\n- train\n", "a list", "1:1"),
    ("a number", "17\n", "17", "1:1"),
    ("a text", "model mlp\n", "no experiment", "1:1"),
    ("no space at all", "model:mlp\n", "space after ':'", "1:1"),
    ("null", "~\n", "empty", "1:1"),
    ("JSON cut off", '{"model": {"name": "mlp"', "", ""),
    ("JSON with a comma too many", '{"train": {"epochs": 1,, "seed": 2}}', "", ""),
    ("JSON with NaN", '{"optimizer": {"lr": NaN}}', "'NaN' is not a finite number", "1:22"),
    ("surrogate pair", '{"name": "\\ud83d\\ude00"}', "", ""),
):
    case(f"syntax: {name}", text, *([says] if says else []), **({"at": at} if at else {"place": "x.yaml:"}))

for first, second in (("train: {epochs: 1}", "train: {seed: 2}"), ("name: a", '"name": b'), ("name: a", "'name': b")):
    case(f"twice: {second}", f"{first}\n{second}\n", "given twice, first in line 1, column 1", at="2:1")
case("twice within a section", "train: {epochs: 1, seed: 3, epochs: 1}\n", "'epochs' is given twice", at="1:29")
case("twice by an escape", 'train: {epochs: 1, "\\u0065pochs": 2}\n', "given twice", at="1:20")

# --- bytes that are no text ---------------------------------------------------------------------------

for name, content, says, at in (
    ("latin-1", "name: caf\xe9\n".encode("latin-1"), "0xE9", "1:10"),
    ("UTF-16", "model: {name: mlp}\n".encode("utf-16"), "UTF-8", "1:1"),
    ("UTF-32", "model: {name: mlp}\n".encode("utf-32"), "", ""),
    ("overlong", b"name: \xc0\xaf\n", "0xC0", "1:7"),
    ("surrogate", b"name: \xed\xa0\x80\n", "0xED", "1:7"),
    ("beyond Unicode", b"name: \xf5\x80\x80\x80\n", "0xF5", "1:7"),
    ("cut character", b"name: \xe2\x82", "0xE2", "1:7"),
    ("NUL", b"name: a\0b\n", "0x00", "1:8"),
    ("escape character", b"name: \x1b[31mred\n", "0x1B", "1:7"),
    ("bell", b"name: a\x07\n", "0x07", "1:8"),
    ("CSI as one byte", "name: \x9b31m\n".encode(), "0x9B", "1:7"),
    ("delete", b"name: a\x7f\n", "0x7F", "1:8"),
    ("CR alone", b"name: a\rb\n", "0x0D", "1:8"),
    ("gzip", b"\x1f\x8b\x08\0\0\0\0\0", "", ""),
    ("ELF", b"\x7fELF\2\1\1\0", "", ""),
    ("PNG", b"\x89PNG\r\n\x1a\n", "", ""),
    ("zeros", bytes(4096), "0x00", "1:1"),
    ("random", bytes((i * 7919) % 251 for i in range(5000)), "", ""),
    ("BOM and a fault", b"\xef\xbb\xbftrain: {epochs: x}\n", "train.epochs", "1:17"),
    ("CRLF and a fault", b"name: a\r\ntrain: {epochs: x}\r\n", "train.epochs", "2:17"),
    ("umlauts before a fault", "dataset: {name: äöü}\n".encode(), "äöü", "1:17"),
):
    case(f"bytes: {name}", content, *([says] if says else []), **({"at": at} if at else {"place": "x.yaml:"}))

# --- too much of it -------------------------------------------------------------------------------------

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)
MANY = 90_000
for name, text, says, limits in (
    ("90,000 unknown keys", "".join(f"key{i}: {i}\n" for i in range(MANY)), "keys", {"seconds": 1}),
    ("90,000 unknown keys of a section", "train: {" + ", ".join(f"key{i}: 1" for i in range(MANY)) + "}\n", "keys", {"seconds": 1}),
    ("9,000 unknown keys", HEALTHY + "".join(f"key{i}: {i}\n" for i in range(9000)), "more problems", {"seconds": 1}),
    ("9,000 unknown keys of a section", "train:\n" + "".join(f"  epoch{i}: 1\n" for i in range(9000)), "more problems", {"seconds": 1}),
    ("90,000 wrong values", "loader: {batch_size: [" + "yes," * MANY + "1]}\n", "more problems", {"seconds": 1}),
    ("100,000 duplicate keys", "train: {" + ", ".join(["epochs: 1"] * 100_000) + "}\n", "given twice", {}),
    ("laughs", LAUGHS, "100,000 nodes", {}),
    ("a million values", "loader: {batch_size: [" + "1," * 1_000_000 + "1]}\n", "", {}),
    ("a million lines of values", "loader:\n  batch_size:\n" + "  - 1\n" * 300_000, "100,000 values", {}),
    ("100,000 brackets", "model: " + "[" * 100_000, "deeper", {}),
    ("100,000 braces", "{" * 100_000, "nests deeper", {}),
    ("15 million brackets", "[" * 15_000_000, "", {}),
    ("100,000 dashes", "- " * 100_000, "nests deeper", {}),
    ("100,000 question marks", "? " * 100_000, "", {}),
    ("deep blocks", "".join(" " * i + "a:\n" for i in range(1500)), "", {}),
    ("a million quotes", '"' * 1_000_000, "", {}),
    ("a million pairs", "[" + "[]," * 300_000 + "]", "", {}),
    ("a million anchors", "[" + "".join(f"&a{i} 1," for i in range(100_000)) + "1]", "", {}),
    ("a million aliases", "name: &n a\nloader: [" + "*n," * 300_000 + "*n]\n", "", {}),
    ("10 MB name", "name: " + "x" * 10_000_000 + "\n", "", {}),
    ("1 MB name", "name: " + "x" * 1_000_000 + "\n", "1,000,000 bytes", {}),
    ("name of 300 characters", "name: " + "x" * 300 + "\n", "name", {"place": "x.yaml:1:7"}),
    ("1 MB of one key", "x" * 1_000_000 + ": 1\n", "", {}),
    ("key of 500 characters", "x" * 500 + ": 1\n", "128", {}),
    ("60 KB path", "dataset: {name: tensors, file: " + "x" * 60_000 + "}\n", "dataset.file", {}),
    ("1 MB text of lines", "name: >\n" + " word\n" * 200_000, "", {}),
    ("2 million lines", "#\n" * 2_000_000 + "train: {epochs: x}\n", "", {}),
    ("long line before the fault", "# " + "x" * 500_000 + "\ntrain: {epochs: x}\n", "train.epochs", {"place": "x.yaml:2:17"}),
    ("1,000,000 spaces", "train: {epochs: " + " " * 1_000_000 + "x}\n", "train.epochs", {}),
    ("widths of 100,000", "model: {name: mlp, widths: [" + ", ".join(["8"] * 90_000) + "]}\npipeline: {stages: 5000}\n", "stages", {}),
    ("width huge", "model: {name: mlp, widths: [64, 99999999999999999999]}\n", "99999999999999999999", {}),
    ("epochs huge", "train: {epochs: 1000000000000}\n", "train.epochs", {}),
    ("stages huge", "pipeline: {stages: 1000000000}\n", "pipeline.stages", {}),
    ("20 MB file", "# " + "x" * 20_000_000, "at most", {"place": "x.yaml: "}),
):
    case(f"much: {name}", text, *([says] if says else []), place=limits.pop("place", "x.yaml:"), **limits)

# --- files that are none ------------------------------------------------------------------------------------

for name, make in (
    ("a FIFO", fifo), ("a socket", listening), ("a folder", folder), ("/dev/zero", link("/dev/zero")),
    ("/dev/urandom", link("/dev/urandom")), ("/dev/null", link("/dev/null")), ("a link to itself", link("x.yaml")),
    ("a link to nothing", link("nowhere")), ("a sparse TB", hole(1 << 40)), ("a terminal", link("/dev/ptmx")),
    ("its own memory", link("/proc/self/mem")), ("/proc/kmsg", link("/proc/kmsg")),
):
    CASES.append(Case(f"special: {name}", {"x.yaml": make}, place="x.yaml"))
    CASES.append(Case(f"special: extends {name}", {"x.yaml": "extends: base\n", "base": make}, place=""))
CASES.append(Case("special: /dev/stdin", command=("check", "/dev/stdin"), place="/dev/stdin", says=("device",)))
CASES.append(Case("special: nothing", command=("check", "nowhere.yaml"), place="nowhere.yaml", says=("No such file",)))
CASES.append(Case("special: no argument", command=("check",)))
CASES.append(Case("special: a name of 5,000 bytes", command=("check", "x" * 5000), says=("too long",)))
CASES.append(Case("special: a path of NUL-free bytes", {"x\n\x1b[31m.yaml": "a"}, command=("check", "x\n\x1b[31m.yaml")))

# --- extends, profiles, --set -------------------------------------------------------------------------------------

SECRET = "root:$6$salt$verysecret:19000:0:99999:7:::\nbin:*:19000:0:99999:7:::\n"


def extends(name, base, *says, at="", never=(), **more):
    files = {"x.yaml": "extends: base.yaml\n" + HEALTHY, "base.yaml": base}
    CASES.append(Case(f"extends: {name}", files, place=at, says=says, never=never, **more))


for name, content in (
    ("shadow", SECRET), ("keys and values", "password: verysecret\nuser: admin\n"), ("one word", "verysecret\n"),
    ("with a tab", "\tverysecret: 1\n"), ("half a quote", "'verysecret\n"), ("twice", "verysecret: 1\nverysecret: 2\n"),
    ("a strange number", "verysecret: 010\n"), ("a list", "- verysecret\n"), ("compose", "name: x\nverysecret: {a: yes}\n"),
    ("directive", "%verysecret\n---\n"), ("key alone", "{verysecret}\n"), ("PEM", "-----BEGIN KEY-----\nverysecret\n-----END\n"),
    ("alias", "*verysecret\n"), ("env", "VERYSECRET=verysecret\n"), ("latin", b"verysecret \xe9\n"),
):
    extends(f"nothing of {name} is shown", content, "no experiment", at="base.yaml:1:1: ", never=("verysecret", "VERYSECRET"))
extends("base has a fault", "train: {epochs: x}\n", "train.epochs", at="base.yaml:1:17: ")
extends("base has a syntax fault", "train: {epochs: 1\n", at="base.yaml:")
extends("base is empty", "", "empty", at="base.yaml:1:1: ")
for name, text, says in (
    ("itself", "extends: x.yaml\n", "circle"), ("itself by another name", "extends: ./././x.yaml\n", "circle"),
    ("a list", "extends: [a, b]\n", "one file"), ("a number", "extends: 7\n", "one file"), ("nothing", "extends:\n", "one file"),
    ("empty", 'extends: ""\n', "one file"), ("missing", "extends: nowhere.yaml\n", "nowhere.yaml"),
    ("in a missing folder", "extends: a/b/c.yaml\n", "no file"), ("a folder", "extends: .\n", "directory"),
    ("of a home that is none", "extends: ~nobody/x.yaml\n", "no file"), ("a name too long", f"extends: {'x' * 4000}\n", ""),
):
    case(f"extends: {name}", text, *([says] if says else []), **({"at": "1:10"} if name != "nothing" and name != "a folder" else {}))
case("extends: a circle of three", "extends: a.yaml\n", "circle", place="b.yaml:1:10",
     files={"a.yaml": "extends: b.yaml\n", "b.yaml": "extends: x.yaml\n"})
case("extends: a chain of 2,000", "extends: 1.yaml\n", "", place="",
     files={f"{i}.yaml": f"extends: {i + 1}.yaml\n" for i in range(1, 2000)})
case("profiles: a list", HEALTHY + "profiles: [a]\n", "mapping", at="2:11")
case("profiles: of numbers", HEALTHY + "profiles: {a: 1}\n", "profiles.a", at="2:15")
case("profiles: unknown", HEALTHY + "profiles: {laptop: {}}\n", "did you mean 'laptop'", command=("check", "x.yaml", "--profile", "labtop"), place="--profile")
case("profiles: none there", HEALTHY, "none", command=("check", "x.yaml", "--profile", "a"), place="--profile")
case("profiles: a wrong key", HEALTHY + "profiles: {a: {train.epoch: 1}}\n", "'train.epoch'", command=("check", "x.yaml", "--profile", "a"), at="2:16")
case("profiles: through a scalar", "train: {epochs: 1}\nprofiles: {a: {train.epochs.x: 1}}\n", "not a mapping", command=("check", "x.yaml", "--profile", "a"), at="2:16")
case("profiles: extends", HEALTHY + "profiles: {a: {extends: b.yaml}}\n", "top level", command=("check", "x.yaml", "--profile", "a"), at="2:16")
case("profiles: empty key", HEALTHY + 'profiles: {a: {"train..epochs": 1}}\n', "joined by dots", command=("check", "x.yaml", "--profile", "a"), at="2:16")
for name, sets, says in (
    ("no equals sign", "train.epochs", "expected KEY=VALUE"), ("no key", "=3", "expected KEY=VALUE"),
    ("unknown", "train.epoch=3", "train.epoch"), ("wrong type", "train.epochs=x", "train.epochs"),
    ("syntax", "train.epochs=[1", "["), ("two documents", "name=a\n---\nb", "document"), ("extends", "extends=a.yaml", "top level"),
    ("a long key", "x" * 100_000 + "=1", "100,000 bytes"), ("a long text", "y" * 100_000, "expected KEY=VALUE"),
    ("many dots", "a" + ".a" * 200 + "=1", "joined by dots"), ("a comment", "name=#1", "comment"),
    ("through a section", "model.name.x=1", "not a mapping"), ("a NUL escape", 'name="a\\0"', "NUL"),
):
    case(f"set: {name}", HEALTHY, says, command=("check", "x.yaml", "--set", sets), place="--set")
case("command line: unknown option", HEALTHY, "--sett", command=("check", "x.yaml", "--sett", "a=1"))
case("command line: two files", HEALTHY, command=("check", "x.yaml", "x.yaml"))
case("command line: unknown command", HEALTHY, "did you mean 'check'", command=("chekc", "x.yaml"))

# --- sweeps ---------------------------------------------------------------------------------------------------------

for name, sweep, says in (
    ("a list", "[1]", "sweep is a list"), ("a number", "7", "sweep is 7"), ("unknown part", "{gird: {train.seed: [1]}}", "did you mean 'grid'"),
    ("empty list", "{grid: {train.seed: []}}", "empty list"), ("no list", "{grid: {train.seed: 1}}", "write [1]"),
    ("grid a list", "{grid: [1]}", "expected a mapping"), ("zip of unequal lengths", "{zip: {train.seed: [1, 2], train.epochs: [1]}}", "as many as"),
    ("zip a text", "{zip: abc}", "expected a mapping"), ("points a mapping", "{points: {a: 1}}", "expected a list"),
    ("a point is a number", "{points: [1]}", "expected a mapping"), ("a label is a number", "{points: [{label: 1, train.seed: 2}]}", 'write "1"'),
    ("a label is a list", "{points: [{label: [a], train.seed: 2}]}", "expected a text"),
    ("equal runs", "{points: [{train.seed: 2}, {train.seed: 2}]}", "are the same"),
    ("equal values", "{grid: {train.seed: [1, 1]}}", "are the same"),
    ("10^9 runs", "{grid: {train.seed: [%s], loader.batch_size: [%s], train.epochs: [%s]}}" % ((", ".join(map(str, range(1, 1001))),) * 3), "at most"),
    ("name varies", "{grid: {name: [a, b]}}", "cannot vary"), ("table varies", "{grid: {table.rows: [a]}}", "cannot vary"),
    ("sweep in a sweep", "{grid: {sweep.grid: [{}]}}", "cannot vary"), ("extends varies", "{grid: {extends: [a.yaml]}}", "cannot vary"),
    ("unknown key", "{grid: {train.sed: [1, 2]}}", "'train.sed'"), ("wrong value", "{grid: {train.seed: [1, x]}}", "train.seed"),
    ("unknown part of a point", "{points: [{model: {name: zzz}}]}", "model.name"), ("impossible run", "{grid: {pipeline.stages: [1, 99]}}", "stages"),
    ("a path through a scalar", "{grid: {name.x: [1]}}", "cannot vary"), ("dots only", '{grid: {"..": [1]}}', ""),
    ("null values", "{grid: {train.seed: [~]}}", ""), ("an empty key", '{grid: {"": [1]}}', ""),
    ("2,000 wrong runs", "{grid: {optimizer.lr: [-1], train.seed: [%s]}}" % ", ".join(map(str, range(2000))), "optimizer.lr"),
):
    case(f"sweep: {name}", HEALTHY + f"sweep: {sweep}\n", *([says] if says else []), place="x.yaml:")

# --- tables and plots: check reads them -----------------------------------------------------------------------------

for section in ("table", "plot"):
    for name, value, says in (
        ("a number", "7", f"{section} is 7"), ("a list", "[a]", f"{section} is a list"), ("a text", "abc", f"{section} is 'abc'"),
        ("unknown key", "{zzz: 1}", f"'{section}.zzz'"), ("metric a number", "{metric: 7}", f"{section}.metric"),
        ("published without a file", "{published: {match: {a: label}}}", "published.file"),
        ("published without match", "{published: {file: p.csv}}", "published.match"),
        ("published a list", "{published: [a]}", "published"), ("match a list", "{published: {file: p.csv, match: [a]}}", "match"),
        ("match a number", "{published: {file: p.csv, match: {a: 7}}}", "match"), ("hardware a number", "{hardware: 7}", "hardware"),
    ):
        case(f"{section}: {name}", HEALTHY + f"{section}: {value}\n", says, place="x.yaml:2:")
for name, text, says in (
    ("rows misspelt", "table: {rows: model.nme}", "did you mean 'model.name'"), ("columns misspelt", "table: {columns: [label, scheme.nam]}", "scheme.nam"),
    ("rows a number", "table: {rows: 7}", "table.rows"), ("rows an empty text", 'table: {rows: ""}', "table.rows"),
    ("beside a number", "table: {beside: [7]}", "table.beside"), ("epoch unknown", "table: {epoch: first}", "table.epoch"),
    ("match misspelt", "table: {published: {file: p.csv, match: {a: modl.name}}}", "modl.name"),
    ("lines misspelt", "plot: {lines: scheme.nam}", "did you mean 'scheme.name'"), ("pictures misspelt", "plot: {pictures: [optimizer.lrr]}", "optimizer.lrr"),
    ("first epoch", "plot: {published: {file: p.csv, match: {a: label}, first_epoch: 7}}", "first_epoch"),
    ("differs a number", "table: {published: {file: p.csv, match: {a: label}, differs: 7}}", "differs"),
):
    case(f"keys: {name}", HEALTHY + text + "\n", says, place="x.yaml:2:")
case("keys: rows misspelt in a sweep", HEALTHY + "table: {rows: train.sed}\nsweep: {grid: {train.seed: [1, 2]}}\n", "train.sed", at="2:15")
case("keys: lines misspelt in a sweep", HEALTHY + "plot: {lines: train.sed}\nsweep: {grid: {train.seed: [1, 2]}}\n", "train.sed", at="2:15")

# --- each value possible, together impossible ---------------------------------------------------------------------------

for name, text, says in (
    ("stages", "model: {name: mlp}\npipeline: {stages: 50}\n", "pipeline.stages is 50"),
    ("balance sums", "pipeline: {stages: 2, balance: [1, 1]}\n", "in sum 2"), ("balance too long", "pipeline: {stages: 2, balance: [1, 1, 2]}\n", ""),
    ("balance zero", "pipeline: {stages: 2, balance: [4, 0]}\n", "balance"), ("balance negative", "pipeline: {stages: 2, balance: [5, -1]}\n", "balance"),
    ("balance huge", "pipeline: {stages: 2, balance: [9223372036854775807, 9223372036854775807]}\n", "balance"),
    ("balance unknown", "pipeline: {balance: fair}\n", "'fair'"), ("balance texts", "pipeline: {stages: 2, balance: [a, b]}\n", "balance"),
    ("balance published", "pipeline: {stages: 2, balance: published}\n", ""), ("micro-batches", "pipeline: {microbatches: 33}\n", "32 samples"),
    ("micro-batches of replicas", "pipeline: {replicas: 4, microbatches: 9}\n", "8 samples per replica"),
    ("replicas", "loader: {batch_size: 2}\npipeline: {replicas: 3}\n", "batch_size"), ("placement gap", "pipeline: {stages: 2, placement: [0, 2]}\n", "worker 1"),
    ("placement short", "pipeline: {stages: 2, placement: [0]}\n", "2 stages"), ("placement huge", "pipeline: {stages: 2, placement: [0, 9999999]}\n", "placement"),
    ("data parallel", "scheme: {name: data_parallel}\npipeline: {stages: 2}\n", "one stage"), ("2bw", "scheme: {name: pipedream_2bw}\npipeline: {stages: 4, microbatches: 3}\n", "pipeline.microbatches is 3"),
    ("delay", "scheme: {name: delayed_sgd, delay: [1, 2]}\npipeline: {stages: 3}\n", "delay"),
    ("csv without a file", "scheme: {name: csv_schedule}\n", "scheme.file"), ("nesterov", "optimizer: {nesterov: true}\n", "momentum"),
    ("widths of data", "model: {widths: [10, 10]}\n", "10"), ("classes", "model: {widths: [64, 5]}\n", "classes"), ("no widths", "model: {widths: []}\n", "widths"),
    ("one width", "model: {widths: [64]}\n", "widths"), ("batch too large", "loader: {batch_size: 2000}\n", "no mini-batch"),
    ("last mini-batch", "loader: {batch_size: 10, limit_train: 13, drop_last: false}\npipeline: {microbatches: 5}\n", "3 samples"),
    ("validation", "loader: {validation: 100, limit_train: 100}\n", "validation"), ("cuda", "pipeline: {device: cuda:9}\n", "cuda"),
    ("devices", "pipeline: {stages: 3, device: [cpu, cpu]}\n", "3 workers"), ("weights format", "model: {weights: w, weights_format: torchvision}\n", "torchvision"),
    ("dataset.file", "dataset: {name: tensors}\n", "dataset.file"), ("dataset.file empty", 'dataset: {name: tensors, file: ""}\n', "dataset.file"),
    ("test without train", "dataset: {name: text, test: a.txt}\n", "dataset.test"), ("fresh", "model: {fresh: 7}\n", "fresh"),
    ("fresh of numbers", "model: {fresh: [7]}\n", "fresh"), ("milestones", "lr_schedule: {name: multistep, milestones: [-1]}\n", "milestones"),
    ("name empty", 'name: ""\n', "name"), ("name dots", "name: ..\n", "name"), ("name dot", "name: .\n", "name"), ("name a path", "name: ../../x\n", "name"),
    ("name absolute", "name: /abs/x\n", "name"), ("name a number", "name: 7\n", "name"), ("name a list", "name: [a]\n", "name"),
    ("name with a line break", 'name: "a\\nb"\n', "name"), ("name with an escape", 'name: "\\e[31mred"\n', "name"),
    ("several faults", "model: {name: mlp}\npipeline: {stages: 9, microbatches: 64}\noptimizer: {lr: -1}\n", "optimizer.lr"),
):
    case(f"together: {name}", text, *([says] if says else []), place="x.yaml:")

for scheme in ("gpipe", "one_f_one_b", "pipedream", "spectrain", "xpipe", "pipemare", "pipeoptim", "interlocking", "zb_h1", "zb_h2"):
    case(f"scheme {scheme}: unknown option", f"scheme: {{name: {scheme}, zzzqqq: 1}}\n", "'scheme.zzzqqq'", at=f"1:{len(scheme) + 18}")

# --- schedules and data that are wrong, named in an experiment -----------------------------------------------------------

for name, rows, says in (
    ("nonsense", "hello,world\n", "'hello'"), ("empty", "", "no action"), ("no micro-batch", "0F\n", "'0F'"), ("a stage missing", "0F0,0B0\n2F0,2B0\n", "stage 1"),
    ("negative", "-1F0\n", "'-1F0'"), ("overflow", "99999999999999999999F0\n", ""), ("half a pair", "(0F0;\n", "'(0F0;'"),
    ("a stage twice", "0F0,0B0\n0F0,0B0\n", "stage 0"), ("a megabyte in a cell", "x" * 1_000_000, "is no action"),
):
    case(f"csv_schedule: {name}", "scheme: {name: csv_schedule, file: s.csv}\n", *([says] if says else []), files={"s.csv": rows}, code=DATA)
case("csv_schedule: backward first", "scheme: {name: csv_schedule, file: s.csv}\n", files={"s.csv": "0B0,0F0\n"}, code=SCHEDULE)
case("csv_schedule: missing", "scheme: {name: csv_schedule, file: s.csv}\n", "s.csv", code=DATA)
case("csv_schedule: a FIFO", "scheme: {name: csv_schedule, file: s.csv}\n", "s.csv", files={"s.csv": fifo}, code=DATA)
case("csv_schedule: a device", "scheme: {name: csv_schedule, file: /dev/zero}\n", "/dev/zero", code=DATA)
for name, dataset in (("cifar10", "root"), ("fashion_mnist", "root"), ("tensors", "file"), ("text", "root"), ("imagenet_folder", "root")):
    case(f"data missing: {name}", f"dataset: {{name: {name}, {dataset}: nowhere}}\nmodel: {{name: cnn}}\n", "nowhere", code=DATA)
case("weights missing", "model: {weights: nowhere.safetensors}\n", "nowhere.safetensors", code=DATA)

if __name__ == "__main__":
    attack.main(CASES, 400, "wrong experiment files")
