# SPDX-License-Identifier: Apache-2.0
"""Modules that tools/import_torch.py imports, trained by the model `graph`, against PyTorch training them itself.

Every module goes through three steps of SGD with momentum in float64: uncut, in stages, and in stages that recompute
or split their backwards. Weights and batch-norm statistics after them contain every gradient of the steps.
"""

import contextlib
import io
import json
import math
import os
import sys
import unittest
import unittest.mock
from pathlib import Path

import graph_modules
import graph_training
import skips
import torch
from safetensors.torch import load_file, save_file

PIPEWRIGHT = os.environ["PIPEWRIGHT_BINARY"]
SOURCE = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"])
HERE = Path(__file__).resolve().parent

sys.path.insert(0, str(SOURCE / "tools"))
import import_torch  # noqa: E402

BATCH, STEPS, RATE, MOMENTUM = 8, 3, 0.05, 0.9


class Graph(graph_training.GraphTraining):
    def import_module(self, make, shape, *more, code=0):
        """Does what the program import_torch.py does. Returns what it says."""
        flags = ("--input", ",".join(map(str, shape)), "--out", "net", *more)
        said = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(said), contextlib.ExitStack() as stack:
            arguments = ["import_torch", f"{HERE / 'graph_modules.py'}:{make}", *flags]
            stack.enter_context(unittest.mock.patch.object(sys, "argv", arguments))
            stack.enter_context(unittest.mock.patch.object(sys, "path", list(sys.path)))
            refused = stack.enter_context(self.assertRaises(SystemExit)) if code else None
            import_torch.main()
        return said.getvalue() + (f"{refused.exception.code}\n" if code else "")

    def write_data(self, shape, samples):
        torch.manual_seed(1)
        x = torch.randn(samples, *shape, dtype=torch.float64)
        y = torch.randint(0, 10, (samples,))
        save_file({"train.x": x, "train.y": y, "test.x": x.clone(), "test.y": y.clone()}, self.folder / "data.safetensors")
        return x, y

    def written(self, name, **changes):
        """The file of an experiment with sections changed."""
        experiment = {
            "dataset": {"name": "tensors", "file": "data.safetensors"},
            "loader": {"batch_size": BATCH, "shuffle": False},
            "model": {"name": "graph", "file": "net", "weights": "net/weights.safetensors"},
            "scheme": {"name": "model_parallel"},
            "optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM},
            "train": {"epochs": 1, "precision": "float64"},
        }
        for section, options in changes.items():
            experiment[section] = experiment.get(section, {}) | options
        (self.folder / f"{name}.yaml").write_text(json.dumps(experiment))
        return f"{name}.yaml"

    def trained(self, name, code=0, **changes):
        """final.safetensors of a training with sections changed; its output if it must fail."""
        output = self.do(PIPEWRIGHT, "run", self.written(name, **changes), "--out", name, code=code)
        return output if code else load_file(self.folder / name / "final.safetensors")

    def theirs(self, make, x, y, nudged=False):
        """The state after the same steps in PyTorch, with the modes that the module has."""
        module = getattr(graph_modules, make)().double()
        if nudged:
            graph_training.nudge(module)
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
        for at in range(0, len(x), BATCH):
            optimizer.zero_grad()
            output = module(x[at : at + BATCH])
            output = output["logits"] if isinstance(output, dict) else output
            torch.nn.functional.cross_entropy(output, y[at : at + BATCH]).backward()
            optimizer.step()
        return module.state_dict()

    def assert_close(self, ours, make, x, y):
        """That PyTorch trains the module to the same, as far as rounding lets it: graph_training.tolerance()."""
        theirs, moved = self.theirs(make, x, y), self.theirs(make, x, y, nudged=True)
        far = {name: graph_training.difference(ours[name], theirs[name]) for name in ours}
        response = max(graph_training.difference(moved[name], theirs[name]) for name in ours)
        elements = x[:BATCH].numel()
        limit = graph_training.roundings(getattr(graph_modules, make)(), elements, STEPS) * max(response, torch.finfo(x.dtype).eps)
        print(f"{make:40} {max(far.values()):.1e} of {limit:.1e}", flush=True)
        self.assertLessEqual(max(far.values()), limit, make)
        return theirs

    def compare(self, make, shape, stages=4):
        self.import_module(make, shape)
        x, y = self.write_data(shape, BATCH * STEPS)
        uncut = self.trained("uncut", pipeline={"stages": 1})
        theirs = self.assert_close(uncut, make, x, y)
        frozen = {name for name, each in getattr(graph_modules, make)().named_parameters() if not each.requires_grad}
        missing = {name for name in theirs if name not in uncut and "num_batches" not in name and name not in frozen}
        self.assertEqual(missing, set())
        cut = {"stages": stages, "balance": "layers"}
        self.same(self.trained("cut", pipeline=cut), uncut)
        again = cut | {"recompute": "always"}
        self.same(self.trained("recomputed", pipeline=again, scheme={"name": "gpipe"}), uncut)
        self.same(self.trained("halves", pipeline=cut, scheme={"name": "zb_h1"}), uncut)

    def same(self, ours, others):
        """The same to the bit."""
        self.assertEqual(sorted(ours), sorted(others))
        for name, tensor in ours.items():
            self.assertTrue(torch.equal(tensor, others[name]), name)

    def test_a_residual_network_is_trained_as_pytorch_trains_it(self):
        self.compare("residual", (3, 8, 8))

    def test_views_and_writes_in_place_are_not_parted(self):
        self.compare("written_in_place", (3, 8, 8), stages=3)

    def test_tensors_that_live_long_cross_every_cut(self):
        self.compare("dense", (3, 8, 8))

    def test_constants_and_sizes_of_the_batch_are_kept(self):
        self.compare("with_constants", (12,))

    def test_parts_in_evaluation_stay_in_it(self):
        """A backbone of which batch norm's statistics are fixed and whose dropout is off, with a head that is trained; and the
        same with parameters that are frozen, within a module that is in training or in evaluation itself.
        """
        for make in ("frozen_backbone", "frozen_backbone_in_training", "frozen_parameters"):
            with self.subTest(make):
                self.setUp()
                said = self.import_module(make, (3, 8, 8))
                self.assertIn("remark: modules in evaluation stay in it (no dropout, statistics of batch norms fixed): 2, the first 'body.1'", said)
                self.compare(make, (3, 8, 8), stages=2)
                before, after = getattr(graph_modules, make)().state_dict(), load_file(self.folder / "uncut" / "final.safetensors")
                for name in ("body.1.running_mean", "body.1.running_var"):
                    self.assertTrue(torch.equal(after[name], before[name].double()), name)
                self.assertFalse(torch.equal(after["head.1.running_mean"], before["head.1.running_mean"].double()))
                self.assertEqual("body.0.weight" in after, make != "frozen_parameters")

    def test_a_module_in_evaluation_as_a_whole_is_trained_and_that_is_said(self):
        self.import_module("residual", (3, 8, 8))
        graph = (self.folder / "net" / "graph.json").read_text()
        said = self.import_module("residual_in_evaluation", (3, 8, 8))
        self.assertIn("remark: the module is in evaluation as a whole and is imported in training;", said)
        self.assertEqual((self.folder / "net" / "graph.json").read_text(), graph)

    def test_a_shared_parameter_is_one(self):
        self.compare_uncut("tied", (12,))

    def compare_uncut(self, make, shape):
        self.import_module(make, shape)
        x, y = self.write_data(shape, BATCH * STEPS)
        self.assert_close(self.trained("uncut", pipeline={"stages": 1}), make, x, y)

    def test_constants_are_computed_again_wherever_they_are_read(self):
        self.compare("masked", (12,))

    def test_one_output_of_several_is_trained_and_what_is_frozen_stays(self):
        said = self.import_module("outputs_by_name", (12,))
        self.assertIn("remark: the module returns aside, logits in training; its logits are trained", said)
        self.assertIn("remark: parameters that require no gradient are left as they are: 2, the first 'frozen.weight'", said)
        self.assertIn("remark: parameters that the output does not depend on are left out: 6, the first 'aside.0.weight'", said)
        x, y = self.write_data((12,), BATCH * STEPS)
        ours = self.trained("ours", pipeline={"stages": 2, "balance": "layers"})
        self.assertEqual(sorted(ours), ["fc.bias", "fc.weight", "first.bias", "first.weight"])
        self.assert_close(ours, "outputs_by_name", x, y)
        self.import_module("outputs_by_position", (12,), "--output", "1")
        self.same(self.trained("position", pipeline={"stages": 2, "balance": "layers"}), ours)
        self.import_module("outputs_by_position", (12,), "--output", "2", code=1)

    def test_trained_weights_go_back_under_the_names_of_the_module(self):
        self.import_module("outputs_by_name", (12,))
        self.write_data((12,), BATCH)
        trained = self.trained("ours")
        tool = SOURCE / "tools" / "to_pytorch.py"
        self.do(sys.executable, "-B", tool, "net", "ours/final.safetensors", "--out", "back.safetensors")
        module = graph_modules.outputs_by_name()
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        back = load_file(self.folder / "back.safetensors")
        self.same(back, {name: trained.get(name, tensor) for name, tensor in before.items()})
        module.load_state_dict(back)
        said = self.do(sys.executable, "-B", tool, "net", "net/rest.safetensors", "--out", "back.safetensors", code=3)
        self.assertEqual(said, "to_pytorch: net/rest.safetensors: has no 'first.weight', which net/graph.json trains\n")

    def test_a_tied_weight_goes_back_under_both_names(self):
        self.import_module("tied", (12,))
        self.write_data((12,), BATCH)
        trained = self.trained("ours")
        tool = SOURCE / "tools" / "to_pytorch.py"
        self.do(sys.executable, "-B", tool, "net", "ours/final.safetensors", "--out", "back.safetensors")
        back = load_file(self.folder / "back.safetensors")
        self.assertTrue(torch.equal(back["first.weight"], trained["first.weight"]))
        self.assertTrue(torch.equal(back["second.weight"], trained["first.weight"]))

    def test_weights_that_were_untied_go_back_only_where_it_is_said_that_the_module_is_untied(self):
        """A module that ties them would load both, "all keys matched", and compute with one of them."""
        self.import_module("tied", (12,), "--untie")
        self.write_data((12,), BATCH)
        trained = self.trained("ours")
        tool = SOURCE / "tools" / "to_pytorch.py"
        back = (sys.executable, "-B", tool, "net", "ours/final.safetensors", "--out", "back.safetensors")
        said = self.do(*back, code=3)
        self.assertIn("to_pytorch: 'second.weight' and 'first.weight' are one parameter of the module, and --untie trained them as two", said)
        self.assertFalse((self.folder / "back.safetensors").exists())
        self.do(*back, "--untied")
        found = load_file(self.folder / "back.safetensors")
        self.assertTrue(torch.equal(found["second.weight"], trained["second.weight"]))
        self.do(sys.executable, "-B", tool, "net", "net/weights.safetensors", "--out", "back.safetensors")  # still equal

    def test_an_import_leaves_the_module_as_it_was(self):
        module = graph_modules.tied().eval()
        x = torch.randn(4, 12)
        before = module(x)
        graph_training.import_torch.import_module(module, [graph_training.Input((12,))], self.folder / "net", separate=True)
        self.assertIs(module.first.weight, module.second.weight)
        self.assertFalse(any(each.training for each in module.modules()))
        self.assertNotIn("forward", vars(module))
        self.assertTrue(torch.equal(module(x), before))

    def test_a_cut_between_tied_weights_is_refused_with_their_modules(self):
        said = self.import_module("tied", (12,))
        self.assertIn("remark: 'first.weight' and 'second.weight' are one parameter, so no cut lies between", said)
        self.write_data((12,), BATCH)
        output = self.trained("cut", code=2, pipeline={"stages": 3})
        self.assertIn("the model has 2 layers", output)
        self.assertIn("'first.weight' is used by the modules 'first' and 'second', and no cut lies between them", output)
        self.import_module("tied", (12,), "--untie")
        untied = self.trained("untied", pipeline={"stages": 3, "balance": "layers"})
        self.assertFalse(torch.equal(untied["first.weight"], untied["second.weight"]))

    def test_a_cut_parts_several_parameters_and_many_uses_of_one(self):
        same = {"model": {"tie": "same"}}
        for made in ("pairs", "used_by_four"):
            with self.subTest(made):
                self.import_module(made, (12,))
                x, y = self.write_data((12,), BATCH * STEPS)
                cut = self.trained(made, pipeline={"stages": 5, "balance": "layers"}, **same)
                self.assert_close(cut, made, x, y)

    def test_a_cut_between_tied_weights_is_made_where_one_lends_them_to_the_other(self):
        self.import_module("tied", (12,))
        x, y = self.write_data((12,), BATCH * STEPS)
        same = {"model": {"tie": "same"}}
        uncut = self.trained("uncut", pipeline={"stages": 1}, **same)
        self.assert_close(uncut, "tied", x, y)
        cut = {"stages": 3, "balance": "layers"}
        self.same(self.trained("cut", pipeline=cut, **same), uncut)
        again = cut | {"recompute": "always", "execution": "threads"}
        self.same(self.trained("recomputed", pipeline=again, scheme={"name": "gpipe"}, **same), uncut)
        self.same(self.trained("halves", pipeline=cut, scheme={"name": "zb_h1"}, **same), uncut)
        tool = SOURCE / "tools" / "to_pytorch.py"
        self.do(sys.executable, "-B", tool, "net", "cut/final.safetensors", "--out", "back.safetensors")
        back = load_file(self.folder / "back.safetensors")
        self.assertTrue(torch.equal(back["first.weight"], uncut["first.weight"]))
        self.assertTrue(torch.equal(back["second.weight"], uncut["first.weight"]))

    def test_an_lstm_drops_between_its_layers_by_the_seed(self):
        self.write_data((12,), BATCH * STEPS)

        def trained(make, name, **changes):
            self.import_module(make, (12,))
            return self.trained(name, **changes)

        nothing = trained("drops_nothing", "nothing")
        self.same(trained("drops_never", "never"), nothing)
        once = trained("drops_in_layers", "once")
        self.assertFalse(torch.equal(once["lstm.weight_ih_l2"], nothing["lstm.weight_ih_l2"]))
        cut = {"stages": 2, "balance": "layers", "recompute": "always", "execution": "threads"}
        self.same(trained("drops_in_layers", "again", pipeline=cut, scheme={"name": "gpipe"}), once)
        other = trained("drops_in_layers", "other", train={"seed": 2})
        self.assertFalse(torch.equal(once["lstm.weight_ih_l2"], other["lstm.weight_ih_l2"]))

    def test_an_lstm_drops_the_part_that_it_shall_and_enlarges_the_rest(self):
        """The loss of a sample is log(1 + e^−m), where m is the mean of tanh(tanh(d)) over 4,096 elements."""
        module, places, samples = graph_modules.CountsDropped, 64, 16
        self.import_module("counts_dropped", (places, 1))
        x, y = torch.ones(samples, places, 1, dtype=torch.float64), torch.zeros(samples, dtype=torch.int64)
        save_file({"train.x": x, "train.y": y, "test.x": x.clone(), "test.y": y.clone()}, self.folder / "data.safetensors")
        self.trained("counted", loader={"batch_size": 1}, optimizer={"lr": 1e-30})
        elements, kept = places * module.WIDTH, math.tanh(math.tanh(module.GIVEN / (1 - module.P)))
        counts = [-math.log(math.expm1(loss)) * elements / kept for loss in self.column("counted", "steps.csv", "loss")]
        for count in counts:  # a whole number of elements, each enlarged by 1 / (1 − p)
            self.assertLess(abs(count - round(count)), 1e-6)
        deviation = math.sqrt(elements * module.P * (1 - module.P))  # of a binomial; 5 of them are passed once in 10^6
        for count in counts:
            self.assertLess(abs(count - elements * (1 - module.P)), 5 * deviation)
        mean = sum(counts) / samples
        self.assertLess(abs(mean - elements * (1 - module.P)), 5 * deviation / math.sqrt(samples))
        self.assertGreater(len(set(map(round, counts))), samples // 2, "each step has a mask of its own")
        evaluated = self.column("counted", "epochs.csv", "test_loss")[-1]
        self.assertLess(abs(evaluated - math.log1p(math.exp(-math.tanh(math.tanh(module.GIVEN))))), 1e-12)

    def test_another_evaluation_is_said(self):
        self.assertIn("remark: in evaluation", self.import_module("other_in_evaluation", (12,)))
        self.assertNotIn("remark", self.import_module("residual", (3, 8, 8)))

    def test_dropout_draws_from_the_seed_in_every_execution(self):
        self.import_module("dropping", (12,))
        self.write_data((12,), BATCH * STEPS)
        cut = {"stages": 4, "balance": "layers", "microbatches": 2}

        def trained(name, train={}, **options):
            return self.trained(name, pipeline=cut | options, scheme={"name": "gpipe"}, train=train)

        serial = trained("serial", execution="serial")
        self.same(trained("threads", execution="threads"), serial)
        self.same(trained("again", recompute="always"), serial)
        other = trained("other", train={"seed": 2})
        self.assertFalse(all(torch.equal(other[name], serial[name]) for name in serial))

    def test_whatever_a_module_does_an_import_ends_in_one_line_and_writes_nothing(self):
        for make, why in (graph_modules.REFUSED | graph_modules.FAILING).items():
            with self.subTest(make):
                output = self.import_module(make, (12,), code=1)
                self.assertIn(why, output.splitlines()[-1])
                self.assertTrue(output.splitlines()[-1].startswith("import_torch: "), output)
                self.assertFalse((self.folder / "net").exists())

    def test_of_an_export_that_fails_nothing_is_shown_but_the_line(self):
        complained = io.StringIO()
        with contextlib.redirect_stderr(complained):
            said = self.import_module("decided_by_data", (12,), code=1)
        self.assertRegex(said, r"^import_torch: graph_modules\.py:\d+: torch\.export cannot export the module: .*torch\.where chooses by values\)\n$")
        self.assertEqual("", complained.getvalue())

    def test_a_module_begins_with_its_weights_and_no_part_of_it_afresh(self):
        self.import_module("residual", (3, 8, 8))
        self.write_data((3, 8, 8), BATCH)
        for model, why in (
            ({"weights": ""}, "model.weights is missing; expected the file weights.safetensors of the folder"),
            ({"fresh": ["fc"]}, "model.fresh names layers to initialise, but an imported module does not say how its layers are initialised"),
        ):
            self.assertIn(why, self.do(PIPEWRIGHT, "check", self.written("begun", model=model), code=2))

    def test_what_a_module_does_in_evaluation_alone_is_a_remark(self):
        for make, why in (("raises_in_evaluation", "ValueError: no labels"), ("tuple_in_evaluation", "returns 2 values in evaluation")):
            said = self.import_module(make, (12,))
            self.assertIn("remark: in evaluation (module.eval()) the module computes something else", said)
            self.assertIn(why, said)

    def test_an_import_that_is_cut_off_leaves_no_folder_that_can_be_read(self):
        self.import_module("with_constants", (12,))
        self.write_data((12,), BATCH)
        replace, left = os.replace, []
        for allowed in range(3):
            with unittest.mock.patch.object(os, "replace", lambda *paths: replace(*paths) if left.append(1) or len(left) <= allowed else 1 / 0):
                left.clear()
                with self.assertRaises(ZeroDivisionError):
                    graph_training.import_torch.import_module(graph_modules.tied(), [graph_training.Input((12,))], self.folder / "net")
            self.assertEqual([path.name for path in (self.folder / "net").glob("*.part")], [])
            code = 0 if allowed == 0 else 3  # nothing has changed, or nothing can be read
            output = self.do(PIPEWRIGHT, "check", self.written(f"cut{allowed}"), code=code)
            self.assertTrue(code == 0 or len(output.splitlines()) == 1, output)
        self.import_module("tied", (12,))

    def test_a_folder_of_somebody_else_is_left_alone(self):
        weights = self.folder / "net" / "weights.safetensors"
        weights.parent.mkdir()
        weights.write_text("mine")
        output = self.import_module("with_constants", (12,), code=1)
        self.assertEqual(output.strip(), "import_torch: net has a file weights.safetensors, but no graph.json of an import; give another --out")
        self.assertEqual((weights.read_text(), [path.name for path in weights.parent.iterdir()]), ("mine", [weights.name]))
        weights.unlink()
        precious = self.folder / "precious"
        precious.write_text("mine")
        for name in ("weights.safetensors.part", "unfinished.part"):
            link = weights.with_name(name)
            link.symlink_to(precious)
            self.assertIn(f"net has a file {name}", self.import_module("with_constants", (12,), code=1))
            link.unlink()
        head = weights.with_name("graph.json.part")
        head.write_text("mine")
        self.assertIn("net has a file graph.json.part", self.import_module("with_constants", (12,), code=1))
        for begun in (b"", graph_training.import_torch.OURS[:5], graph_training.import_torch.OURS + b"1"):  # an import was killed
            head.write_bytes(begun)
            weights.with_name("weights.safetensors.part").write_text("half")
            self.import_module("with_constants", (12,))
            self.assertEqual(list(head.parent.glob("*.part")), [])
            for path in head.parent.iterdir():
                path.unlink()
        self.import_module("with_constants", (12,))
        weights.with_name("weights.safetensors.part").symlink_to(precious)
        self.import_module("with_constants", (12,))  # its own folder, in which a link is nobody's file
        self.assertEqual(precious.read_text(), "mine")
        self.assertFalse(weights.is_symlink())
        self.assertTrue((weights.parent / "constants.safetensors").exists())
        self.import_module("dense", (3, 8, 8))
        self.assertFalse((weights.parent / "constants.safetensors").exists(), "constants of the import before")

    def test_damaged_graphs_are_refused_in_one_line(self):
        self.import_module("with_constants", (12,))
        self.write_data((12,), BATCH)
        path = self.folder / "net" / "graph.json"
        text = path.read_text()
        for old, new, why in (
            ('"format": 1', '"format": 2', "has format 2; this program reads format 1"),
            ('"aten::linear"', '"aten::from_file"', "a graph may not call 'aten::from_file', which has an argument 'filename'"),
            ('"aten::linear"', '"aten::bernoulli"', "which draws random numbers"),
            ('{"parameter": "first.weight"}', '{"parameter": "first.wait"}', "there is no parameter 'first.wait'"),
            ('"weight": {"parameter": "first.weight"}', '"wait": 1', "there is no argument 'wait'"),
            ('"first.weight": [12, 12]', '"first.weight": [4611686018427387904, 12]', "at most 2^40"),
            ('"first.weight": [12, 12]', '"first.weight": [12, 13]', "mat1 and mat2 shapes cannot be multiplied (2x12 and 13x12)"),
            ('"nodes": [', '"nodes": [7, ', "'operator' is missing"),
            ('"size": [{"size": [1, 0]}, 6]', '"size": [{"size": [1, 0]}, 2000000000]', "the file says 2×6 for a batch of 2"),
            ("]}\n", "", "is no JSON"),
        ):
            with self.subTest(why):
                self.assertIn(old, text)
                path.write_text(text.replace(old, new, 1) if new else text[: text.rindex(old)])
                output = self.trained(f"damaged{len(list(self.folder.iterdir()))}", code=3)
                self.assertIn(why, output)
                self.assertEqual(len(output.splitlines()), 1, output)

    def test_a_pooling_to_more_than_its_file_declares_is_refused_before_memory_is_taken(self):
        self.import_module("pooled", (3, 8, 8))
        self.write_data((3, 8, 8), BATCH)
        path = self.folder / "net" / "graph.json"
        text = path.read_text()
        self.assertIn('"output_size": [7, 7]', text)
        path.write_text(text.replace('"output_size": [7, 7]', '"output_size": [1000000, 1000000]'))
        self.assertIn("2×4×1000000×1000000; the file says 2×4×7×7 for a batch of 2", self.trained("pooled", code=3))


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
