# SPDX-License-Identifier: Apache-2.0
"""`model.weights`: exactly this model's names and shapes, or exit 3 and nothing is trained."""

import re
import struct

import harness
import safetensors
from harness import CNN, DATA, EXPERIMENT, MLP, changed, plain
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
            r"'2\.weight' is not in the file",
            r"'3\.bias' has the shape 11, the model's has 10",
            r"'2\.wieght' is in the file, but not in the model; did you mean '2\.weight'",
            r"'surplus' is in the file, but not in the model",
        )

    def test_heads_are_part_of_the_names_where_there_are_some(self):
        self.write("init.safetensors", safetensors.encoded(self.initial()))
        self.write("x.yaml", changed(FROM_FILE, {"scheme": {"name": "interlocking"}}))
        self.assert_errors(
            self.pipewright("check", "x.yaml", code=DATA),
            r"'heads\.0\.weight' is not in the file.*'heads\.0\.bias' is not in the file",
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
        done = self.pipewright("check", "x.yaml", code=DATA)
        self.assertIn("40015200010", done.out)
        self.assert_errors(done, "stage 1: its parameters, gradients and optimizer state need 447.06 GiB; this machine has")
        elsewhere = self.pipewright("check", "x.yaml", "--set", "pipeline.execution=mpi")
        self.assertRegex(elsewhere.out, "memory      447.20 GiB .*; this machine has")
        wrong = self.pipewright("check", "x.yaml", "--set", f"model.widths=[64, {most}, {most - 1}, 10]", code=DATA)
        self.assert_errors(wrong, rf"'1\.weight' has the shape {most}×{most}, the model's has {most - 1}×{most}")

    def test_a_file_that_is_not_there(self):
        self.write("x.yaml", FROM_FILE)
        for command in (("check", "x.yaml"), ("run", "x.yaml", "--out", "out")):
            self.assert_errors(
                self.pipewright(*command, code=DATA), rf"^{self.folder}/init\.safetensors: .*no such file"
            )

    def test_half_precision_becomes_the_run_s(self):
        given = {name: [0.125 * (i % 512) for i in range(len(t.data) // 4)] for name, t in self.initial().items()}
        shapes = {name: t.shape for name, t in self.initial().items()}
        upper_halves = lambda x: struct.unpack(f"<{2 * len(x)}H", struct.pack(f"<{len(x)}f", *x))[1::2]
        for dtype, encode in (("F16", list), ("BF16", upper_halves)):
            content = {name: tensor(dtype, shapes[name], encode(x)) for name, x in given.items()}
            self.write("init.safetensors", safetensors.encoded(content))
            for precision, code in (("float32", "F32"), ("float64", "F64")):
                sets = {"train.epochs": 0, "train.precision": precision}
                run = self.train(changed(FROM_FILE, sets), "out", "--overwrite")
                for name, found in run.tensors().items():
                    expected = given[name]
                    if dtype == "BF16":  # 8 bits of them are kept
                        expected = [struct.unpack("<f", struct.pack("<HH", 0, x))[0] for x in upper_halves(expected)]
                    self.assertEqual((found.dtype, safetensors.values(found)), (code, expected))


RESNET18 = {"name": "resnet18", "channels": 1, "size": 8, "width": 0.05, "classes": 10}
TORCHVISION = changed(
    CNN,
    {"model": RESNET18 | {"weights": "init.safetensors", "weights_format": "torchvision"}, "train.epochs": 0},
)


class ForeignWeights(harness.EndToEnd):
    """torchvision's names for a ResNet: blocks counted per group, what batch norms have seen."""

    def file(self, change=lambda theirs: None):
        ours = self.train(changed(CNN, {"model": RESNET18, "train.epochs": 0}), "ours", "--overwrite").tensors()
        theirs = {}
        for name, values in ours.items():
            for pattern, by in (
                (r"^stem\.bn", "bn1"),
                (r"^stem", "conv1"),
                (r"^block(\d)", lambda m: f"layer{(int(m[1]) + 1) // 2}.{(int(m[1]) + 1) % 2}"),
                (r"shortcut\.conv", "downsample.0"),
                (r"shortcut\.bn", "downsample.1"),
                (r"^classifier", "fc"),
            ):
                name = re.sub(pattern, by, name)
            theirs[name] = values
            if name.endswith("running_var"):
                theirs[name.replace("running_var", "num_batches_tracked")] = tensor("I64", [], [7])
        change(theirs)
        self.write("init.safetensors", safetensors.encoded(theirs))
        return ours

    def test_another_library_s_names_are_its_own(self):
        ours = self.file()
        run = self.train(changed(TORCHVISION, {"train.seed": 2}), "out")
        self.assertEqual(run.tensors(), ours)

    def test_messages_speak_their_names(self):
        def change(theirs):
            theirs["layer2.0.downsample.0.weigth"] = theirs.pop("layer2.0.downsample.0.weight")
            theirs["fc.bias"] = tensor("F32", [1000], [0] * 1000)
            theirs["surplus"] = tensor("F32", [1], [0])

        self.file(change)
        self.write("x.yaml", TORCHVISION)
        for command in (("check", "x.yaml"), ("run", "x.yaml", "--out", "out", "--overwrite")):
            self.assert_errors(
                self.pipewright(*command, code=DATA),
                r"init\.safetensors: does not fit the model: 'layer2\.0\.downsample\.0\.weight' is not in the file, "
                r"'fc\.bias' has the shape 1000, the model's has 10, 'layer2\.0\.downsample\.0\.weigth' is in the file, "
                r"but not in the model; did you mean 'layer2\.0\.downsample\.0\.weight'\?, 'surplus' is in the file, but not in the model$",
            )

    def test_a_prefix_of_all_names_is_named(self):
        def prefixed(theirs):
            for name in list(theirs):
                theirs[f"module.{name}"] = theirs.pop(name)
            theirs["module.surplus"] = tensor("F32", [1], [0])

        self.file(prefixed)
        self.write("x.yaml", TORCHVISION)
        self.assert_errors(
            self.pipewright("check", "x.yaml", code=DATA),
            r"init\.safetensors: does not fit the model: its names begin with 'module\.', which "
            r"tools/convert_weights\.py CHECKPOINT --strip module\. takes off those of a checkpoint$",
        )

    def test_a_model_that_the_library_does_not_have(self):
        for model, message in (
            ({"name": "mlp"}, "the tensor names of torchvision are not known for mlp; known: pipewright"),
            ({"name": "vgg16"}, "torchvision's vgg16 needs head: classifier, its original three linear layers"),
        ):
            self.write("x.yaml", changed(MLP, {"model": model | {"weights_format": "torchvision"}}))
            self.assert_errors(
                self.pipewright("check", "x.yaml", code=EXPERIMENT), rf"x\.yaml:\d+:\d+: .*{plain(message)}$"
            )

    def test_a_fresh_classifier_starts_as_initialised(self):
        def of_other_classes(theirs):
            theirs["fc.weight"] = tensor("F32", [1000, 26], [0] * 26000)
            theirs["fc.bias"] = tensor("F32", [1000], [0] * 1000)

        ours = self.file(of_other_classes)  # what seed 1 initialises
        for format in ("torchvision", "pipewright"):
            fresh = changed(TORCHVISION, {"train.seed": 2, "model.fresh": ["classifier"]})
            if format == "pipewright":  # which may lack it altogether
                self.write("init.safetensors", safetensors.encoded({n: t for n, t in ours.items() if "classifier" not in n}))
                fresh = changed(fresh, {"model.weights_format": "pipewright"})
            found = self.train(fresh, "out", "--overwrite").tensors()
            initial = self.train(
                changed(CNN, {"model": RESNET18, "train.epochs": 0, "train.seed": 2}), "seed2", "--overwrite"
            ).tensors()
            for name, values in found.items():
                self.assertEqual(values, (initial if name.startswith("classifier.") else ours)[name], name)

        self.write("x.yaml", changed(TORCHVISION, {"model.fresh": ["clasifier"]}))
        self.assertRegex(
            self.pipewright("check", "x.yaml", code=DATA).err,
            r"model\.fresh names 'clasifier', which the model does not have; did you mean 'classifier'\?",
        )

    def test_auxiliary_heads_are_initialised(self):
        self.file()
        heads = {"scheme": {"name": "interlocking"}}
        run = self.train(changed(TORCHVISION, heads), "out")
        self.assertTrue(any(name.startswith("heads.0.") for name in run.tensors()))


if __name__ == "__main__":
    harness.main()
