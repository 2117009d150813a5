# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE against the transformers package, on real sentences in two languages.

$PIPEWRIGHT_TOKENIZE_PROBE is the built tokenize_probe; the data are those beside the repository.
"""

import gzip
import itertools
import os
import subprocess
import tarfile
import unittest
from pathlib import Path

import skips
import transformers

DATA = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).parent / "shared" / "data"
BPE = DATA / "gpt2_bpe"
PROBE = os.environ["PIPEWRIGHT_TOKENIZE_PROBE"]
EACH = 3000  # sentences of each text

# What real sentences seldom have. Nothing of Unicode 15 or later: the two programs' tables differ.
RARE = (
    "I'll say we've won, it's theirs: they'd go, I'm sure you're not; DON'T",
    "  two  spaces\tand\ttabs ",
    "naïve café – Œuvre, Straße, Привет мир, 東京タワー",
    "👍🏽 family 👨‍👩‍👧 ok",
    "x²+½=3.14159 ٣٤ Ⅳ",
    "a\u180eb\u00a0c\u3000d\u2028e\u0085f\u001cg\u200bh\ufeffi\u1680j",
    "e\u0301 ʼs ’s '' 's'S",
    "\x01\x7f\u00ad",
    "a" * 500 + " " * 50,
    "",
)


def lines_of(path, unpack=open):
    with unpack(DATA / path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in itertools.islice(file, EACH)]


def real_texts():
    yield [line.split("\t")[3] for line in lines_of("glue_data/CoLA/train.tsv")]
    yield [line.split("\t")[1] for line in lines_of("glue_data/RTE/train.tsv")]
    yield lines_of("multi30k/task1/raw/train.en.gz", gzip.open)
    yield lines_of("multi30k/task1/raw/train.de.gz", gzip.open)
    yield lines_of("wikitext-2/wiki.test.tokens.gz", gzip.open)
    with tarfile.open(DATA / "aclImdb/aclImdb_10k.tar.gz") as archive:
        names = sorted(n for n in archive.getnames() if "/test/pos/" in n)[: EACH // 4]
        yield [archive.extractfile(name).read().decode() for name in names]


def sentences():
    lines = [line for text in real_texts() for line in text]
    return [line.replace("\n", " ") for line in lines] + list(RARE)


def probe(*arguments, lines):
    done = subprocess.run(
        [PROBE, *arguments], input="".join(line + "\n" for line in lines).encode(), stdout=subprocess.PIPE, check=True
    )
    return [[int(token) for token in line.split()] for line in done.stdout.decode().splitlines()]


class ByteBpe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not BPE.is_dir():
            skips.lacks("real-data", f"there is no folder {BPE}")
        files = str(BPE / "encoder.json"), str(BPE / "vocab.bpe")
        cls.lines = sentences()
        slow, fast = transformers.GPT2Tokenizer(*files), transformers.GPT2TokenizerFast(*files)
        cls.wanted = [slow(line)["input_ids"] for line in cls.lines]
        cls.fast = [fast(line)["input_ids"] for line in cls.lines]

    def compare(self, wanted, made):
        self.assertEqual(len(wanted), len(made))
        for line, one, other in zip(self.lines, wanted, made):
            self.assertEqual(one, other, line)

    def test_both_references_agree_and_there_is_much_to_compare(self):
        self.assertGreater(len(self.lines), 10_000)
        self.compare(self.wanted, self.fast)

    def test_tokens_are_those_of_gpt2(self):
        self.compare(self.wanted, probe("byte", str(BPE), lines=self.lines))

    def test_tokens_are_those_of_roberta(self):
        order = [line.split()[0] for line in (BPE / "dict.txt").read_text().splitlines()]
        ids = {int(symbol): 4 + i for i, symbol in enumerate(order) if symbol.isdigit()}
        wanted = [[ids[token] for token in tokens] for tokens in self.wanted]
        self.compare(wanted, probe("roberta", str(BPE), lines=self.lines))


if __name__ == "__main__":
    skips.main()
