# SPDX-License-Identifier: Apache-2.0
"""Modules of several inputs: every execution gives the same bits, data that do not fit are refused, profiles work.

What they learn is compared with PyTorch in graph_sequences_test.py (two_towers, bert_with_masks).
"""

import contextlib
import io
import json
import os

import skips
import torch
from graph_cases import SEQUENCES
from graph_training import PIPEWRIGHT, GraphTraining
from safetensors.torch import load_file, save_file

os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

CASE = SEQUENCES["two_towers"]
GPT2 = SEQUENCES["gpt2"]
NAMES = ["user", "item", "keep", "scale"]
CUT = {"stages": 4, "balance": "layers"}


class Inputs(GraphTraining):
    def setUp(self):
        super().setUp()
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(CASE, CASE.dropping)
        self.write_data(*CASE.data(16), 8)

    def change(self, **tensors):
        """Writes the data with other tensors; None is without one."""
        data = load_file(self.folder / "data.safetensors") | {name.replace("__", "."): each for name, each in tensors.items()}
        save_file({name: each for name, each in data.items() if each is not None}, self.folder / "data.safetensors")

    def refused(self, code=3, **changes):
        (self.folder / "refused.yaml").write_text(json.dumps(self.experiment(CASE, **changes)))
        verdict, *lines = self.do(PIPEWRIGHT, "check", "refused.yaml", code=code).splitlines()
        self.assertEqual((verdict.split(), len(lines)), (["experiment", "refused"], 1), lines)
        return lines[0]

    def test_the_file_names_the_inputs_with_their_types(self):
        graph = json.loads((self.folder / "net" / "graph.json").read_text())
        self.assertEqual([each["name"] for each in [graph["input"], *graph["further_inputs"]]], NAMES)
        described = [(each["shape"], each["type"], each["vocabulary"]) for each in graph["further_inputs"]]
        self.assertEqual(described, [([12], "int64", 60), ([12], "bool", 0), ([], "float32", 0)])

    def test_executions_give_the_same_bits(self):
        self.same_in_every_execution(CASE, CUT)

    def test_each_input_is_one_of_its_own(self):
        """Another content of any of them gives other weights, also of those that only the last stage reads."""
        before = self.trained("before", CASE, pipeline=CUT)
        data = load_file(self.folder / "data.safetensors")
        for name, other in (
            ("user", data["train.user"] + 1),
            ("item", data["train.item"].flip(0)),
            ("keep", ~data["train.keep"]),
            ("scale", data["train.scale"] * 2),
        ):
            save_file(data | {f"train.{name}": other}, self.folder / "data.safetensors")
            after = self.trained(name, CASE, pipeline=CUT)
            self.assertFalse(all(torch.equal(after[each], before[each]) for each in before), name)

    def test_numbers_and_tokens_may_be_of_narrower_types(self):
        wide = self.trained("wide", CASE, pipeline=CUT)
        data = load_file(self.folder / "data.safetensors")
        self.change(train__item=data["train.item"].to(torch.int32), test__item=data["test.item"].to(torch.uint8))
        self.same(self.trained("narrow", CASE, pipeline=CUT), wide)

    def test_arrays_of_numpy_are_taken_by_name(self):
        import numpy

        plain = self.trained("plain", CASE, pipeline=CUT)
        data = load_file(self.folder / "data.safetensors")
        arrays = {f"{name.partition('.')[2]}_{name.partition('.')[0]}": each.numpy() for name, each in data.items()}
        numpy.savez(self.folder / "data.npz", **arrays)
        self.same(self.trained("npz", CASE, pipeline=CUT, dataset={"file": "data.npz"}), plain)

    def test_data_that_do_not_fit_are_one_line(self):
        data = load_file(self.folder / "data.safetensors")
        for why, tensors in (
            ("there is no tensor 'train.keep' in it; train.user, train.item, train.keep, train.scale, train.y, test.user", {"train__keep": None}),
            ("tensor 'train.item' has shape [16, 7], must be [16, 12]", {"train__item": data["train.item"][:, :7].clone()}),
            ("tensor 'test.scale' has shape [7], must be [8]", {"test__scale": data["test.scale"][:7].clone()}),
            ("tensor 'train.keep' has type Float, the model's 'keep' is of truth values", {"train__keep": data["train.keep"].float()}),
            ("tensor 'train.scale' has type Long, the model's 'scale' is floating", {"train__scale": data["train.scale"].long()}),
            ("tensor 'train.item' record 0 (counted from 0) has the token 60, the model takes 0 to 59", {"train__item": data["train.item"] * 0 + 60}),
        ):
            with self.subTest(why):
                self.change(**(data_as_keywords(data) | tensors))
                self.assertIn(why, self.refused())

    def test_other_data_sets_are_refused_with_the_names(self):
        wanted = "the model takes the inputs 'user', 'item', 'keep', 'scale', this data set gives one input"
        (self.folder / "data.csv").write_text("1,2,0\n3,4,1\n")
        csv_file = self.refused(2, dataset={"file": "data.csv", "split": 0.5})
        self.assertIn("data.csv has one input, x, the model takes user, item, keep, scale; expected a .safetensors or .npz", csv_file)
        experiment = self.experiment(CASE) | {"dataset": {"name": "digits"}}
        (self.folder / "digits.yaml").write_text(json.dumps(experiment))
        verdict, *lines = self.do(PIPEWRIGHT, "check", "digits.yaml", code=2).splitlines()
        self.assertIn(wanted, lines[0])
        self.assertEqual((verdict.split(), len(lines)), (["experiment", "digits"], 1), lines)

    def test_profiles_plan_and_measure_them(self):
        (self.folder / "profiled.yaml").write_text(json.dumps(self.experiment(CASE, pipeline=CUT)))
        self.do(PIPEWRIGHT, "profile", "profiled.yaml", "--seconds", "1", "--out", "profile.yaml")
        said = self.do(PIPEWRIGHT, "check", "profiled.yaml", "--set", "pipeline.balance=time", "--set", "pipeline.cut.profile=profile.yaml")
        self.assertIn("user.0", said)

    def test_the_importer_refuses_inputs_that_the_forward_does_not_have(self):
        import import_torch
        from importing.inputs import Input
        from importing.refusal import Refusal

        given = CASE.described()
        for why, inputs in (
            ("expected a name in each", [Input(each.shape, each.dtype) for each in given]),
            ("the module's forward has no parameter 'weight'", [*given, Input((1,), torch.float32, "weight")]),
            ("--input names 'user' twice", [*given, given[0]]),
            ("also for keep, scale", given[:2]),
        ):
            with self.subTest(why), self.assertRaisesRegex(Refusal, why):
                import_torch.import_module(CASE.module(), inputs, self.folder / "other")
        self.assertFalse((self.folder / "other").exists())


def data_as_keywords(data):
    return {name.replace(".", "__"): each for name, each in data.items()}


class Tokens(GraphTraining):
    """A module that takes samples of so many tokens, and no others."""

    def setUp(self):
        super().setUp()
        with contextlib.redirect_stdout(io.StringIO()):
            self.import_case(GPT2)

    def checked(self, tokens, code, **changes):
        y = torch.randint(GPT2.classes, (16, tokens.shape[1]))
        self.write_data(tokens, y, 8)
        (self.folder / "tokens.yaml").write_text(json.dumps(self.experiment(GPT2, **changes)))
        return self.do(PIPEWRIGHT, "check", "tokens.yaml", code=code)

    def test_samples_of_fewer_tokens_are_refused_before_a_training(self):
        said = self.checked(torch.randint(GPT2.vocabulary, (16, 8)), 2)
        self.assertIn("the data set has samples of 8 tokens, the model takes exactly 12; change one of them", said)

    def test_the_refusal_of_further_tokens_names_no_option_that_the_model_lacks(self):
        said = self.checked(torch.full((16, 12), GPT2.vocabulary), 2)
        self.assertRegex(said, rf"the data set has {GPT2.vocabulary + 1} tokens .*; expected a model of at least as many$")

    def test_an_optimizer_of_modules_is_that_of_what_they_hold(self):
        """The embeddings of tokens and of positions are one layer here."""
        tokens = torch.randint(GPT2.vocabulary, (16, 12))
        for module, code in (("transformer.wpe", 0), ("transformer.wte", 2)):
            said = self.checked(tokens, code, optimizer={"name": "muon", "lr": 0.01, "adamw": {"layers": [module]}})
        self.assertIn("adamw.layers names the layer 'transformer.wte', which has the parameter transformer.wpe.weight, too", said)


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
