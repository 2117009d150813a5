# SPDX-License-Identifier: Apache-2.0
"""Byte-pair encoding of words against the package subword-nmt, and the splitting of punctuation
against sacrebleu, on the whole of Multi30k.

$PIPEWRIGHT_TOKENIZE_PROBE is the built tokenize_probe; the data are those beside the repository.
"""

import gzip
import io
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import skips
from sacrebleu.tokenizers import tokenizer_13a
from subword_nmt import apply_bpe, learn_bpe

DATA = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"]).parent / "shared" / "data" / "multi30k" / "task1" / "raw"
PROBE = os.environ["PIPEWRIGHT_TOKENIZE_PROBE"]
# subword-nmt takes minutes for all of them; a rarer pair is merged later, by the same rule.
MERGES = int(os.environ.get("PIPEWRIGHT_JOINT_MERGES", "3000"))


def lines_of(name):
    with gzip.open(DATA / name, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def probe(*arguments, lines):
    text = "".join(line + "\n" for line in lines).encode()
    done = subprocess.run([PROBE, *arguments], input=text, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().split("\n")[:-1]


class JointBpe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not DATA.is_dir():
            skips.lacks("real-data", f"there is no folder {DATA}")
        split = tokenizer_13a.Tokenizer13a()
        cls.raw = lines_of("train.en.gz") + lines_of("train.de.gz")
        cls.lines = [split(line) for line in cls.raw]
        codes = io.StringIO()
        learn_bpe.learn_bpe(io.StringIO("".join(line + "\n" for line in cls.lines)), codes, MERGES)
        cls.codes = codes.getvalue()

    def test_punctuation_is_split_off_as_by_sacrebleu(self):
        self.assertEqual(probe("13a", lines=self.raw), self.lines)

    def test_the_same_merges_are_learnt(self):
        self.assertEqual(probe("learn", str(MERGES), lines=self.lines), self.codes.split("\n")[1:-1])

    def test_words_are_cut_into_the_same_parts(self):
        bpe = apply_bpe.BPE(io.StringIO(self.codes))
        with tempfile.NamedTemporaryFile("w", suffix=".codes", encoding="utf-8") as codes:
            codes.write(self.codes)
            codes.flush()
            made = probe("joint", codes.name, lines=self.lines)
        self.assertEqual(made, [bpe.process_line(line) for line in self.lines])


if __name__ == "__main__":
    skips.main()
