"""`model.weights`: exactly this model's names and shapes, or exit 3 and nothing is trained."""

import harness
import safetensors
from harness import CNN, DATA, MLP, changed
from safetensors import tensor

FROM_FILE = changed(MLP, {"model.weights": "init.safetensors"})


class Weights(harness.EndToEnd):
    def initial(self, experiment=MLP):
        return self.train(changed(experiment, {"train.epochs": 0}), "initial", "--overwrite").tensors()

    def refuse(self, content, *patterns):
        self.write(
            "init.safetensors", content if isinstance(content, bytes) else safetensors.encoded(content)
        )
        self.write("x.yaml", FROM_FILE)
        done = self.pipewright("check", "x.yaml", code=DATA)
        self.assertEqual(len(done.lines), 1, done.err)
        self.assertTrue(done.err.startswith(f"{self.folder}/init.safetensors: "), done.err)
        for pattern in patterns:
            self.assertRegex(done.err, pattern)
        done = self.pipewright("run", "x.yaml", "--out", "out", "--overwrite", code=DATA)
        self.assertRegex(done.err, patterns[0])
        self.assertFalse((self.folder / "out/final.safetensors").exists())
        return done

    def test_what_a_run_leaves_can_be_begun_from(self):
        for base in (MLP, changed(CNN, {"train.epochs": 1})):
            weights = self.initial(base)
            self.write("init.safetensors", safetensors.encoded(weights))
            started = changed(base, {"model.weights": "init.safetensors", "train.seed": 1})
            self.assert_same_weights(
                self.train(base, "plain", "--overwrite"), self.train(started, "started", "--overwrite")
            )

    def test_the_order_in_the_file_and_the_cut_do_not_matter(self):
        weights = self.initial()
        self.write("init.safetensors", safetensors.encoded(dict(reversed(weights.items()))))
        for stages in (1, 4):
            run = self.train(
                changed(FROM_FILE, {"pipeline.stages": stages, "train.epochs": 0}), f"stages{stages}"
            )
            self.assertEqual(run.tensors(), weights)

    def test_every_name_has_the_given_values(self):
        given = {
            name: tensor("F64", t.shape, [0.125 * i for i in range(len(t.data) // 4)])
            for name, t in self.initial().items()
        }
        self.write("init.safetensors", safetensors.encoded(given))
        run = self.train(changed(FROM_FILE, {"train.epochs": 0}), "out")
        for name, found in run.tensors().items():
            self.assertEqual(safetensors.values(found), safetensors.values(given[name]))

    def test_missing_surplus_and_misshapen_names_are_told_together(self):
        weights = self.initial()
        weights["2.wieght"] = weights.pop("2.weight")
        weights["surplus"] = tensor("F32", [1], [0])
        weights["3.bias"] = tensor("F32", [11], [0] * 11)
        self.refuse(
            weights,
            r"'2\.weight' is missing",
            r"'3\.bias' is 11, the model's is 10",
            r"'2\.wieght' is left over; did you mean '2\.weight'",
            r"'surplus' is left over",
        )

    def test_heads_are_part_of_the_names_where_there_are_some(self):
        self.write("init.safetensors", safetensors.encoded(self.initial()))
        self.write("x.yaml", changed(FROM_FILE, {"scheme": {"name": "interlocking"}}))
        self.assert_errors(
            self.pipewright("check", "x.yaml", code=DATA),
            r"'heads\.0\.weight' is missing.*'heads\.0\.bias' is missing",
        )

    def test_a_truncated_file_and_one_of_another_format(self):
        whole = safetensors.encoded(self.initial())
        for content in (whole[:-1], whole[:20], whole[:4], b"", b"just text, no tensors", bytes(4096)):
            with self.subTest(content[:8]):
                self.refuse(content, r"init\.safetensors: .")

    def test_tensors_that_overlap(self):
        whole = safetensors.encoded(self.initial())
        self.refuse(whole.replace(b'"data_offsets": [0, ', b'"data_offsets": [4, '), r"init\.safetensors: .")

    def test_check_makes_no_tensor_to_compare_them(self):
        """The file is a header and a hole of 160 GB; the model would be as large."""
        most = 200_000
        shapes = {"0.weight": [most, 64], "0.bias": [most], "1.weight": [most, most], "1.bias": [most],
                  "2.weight": [10, most], "2.bias": [10]}
        safetensors.write_hole(self.folder / "hole.safetensors", shapes)
        widths = {"model.widths": [64, most, most, 10], "model.weights": "hole.safetensors"}
        self.write("x.yaml", changed(MLP, widths))
        self.assertIn("40015200010", self.pipewright("check", "x.yaml").out)
        wrong = self.pipewright("check", "x.yaml", "--set", f"model.widths=[64, {most}, {most - 1}, 10]", code=DATA)
        self.assert_errors(wrong, rf"'1\.weight' is {most}×{most}, the model's is {most - 1}×{most}")

    def test_a_file_that_is_not_there(self):
        self.write("x.yaml", FROM_FILE)
        for command in (("check", "x.yaml"), ("run", "x.yaml", "--out", "out")):
            self.assert_errors(
                self.pipewright(*command, code=DATA), rf"^{self.folder}/init\.safetensors: .*no such file"
            )


if __name__ == "__main__":
    harness.main()
