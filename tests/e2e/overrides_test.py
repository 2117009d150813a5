# SPDX-License-Identifier: Apache-2.0
"""Where values come from: extends, profiles and --set, each over the one before."""

import harness
from harness import EXPERIMENT, FINE, changed

SMALL = {"loader": {"batch_size": 16, "limit_train": 32, "limit_test": 16}, "train": {"epochs": 0}}


class Overrides(harness.EndToEnd):
    def resolved(self, file, *flags):
        """The lines of the resolved experiment, as {dotted key: text}."""
        self.pipewright("run", file, "--quiet", "--out", "out", "--overwrite", *flags)
        values, path = {}, []
        for line in (self.folder / "out/experiment.yaml").read_text().splitlines():
            depth = (len(line) - len(line.lstrip())) // 2
            key, _, value = line.strip().partition(":")
            path = path[:depth] + [key]
            if value:
                values[".".join(path)] = value.strip()
        return values

    def test_set_changes_one_value_or_a_whole_section(self):
        self.write("x.yaml", changed(SMALL, {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}}))
        values = self.resolved(
            "x.yaml",
            "--set",
            "optimizer.lr=1e-3",
            "--set",
            "train.seed=7",
            "--set",
            "scheme={name: spectrain, version: 2}",
        )
        self.assertEqual((values["optimizer.lr"], values["train.seed"]), ("0.001", "7"))
        self.assertEqual((values["scheme.name"], values["scheme.version"]), ("spectrain", "2"))
        self.assertEqual(values["optimizer.momentum"], "0.9")

    def test_a_mapping_with_a_name_replaces_the_old_one(self):
        self.write("base.yaml", changed(SMALL, {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9}}))
        self.write("x.yaml", "extends: base.yaml\noptimizer: {name: adam}\nloader: {batch_size: 8}\n")
        values = self.resolved("x.yaml")
        self.assertEqual((values["optimizer.name"], values["optimizer.lr"]), ("adam", "0.001"))
        self.assertNotIn("optimizer.momentum", values)
        self.assertEqual((values["loader.batch_size"], values["loader.limit_train"]), ("8", "32"))

    def test_a_chain_of_files_in_other_folders(self):
        self.write("a/top.yaml", SMALL)
        self.write("a/b/middle.yaml", "extends: ../top.yaml\ntrain: {seed: 2}\noptimizer: {lr: 0.25}\n")
        self.write("x.yaml", "extends: a/b/middle.yaml\ntrain: {seed: 3}\n")
        values = self.resolved("x.yaml")
        self.assertEqual(
            (values["train.seed"], values["optimizer.lr"], values["train.epochs"], values["name"]),
            ("3", "0.25", "0", "x"),
        )

    def test_profiles_stand_above_the_file_and_below_set(self):
        self.write(
            "base.yaml", changed(SMALL, {"profiles": {"laptop": {"train.seed": 5, "optimizer.lr": 0.5}}})
        )
        self.write(
            "x.yaml", "extends: base.yaml\ntrain: {seed: 4}\nprofiles: {laptop: {optimizer.lr: 0.75}}\n"
        )
        self.assertEqual(self.resolved("x.yaml")["train.seed"], "4")
        values = self.resolved("x.yaml", "--profile", "laptop")
        self.assertEqual((values["train.seed"], values["optimizer.lr"]), ("5", "0.75"))
        self.assertEqual(
            self.resolved("x.yaml", "--profile", "laptop", "--set", "train.seed=6")["train.seed"], "6"
        )

    def refuse(self, pattern, *flags):
        self.write("x.yaml", changed(SMALL, {"profiles": {"laptop": {"train.seed": 5}}}))
        self.assert_errors(self.pipewright("check", "x.yaml", *flags, code=EXPERIMENT), pattern)

    def test_faults_of_set(self):
        self.refuse(r"^--set.*'epochs'; expected KEY=VALUE", "--set", "epochs")
        self.refuse(
            r"^--set.*unknown option 'train\.epoch'; did you mean 'epochs'\?", "--set", "train.epoch=3"
        )
        self.refuse(r"^--set train\.seed.*'010'.*write 10", "--set", "train.seed=010")
        self.refuse(r"^--set.*train\.epochs is 'many'", "--set", "train.epochs=many")
        self.refuse(r"^--set.*'name\.x' cannot be set", "--set", "name=a", "--set", "name.x=1")
        self.refuse(r"^--set.*'extends' cannot be set here", "--set", "extends=y.yaml")
        self.refuse(r"^--set", "--set", "scheme={name: gpipe")

    def test_faults_of_profiles(self):
        self.refuse(r"^--profile: unknown profile 'labtop'; did you mean 'laptop'\?", "--profile", "labtop")
        self.write("y.yaml", "profiles: {a: {train.epoch: 3}}\n")
        self.assert_errors(
            self.pipewright("check", "y.yaml", "--profile", "a", code=EXPERIMENT),
            r"^y\.yaml:1:16: unknown option 'train\.epoch'",
        )

    def test_faults_of_extends(self):
        self.write("y.yaml", "extends: missing.yaml\n")
        self.assert_errors(
            self.pipewright("check", "y.yaml", code=EXPERIMENT),
            r"^y\.yaml:1:10: extends 'missing\.yaml', but there is no file",
        )
        self.write("a.yaml", "extends: b.yaml\n")
        self.write("b.yaml", "extends: a.yaml\n")
        self.assert_errors(self.pipewright("check", "a.yaml", code=EXPERIMENT), r"^b\.yaml:1:10: .*circle")

    def test_json_is_yaml_and_quoted_words_are_texts(self):
        self.write("x.yaml", SMALL | {"name": "yes"})
        self.assertEqual(self.resolved("x.yaml")["name"], '"yes"')
        self.pipewright("check", "out/experiment.yaml", code=FINE)

    def test_numbers_with_exponents_are_numbers(self):
        self.write(
            "x.yaml",
            "loader: {batch_size: 16, limit_train: 32, limit_test: 16}\noptimizer: {lr: 1e-3}\ntrain: {epochs: 0, seed: 12}\n",
        )
        self.assertEqual(self.resolved("x.yaml")["optimizer.lr"], "0.001")


if __name__ == "__main__":
    harness.main()
