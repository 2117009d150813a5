# SPDX-License-Identifier: Apache-2.0
"""An import refuses what the program would refuse: each small module here is refused by the importer, with its module and
source line and before anything is written, or the program accepts it and its gradients are PyTorch's.

A step of SGD with the rate 1 in float64 moves every weight by its gradient.
"""

import contextlib
import io
import json
import os
import re

import graph_training
import skips
import torch
from graph_training import PIPEWRIGHT, SOURCE, GraphTraining, Input, import_torch
from importing.reader import TYPES, reason_against
from importing.refusal import Refusal, type_name
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

BATCH = 6


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Around(nn.Module):
    """A module between two linear layers."""

    def __init__(self, middle):
        super().__init__()
        self.a, self.middle, self.head = nn.Linear(4, 4), middle, nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.middle(self.a(x)))


class InSequence(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.inner = module

    def forward(self, x):
        return self.inner(x.unsqueeze(1).repeat(1, 3, 1))[0][:, -1]


def masked(x):
    x = 2 * x
    x[x > 0.5] = 0.0
    return x


EXACT = {
    # PyTorch's own gradient takes 1 / alpha in float32, which is exact for a power of two.
    "celu": lambda: nn.CELU(0.5),
    "hardshrink": nn.Hardshrink,
    "softshrink": nn.Softshrink,
    "threshold": lambda: nn.Threshold(0.1, 0.2),
    "log_sigmoid": nn.LogSigmoid,
    "softsign": nn.Softsign,
    "glu": lambda: Of(lambda x: functional.glu(torch.cat([x, x.tanh()], 1))),
    "square": lambda: Of(torch.square),
    "diff": lambda: Of(lambda x: functional.pad(torch.diff(x, dim=1), (1, 0))),
    "transposed": lambda: Of(lambda x: x.T.mT.swapaxes(0, 1).movedim(0, 1)),
    "and": lambda: Of(lambda x: x * ((x > 0) & (x < 1) | (x < -1))),
    "maximum": lambda: Of(lambda x: torch.maximum(x, x[:, :1]) + torch.minimum(x, 0.5 * x)),
    "addcmul": lambda: Of(lambda x: torch.addcmul(x, x, x.tanh(), value=0.3)),
    "lerp": lambda: Of(lambda x: torch.lerp(x, x.tanh(), 0.3)),
    "floor_divide": lambda: Of(lambda x: x * (torch.arange(4) // 2)),
    "divided_to_zero": lambda: Of(lambda x: x * torch.div(torch.arange(4), 2, rounding_mode="trunc") + torch.div(x, 0.3, rounding_mode="trunc")),
    "one_hot": lambda: Of(lambda x: functional.one_hot(x.argmax(1), 4).to(x.dtype) * x),
    "cosine": lambda: Of(lambda x: functional.cosine_similarity(x, x.tanh() + 1).unsqueeze(1) * x),
    "reshape_as": lambda: Of(lambda x: x.view(-1, 2).reshape_as(x)),
    "tile": lambda: Of(lambda x: torch.hstack([torch.tile(x, (1, 2))[:, :2], x[:, 2:]])),
    "log1p": lambda: Of(lambda x: torch.log1p(x.abs()) + torch.expm1(x)),
    "floor": lambda: Of(lambda x: x * x.floor() + x * x.ceil() * x.sign() + x * x.round()),
    "weight_norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)),
    "bilinear": lambda: Of(lambda x: functional.bilinear(x, x.tanh(), torch.arange(64).to(x.dtype).sin().view(4, 4, 4))),
    "batch_norm_without_affine": lambda: nn.BatchNorm1d(4, affine=False),
    "batch_norm_without_statistics": lambda: nn.BatchNorm1d(4, track_running_stats=False),
    "batch_norm_of_weights": lambda: Of(lambda x: x @ functional.batch_norm(torch.arange(16).to(x.dtype).view(1, 4, 4).sin(), None, None, training=True)[0]),
    "sort": lambda: Of(lambda x: x.sort(1)[0]),
    "topk": lambda: Of(lambda x: x.topk(4)[0]),
    "cumprod": lambda: Of(lambda x: x.cumprod(1)),
    "outer": lambda: Of(lambda x: x + torch.outer(x[0], x[0]).mean(0)),
    "relu_squared": lambda: Of(lambda x: functional.relu(x).square()),
    "put": lambda: Of(lambda x: x.tanh().index_put((torch.tensor([0, 2]),), x[0])),
    "masked": lambda: Of(masked),
    "dropped_in_place": lambda: Of(lambda x: functional.dropout(x.softmax(1), 0.0, True, inplace=True)),
    "recurrent": lambda: InSequence(nn.RNN(4, 4, batch_first=True)),
    "instance_norm": lambda: Of(lambda x: functional.instance_norm(x.view(-1, 2, 2)).flatten(1)),
}
REFUSED = {
    "fft": lambda: Of(lambda x: torch.fft.fft(x).real),
    "rrelu": nn.RReLU,
    "gumbel": lambda: Of(functional.gumbel_softmax),
    "short": lambda: Of(lambda x: x * x.to(torch.int16)),
    "divided_to_zero_by_a_tensor": lambda: Of(lambda x: x * torch.div(x.long(), x.long() + 9, rounding_mode="trunc")),
    "divided_to_zero_by_minus_one": lambda: Of(lambda x: x * torch.div(x.long(), -1, rounding_mode="trunc")),
    "nonzero": lambda: Of(lambda x: x * torch.nonzero_static(x, size=4).to(x.dtype).sum()),
    "spectral_norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
    "instance_norm_with_statistics": lambda: Of(lambda x, norm=nn.InstanceNorm1d(2, track_running_stats=True): norm(x.view(-1, 2, 2)).flatten(1)),
}
BAD = re.compile(r"(the operator|the result of the operator|the argument \w+ of the operator) aten[.\w]+ of module 'middle[.\w]*' \(\w+\.py:\d+\)|writes into")


class Operators(GraphTraining):
    def module(self, make):
        torch.manual_seed(3)
        return Around(make())

    def imported(self, make):
        with contextlib.redirect_stdout(io.StringIO()):
            return import_torch.import_module(self.module(make), [Input((4,))], self.folder / "net")

    def assert_exact(self, name, make):
        self.imported(make)
        torch.manual_seed(1)
        x, y = torch.randn(BATCH, 4, dtype=torch.float64), torch.randint(0, 3, (BATCH,))
        self.write_data(x, y)
        case = graph_training.Case(lambda: None, (4,), batch=BATCH)
        options = {"optimizer": {"name": "sgd", "lr": 1.0, "momentum": 0.0}, "pipeline": {"stages": 1}}
        (self.folder / "one.yaml").write_text(json.dumps(self.experiment(case, **options)))
        self.do(PIPEWRIGHT, "check", "one.yaml")
        self.do(PIPEWRIGHT, "run", "one.yaml", "--out", "one")
        final = load_file(self.folder / "one" / "final.safetensors")
        theirs, moved = self.gradients(make, x, y), self.gradients(make, x, y, nudged=True)
        before = dict(self.module(make).double().named_parameters())
        self.assertEqual({each for each in final if "running_" not in each}, set(theirs))
        far = max(graph_training.difference(before[each].detach() - final[each], theirs[each]) for each in theirs)
        response = max(graph_training.difference(moved[each], theirs[each]) for each in theirs)
        limit = graph_training.roundings(self.module(make), x.numel(), 1) * max(response, torch.finfo(x.dtype).eps)
        print(f"{name:30} {far:.1e} of {limit:.1e}", flush=True)
        self.assertLessEqual(far, limit)

    def gradients(self, make, x, y, nudged=False):
        module = self.module(make).double()
        if nudged:
            graph_training.nudge(module)
        functional.cross_entropy(module(x), y).backward()
        return {name: each.grad for name, each in module.named_parameters() if each.grad is not None}

    def test_what_is_imported_is_accepted_and_computed_as_pytorch_does(self):
        for name, make in EXACT.items():
            with self.subTest(name):
                self.setUp()
                self.assert_exact(name, make)

    def test_what_the_program_would_refuse_is_refused_with_its_module_and_line(self):
        for name, make in REFUSED.items():
            with self.subTest(name):
                with self.assertRaises(Refusal) as caught:
                    self.imported(make)
                self.assertRegex(str(caught.exception), BAD)
                self.assertEqual(len(str(caught.exception).splitlines()), 1)
                self.assertFalse((self.folder / "net").exists())

    def test_the_importer_and_the_program_admit_the_same_operators_for_the_same_reasons(self):
        admitted, names = set(), set()
        for line in self.do(os.environ["PIPEWRIGHT_OPERATORS_PROBE"]).splitlines():
            name, overload, reason = line.split("\t")
            space, _, base = name.partition("::")
            target = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
            if space != "aten" or target is None:
                continue
            names.add(base)
            if not reason:
                admitted.add(base)
            elif reason == "does not say the sizes of its results without computing them":
                continue  # the importer tries operators with what they are given
            with self.subTest(f"{name}.{overload}"):
                self.assertEqual(reason_against(target), reason)
        self.assertGreater(len(names), 1000)
        self.assertLessEqual({"conv2d", "outer", "square", "lstm", "index", "dropout", "add_", "topk"}, admitted)
        drawing = re.compile("rand|normal|uniform|bernoulli|poisson|multinomial|exponential|cauchy|geometric")
        self.assertEqual({each for each in admitted if drawing.search(each)}, {"poisson_nll_loss"})  # which draws nothing
        self.assertEqual({each for each in admitted if re.search("file|storage|stream|_out$|strided|empty|resize|sparse", each)}, set())

    def test_a_result_without_a_last_dimension_is_refused(self):
        for function in (lambda x: x[:, :1].tanh().squeeze(-1), lambda x: x.sum(1)):
            with self.assertRaises(Refusal) as caught, contextlib.redirect_stdout(io.StringIO()):
                import_torch.import_module(Of(function), [Input((4,))], self.folder / "net")
            said = r"^the result of the operator aten[.\w]+ of module '' \(\w+\.py:\d+\) has no dimension behind the samples"
            self.assertRegex(str(caught.exception), said)
            self.assertIn("[batch, 1]", str(caught.exception))
            self.assertFalse((self.folder / "net").exists())

    def test_the_importer_knows_the_program_s_types(self):
        source = (SOURCE / "models" / "graph" / "graph_file.cpp").read_text()
        block = source[source.index("kGraphTypes{{") : source.index("}};", source.index("kGraphTypes{{"))]
        self.assertEqual(re.findall(r'"(\w+)"', block), [type_name(each) for each in TYPES])


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
