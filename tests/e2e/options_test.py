# SPDX-License-Identifier: Apache-2.0
"""What is wrong in an experiment file: each fault is one line with its place, all of them at once.

`check` and `run` must say the same, with exit code 2, before anything is read or written.
"""

import harness
from harness import EXPERIMENT, plain


class Options(harness.EndToEnd):
    def refuse(self, text, *patterns):
        """The file is refused with one line per pattern, and nothing is left behind."""
        self.write("x.yaml", text)
        with self.subTest(text):
            self.assert_errors(self.pipewright("check", "x.yaml", code=EXPERIMENT), *patterns)
            self.assert_errors(self.pipewright("run", "x.yaml", "--out", "out", code=EXPERIMENT), *patterns)
        self.assertFalse((self.folder / "out").exists())

    def test_an_unknown_key_is_named_with_the_nearest(self):
        self.refuse(
            "scheme: {name: spectrain, verison: 1}\n",
            r"^x\.yaml:1:27: unknown option 'scheme\.verison'; did you mean 'version'\?$",
        )
        self.refuse(
            "name: a\noptimzer: {name: sgd}\n",
            r"^x\.yaml:2:1: unknown option 'optimzer'; did you mean 'optimizer'\?$",
        )
        self.refuse(
            "lr_schedule: {name: poly, pover: 2}\n",
            r"^x\.yaml:1:27: .*'lr_schedule\.pover'; did you mean 'power'\?$",
        )

    def test_a_duplicate_key_names_the_first(self):
        self.refuse(
            "train: {epochs: 1, epochs: 2}\n",
            r"^x\.yaml:1:20: .*'epochs' is given twice, first in line 1, column 9",
        )
        self.refuse(
            "train: {epochs: 1}\ntrain: {seed: 2}\n",
            r"^x\.yaml:2:1: .*'train' is given twice, first in line 1",
        )

    def test_a_missing_key_names_its_section(self):
        self.refuse(
            "dataset: {name: tensors}\n",
            r"^x\.yaml:1:\d+: dataset\.file is missing; expected the path of a file or folder$",
        )
        self.refuse(
            "scheme: {name: csv_schedule, file: ''}\n",
            r"^x\.yaml:1:36: scheme\.file is empty; expected the path of a file or folder$",
        )

    def test_a_key_cannot_begin_a_line_of_its_own(self):
        """Else a file that somebody was sent could say in our name what it likes."""
        self.refuse(
            '"a\\nx.yaml:1:1: all is well": 1\nmodel: {name: mlp, "b\\ny.yaml:1:1: c": 1}\n',
            r"^x\.yaml:1:1: unknown option 'a\\nx\.yaml:1:1: all is well'; known: ",
            r"^x\.yaml:2:20: unknown option 'model\.b\\ny\.yaml:1:1: c'; known: ",
        )
        self.assert_errors(
            self.pipewright("check", "a\nb.yaml:1:1: c.yaml", code=EXPERIMENT), r"^a\\nb\.yaml:1:1: c\.yaml: cannot open"
        )
    def test_a_wrong_type_shows_the_value_and_what_is_expected(self):
        self.refuse(
            "train: {epochs: 1.5}\n", r"^x\.yaml:1:17: train\.epochs is 1\.5; expected a whole number"
        )
        self.refuse(
            "loader: {batch_size: many}\n",
            r"^x\.yaml:1:22: loader\.batch_size is 'many'; expected a whole number",
        )
        self.refuse(
            'optimizer: {lr: "0.1"}\n', r"^x\.yaml:1:17: optimizer\.lr is '0\.1'; expected a number.*quotes"
        )
        self.refuse(
            "pipeline: {timeout: 0}\n",
            r"^x\.yaml:1:21: pipeline\.timeout is 0; expected a number from 0\.001 to ",
        )
        self.refuse("output: {steps: 1}\n", r"^x\.yaml:1:17: output\.steps is 1; expected true or false")
        self.refuse("model: mlp\n", r"^x\.yaml:1:8: model is 'mlp'; expected a mapping.*\{name: mlp\}")
        self.refuse("model: {widths: 12}\n", r"^x\.yaml:1:17: model\.widths is 12; expected a list")

    def test_a_word_that_other_yaml_readers_change_is_refused_with_what_is_meant(self):
        self.refuse("name: yes\n", r"^x\.yaml:1:7: 'yes' .*write true, or \"yes\"")
        self.refuse("loader: {shuffle: off}\n", r"^x\.yaml:1:19: 'off' .*write false")
        self.refuse("train: {epochs: 010}\n", r"^x\.yaml:1:17: '010' .*write 10")
        self.refuse("train: {seed: 0x10}\n", r"^x\.yaml:1:15: '0x10' .*write 16")
        self.refuse("train: {epochs: 1_000}\n", r"^x\.yaml:1:17: '1_000' .*write 1000")
        self.refuse("optimizer: {lr: .inf}\n", r"^x\.yaml:1:17: '\.inf' is not a finite number")

    def test_an_unknown_name_lists_the_known_ones(self):
        self.refuse(
            "scheme: {name: gpip}\nmodel: {name: mlpp}\ndataset: {name: digit}\noptimizer: {name: sdg}\n",
            r"^x\.yaml:1:16: scheme\.name is 'gpip'; expected .*gpipe.*did you mean 'gpipe'\?$",
            r"^x\.yaml:2:15: model\.name is 'mlpp'; .*did you mean 'mlp'\?$",
            r"^x\.yaml:3:17: dataset\.name is 'digit'; .*did you mean 'digits'\?$",
            r"^x\.yaml:4:19: optimizer\.name is 'sdg'; expected .*sgd",
        )

    def test_what_is_no_experiment_at_all(self):
        self.refuse("", r"^x\.yaml:1:1: the file is empty")
        self.refuse("[1, 2]\n", r"^x\.yaml:1:1: the file is a list")
        self.refuse("just words\n", r"^x\.yaml:1:1: the file is no experiment; expected options such as")
        self.refuse("model: {name: mlp\n", r"^x\.yaml:\d+:\d+: .*'\{'")
        self.refuse("train:\n\tepochs: 1\n", r"^x\.yaml:2:1: .*tab")

    def test_a_file_that_is_not_there(self):
        self.assert_errors(
            self.pipewright("check", "no.yaml", code=EXPERIMENT), r"^no\.yaml: .*no such file|No such file"
        )

    def test_bytes_that_are_no_text(self):
        self.write("x.yaml", bytes(range(256)))
        done = self.pipewright("check", "x.yaml", code=EXPERIMENT)
        self.assertEqual(len(done.lines), 1, done.err)
        self.assertRegex(done.err, r"^x\.yaml:")

    def test_unknown_keys_and_wrong_types_are_told_together(self):
        self.refuse(
            "name: a\nscheme: {name: gpipe, version: 1}\noptimzer: {name: sgd}\ntrain: {epochs: -1}\nloader: {batch_size: many}\n",
            r"^x\.yaml:2:23: unknown option 'scheme\.version'",
            r"^x\.yaml:3:1: unknown option 'optimzer'",
            r"^x\.yaml:4:17: train\.epochs is -1",
            r"^x\.yaml:5:22: loader\.batch_size is 'many'",
        )

    def test_refused_spellings_do_not_hide_the_other_faults(self):
        self.refuse(
            "scheme: {name: gpipe, verison: 1}\ntrain: {epochs: 010}\nname: yes\nloader: {batch_size: many}\n",
            r"^x\.yaml:1:23: unknown option 'scheme\.verison'",
            r"^x\.yaml:2:17: '010'",
            r"^x\.yaml:3:7: 'yes'",
            r"^x\.yaml:4:22: loader\.batch_size is 'many'",
        )

    def test_duplicate_keys_do_not_hide_the_other_faults(self):
        self.refuse(
            "train: {epochs: 1, epochs: 2}\noptimizer: {lr: -1}\nbogus: 3\n",
            r"^x\.yaml:1:20: .*'epochs' is given twice",
            r"^x\.yaml:2:17: optimizer\.lr is -1",
            r"^x\.yaml:3:1: unknown option 'bogus'",
        )

    def test_the_sections_of_sweeps_and_tables_are_checked_too(self):
        self.write("x.yaml", "sweep: {gird: {train.seed: [1]}}\ntable: {rows: label, metrics: 2}\n")
        self.assert_errors(
            self.pipewright("check", "x.yaml", code=EXPERIMENT),
            r"^x\.yaml:1:9: unknown option 'sweep\.gird'; .*grid",
            r"^x\.yaml:2:22: unknown option 'table\.metrics'; did you mean 'metric'\?$",
        )

    def test_an_error_in_a_base_file_has_its_place_there(self):
        self.write("base.yaml", "train: {epochs: 2}\noptimizer: {lr: -3}\n")
        self.refuse(
            "extends: base.yaml\nscheme: {nam: gpipe}\n",
            plain("base.yaml:2:17: optimizer.lr is -3"),
            r"^x\.yaml:2:10: unknown option 'scheme\.nam'; did you mean 'name'\?$",
        )


if __name__ == "__main__":
    harness.main()
