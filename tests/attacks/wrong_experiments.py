# SPDX-License-Identifier: Apache-2.0
"""Experiment files that are hostile, or wrong in every option: each is refused with exit code 2 (3 where it says so), a
line with the place of the fault, within 2 s of processor time and 256 MiB. Ordinary mistakes are in ../cases.
"""

import itertools

import attack
from attack import DATA, EXPERIMENT, Case, fifo, folder, hole, link, listening

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
    "pipeline.stages pipeline.microbatches pipeline.replicas pipeline.threads pipeline.fetch_ahead train.epochs train.seed "
    "train.steps train.evaluate_every train.evaluate.every train.checkpoint.every translation.beam translation.max_length lr_schedule.size "
    "lr_schedule.warmup.length perturb.gradient_delay perturb.stale_batch_norm"
).split()
NUMBERS = (
    "optimizer.lr optimizer.momentum optimizer.weight_decay lr_schedule.gamma lr_schedule.power lr_schedule.end_lr "
    "lr_schedule.constant lr_schedule.warmup.share lr_schedule.warmup.start loss.label_smoothing pipeline.cut.bandwidth perturb.weight_noise"
).split()
FLAGS = "loader.shuffle loader.drop_last loader.reshuffle pipeline.cut.each optimizer.nesterov output.steps output.trace output.tensorboard".split()
CHOICES = (
    "loss.average pipeline.execution pipeline.recompute pipeline.offload pipeline.batch_norm train.precision train.gradient train.drain "
    "train.checkpoint.unit train.evaluate.unit lr_schedule.name lr_schedule.per model.weights_format model.activation"
).split()
LISTS = "optimizer.no_decay pipeline.placement model.widths lr_schedule.milestones".split()
SECTIONS = (
    "dataset loader model loss translation pipeline scheme optimizer lr_schedule train output pipeline.compression "
    "perturb"
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
for section in ("dataset", "model", "loss", "scheme", "optimizer", "pipeline.compression"):
    for value, shown in (("zzzqqq", "'zzzqqq'"), ("17", "17"), ("[mlp]", "a list"), ("../mlp", "'../mlp'")):
        text, at = in_section(f"{section}.name", value)
        case(f"{section}.name={value}", text, f"{section}.name", shown, at=at)
# --- bytes that are no text ---------------------------------------------------------------------------

for name, content, says, at in (
    ("none", b"", "empty", "1:1"),
    ("only spaces", b"   \n\n   \n", "empty", "1:1"),
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
extends("base is empty", "", "empty", at="base.yaml:1:1: ")
case("extends: a name too long", f"extends: {'x' * 4000}\n", at="1:10")
case("extends: a chain of 2,000", "extends: 1.yaml\n", "", place="",
     files={f"{i}.yaml": f"extends: {i + 1}.yaml\n" for i in range(1, 2000)})
for name, sets, says in (
    ("two documents", "name=a\n---\nb", "document"), ("a long key", "x" * 100_000 + "=1", "100,000 bytes"),
    ("a long text", "y" * 100_000, "expected KEY=VALUE"),
):
    case(f"set: {name}", HEALTHY, says, command=("check", "x.yaml", "--set", sets), place="--set")

# --- sweeps of very many runs ---------------------------------------------------------------------------------------

for name, sweep, says in (
    ("10^9 runs", "{grid: {train.seed: [%s], loader.batch_size: [%s], train.epochs: [%s]}}" % ((", ".join(map(str, range(1, 1001))),) * 3), "at most"),
    ("2,000 wrong runs", "{grid: {optimizer.lr: [-1], train.seed: [%s]}}" % ", ".join(map(str, range(2000))), "optimizer.lr"),
):
    case(f"sweep: {name}", HEALTHY + f"sweep: {sweep}\n", says, place="x.yaml:")

# --- every scheme ----------------------------------------------------------------------------------------------------

for scheme in ("gpipe", "one_f_one_b", "pipedream", "spectrain", "xpipe", "pipemare", "pipeoptim", "interlocking", "zb_h1", "zb_h2", "zb_v", "v_half", "v_min",
               "hanayo", "seq1f1b", "amdp", "chimera", "dualpipe", "dualpipe_v", "paci", "lwp", "features_replay"):
    case(f"scheme {scheme}: unknown option", f"scheme: {{name: {scheme}, zzzqqq: 1}}\n", "'scheme.zzzqqq'", at=f"1:{len(scheme) + 18}")

# --- schedules that are none, named in an experiment -----------------------------------------------------------

for name, rows, says in (("empty", "", "no action"), ("a megabyte in a cell", "x" * 1_000_000, "is no schedule")):
    case(f"csv_schedule: {name}", "scheme: {name: csv_schedule, file: s.csv}\n", says, files={"s.csv": rows}, code=DATA)
case("csv_schedule: a FIFO", "scheme: {name: csv_schedule, file: s.csv}\n", "s.csv", files={"s.csv": fifo}, code=DATA)
case("csv_schedule: a device", "scheme: {name: csv_schedule, file: /dev/zero}\n", "/dev/zero", code=DATA)

if __name__ == "__main__":
    attack.main(CASES, 340, "wrong experiment files")
