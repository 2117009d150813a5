# SPDX-License-Identifier: Apache-2.0
"""A page of `pipewright report` read as a strict reader would, and an experiment that fills all its sections."""

import html
import json
import re
from html.parser import HTMLParser

from harness import MLP, changed

EMPTY = {"meta", "link", "br", "img", "input", "hr"}
# What a page may load, run or lead to only if it says so; ours has none of them.
ACTIVE = {"iframe", "object", "embed", "img", "link", "base", "form", "video", "audio", "image", "use", "foreignobject"}
# Texts that would act if they were let in.
HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"><svg onload='window.hacked=1'>",
    "' onclick='window.hacked=1",
    "</title></style><h1>forged",
    "a\u202eb\u0007\u001b[31mc",
    "&lt;b&gt; & <b>",
]
QUESTION = "Does a stale gradient cost accuracy on digits?"
CLAIM = "Staleness costs <em>much</em>"


class Page(HTMLParser):
    """Texts and elements of a page whose every element is closed where it must be."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.faults = text, [], []
        self.elements, self.words, self.links, self.ids = [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"never closed: {each}" for each in self.open]

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        facts = dict(attributes)
        for name in facts:
            if name.startswith("on") or name in ("style", "src", "srcset", "action", "xlink:href"):
                self.faults.append(f"{tag} has {name}={facts[name]}")
        if tag in ACTIVE:
            self.faults.append(f"there is a {tag}")
        if "href" in facts:
            self.links.append(facts["href"])
        if "id" in facts:
            self.ids.append(facts["id"])
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        # A list's items and such are closed by us, too.
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]} at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def said(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def all(self, tag, **facts):
        return [
            each for name, each in self.elements if name == tag and all(each.get(k) == v for k, v in facts.items())
        ]

    def charts(self):
        """Each chart: its title, the names of its axes, and its lines with what their points say."""
        return [chart_of(figure) for figure in re.findall(r'<figure class="chart">.*?</figure>', self.text, re.S)]


def chart_of(figure):
    title = re.search(r"<figcaption>(.*?)</figcaption>", figure)
    axes = re.search(r'aria-label="(.*?); arrows', figure)[1]
    names = re.findall(r"<li>.*?<span>(.*?)(?: \([^()]*runs?[^()]*\))?</span></li>", figure)
    lines = [{"name": html.unescape(name), "points": [], "parts": 0, "crosses": 0} for name in names]
    for number, group in re.findall(r'<g data-line="(\d+)">\n(.*?)</g>', figure, re.S):
        line = lines[int(number)]
        line["crosses"] += group.count('class="cross ')
        for drawn in re.findall(r'<path class="line [^>]* d="(.*?)"', group):
            line["parts"] += drawn.count("M")
        for look, y, reach, runs, x in re.findall(
            r'class="mark c(\d)"><title>.*?: (\S+?)(?: ± (\S+))?(?: \((\d+) runs\))?, [^<]*? (\S+)</title>', group
        ):
            line["look"] = int(look)
            line["points"].append((x, float(y), float(reach or 0), int(runs or 1)))
    return {"title": html.unescape(title[1]) if title else "", "axes": axes, "lines": lines}


def experiment(labels=("PipeDream", "GPipe"), seeds=(1, 2, 3)):
    """Two schemes in two and four stages, traced and probed, of which one diverges in four stages."""
    points = [
        {"label": labels[0], "scheme": {"name": "pipedream"}, "pipeline.stages": stages} for stages in (2, 4)
    ] + [
        {"label": labels[1], "scheme": {"name": "gpipe"}, "pipeline.stages": 2, "pipeline.microbatches": 2},
        {"label": "diverges", "scheme": {"name": "pipedream"}, "pipeline.stages": 4, "optimizer.lr": 1e9},
    ]
    value = changed(
        MLP,
        {
            "model": {"name": "mlp", "widths": [64, 32, 24, 16, 10]},
            "loader.limit_train": 320,
            "loader.limit_test": 160,
            "train.epochs": 3,
            "output.trace": True,
            "pipeline.execution": "threads",
            "probes": [{"name": "weight_gap", "every": 4}],
            "sweep": {"points": points, "grid": {"train.seed": list(seeds)}},
            "table": {"rows": "label", "columns": "pipeline.stages", "metric": "test_accuracy"},
            "claims": [
                {
                    "say": CLAIM,
                    "less": [{"label": labels[0], "pipeline.stages": 4}, {"label": labels[0], "pipeline.stages": 2}],
                }
            ],
        },
    )
    return f"# yaml-language-server: $schema=x.json\n# {QUESTION}\n#\n# More of it <b>here</b>.\n#   pipewright sweep s.yaml\n{json.dumps(value)}\n"


def with_a_hole():
    """Mini-batches of three sizes, of which the runs with the middle one diverge."""
    points = [
        {"label": "a", "loader.batch_size": size, "optimizer.lr": lr, "train.seed": seed}
        for size, lr, seeds in ((8, 0.02, [1]), (16, 1e30, [1, 2]), (32, 0.02, [1]))
        for seed in seeds
    ]
    return json.dumps(changed(MLP, {"sweep": {"points": points}, "table": {"rows": "label"}}))
