# SPDX-License-Identifier: Apache-2.0
"""Modules for graph_test.py, each with something that makes cutting or importing hard."""

import math

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A residual block as torchvision writes it: ReLU and the sum in place."""

    def __init__(self, entering, leaving, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(entering, leaving, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(leaving)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(leaving, leaving, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(leaving)
        self.down = None
        if entering != leaving:
            self.down = nn.Sequential(nn.Conv2d(entering, leaving, 1, stride, bias=False), nn.BatchNorm2d(leaving))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(Block(8, 8, 1), Block(8, 8, 1))
        self.layer2 = nn.Sequential(Block(8, 16, 2), Block(16, 16, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(self.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class WrittenInPlace(nn.Module):
    """Writes into a view of a tensor, and into the input; both names of the memory are read afterwards."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, 1, 1)
        self.relu = nn.ReLU(inplace=True)
        self.middle = nn.Conv2d(8, 8, 3, 1, 1)
        self.later = nn.Conv2d(8, 8, 3, 1, 1)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = self.conv(x.relu_())
        view = x.view(x.shape[0], 8, -1)
        middle = self.middle(x * 0.5)
        view += 1  # x, too
        x = self.later(x + middle)
        return self.fc(self.relu(x).mean((2, 3)))


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList(nn.Conv2d(3 + 2 * i, 2, 3, 1, 1) for i in range(5))
        self.fc = nn.Linear(13, 10)

    def forward(self, x):
        made = [x]
        for step in self.steps:
            made.append(torch.sigmoid(step(torch.cat(made, 1))))
        return self.fc(torch.cat(made, 1).mean((2, 3)))


class WithConstants(nn.Module):
    """A buffer outside the state, a type and a device burnt in, a size of the batch, parameters of the root."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.second = nn.Linear(12, 12)
        self.third = nn.Linear(12, 12)
        self.fc = nn.Linear(24, 10)
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 12))
        self.register_buffer("order", torch.arange(11, -1, -1), persistent=False)

    def forward(self, x):
        x = self.first(x)[:, self.order] * self.scale
        x = self.second(torch.tanh(x)) + torch.arange(12, device=x.device).to(torch.float32)
        x = self.third(x.view(2 * x.shape[0], 6).reshape(-1, 12))
        low, high = x.chunk(2, dim=1)
        x = torch.where(low > high, low, high * 2)
        return self.fc(torch.cat([x, low, high, torch.zeros(x.shape[0], 6)], 1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.second = nn.Linear(12, 12)
        self.second.weight = self.first.weight
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        return self.fc(torch.tanh(self.second(torch.tanh(self.first(x)))))


class Pairs(Tied):
    """Two parameters that two modules each use; with `third` the first of them is used by a third one."""

    def __init__(self, third=False):
        super().__init__()
        self.third, self.fourth = nn.Linear(12, 12), nn.Linear(12, 12)
        self.fourth.weight = self.first.weight
        self.third.weight = self.first.weight if third else self.second.weight
        if not third:
            self.second.weight = self.third.weight = nn.Parameter(self.third.weight.detach().clone())

    def forward(self, x):
        for each in (self.first, self.second, self.third, self.fourth):
            x = torch.tanh(each(x))
        return self.fc(x)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.drop = nn.Dropout(0.3)
        self.second = nn.Linear(12, 12)
        self.again = nn.Dropout(0.5, inplace=True)
        self.third = nn.Linear(12, 12)
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        return self.fc(torch.tanh(self.third(self.again(self.second(self.drop(torch.tanh(self.first(x))))))))


class Refused(nn.Module):
    """A linear layer whose forward ends with something that cannot be imported."""

    def __init__(self, then):
        super().__init__()
        self.fc = nn.Linear(12, 10)
        self.register_buffer("count", torch.zeros(()))
        self.then = then

    def forward(self, x):
        return self.then(self, self.fc(x))


class Outputs(nn.Module):
    """Two heads, of which the second has a batch norm and a ReLU in place; a frozen layer; a region without gradients."""

    def __init__(self, made):
        super().__init__()
        self.first = nn.Linear(12, 12)
        self.frozen = nn.Linear(12, 12).requires_grad_(False)
        self.fc = nn.Linear(12, 10)
        self.aside = nn.Sequential(nn.Linear(12, 12), nn.BatchNorm1d(12), nn.ReLU(inplace=True), nn.Linear(12, 10))
        self.made = made

    def forward(self, x):
        x = torch.tanh(self.frozen(torch.tanh(self.first(x))))
        with torch.no_grad():
            scale = x.abs().mean(1, keepdim=True)
        return self.made(self.fc(x * scale), self.aside(x))


class Masked(nn.Module):
    """Positions and a mask of constants that every block reads, and an operator that needs strides as they were."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(12, 12) for _ in range(4))
        self.fc = nn.Linear(12, 10)
        self.register_buffer("start", torch.zeros(12), persistent=False)

    def forward(self, x):
        mask = self.start.clone()
        mask[::2] += 1
        order = torch.arange(11, -1, -1).expand(x.shape[0], 12)
        for block in self.blocks:
            x = torch.tanh(block(x)) * mask + x.gather(1, order)
            x = x.reshape(-1, 3, 4).transpose(1, 2).contiguous().transpose(1, 2).transpose(1, 2).view(-1, 12)
        return self.fc(x)


class DropsInLayers(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, 3, batch_first=True, bidirectional=True, dropout=p)
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        return self.fc(self.lstm(x.view(-1, 3, 4))[0][:, -1])


class CountsDropped(nn.Module):
    """Of each sample the mean over WIDTH × places of tanh(tanh(d)), where d is what the dropout between two layers of an
    LSTM makes of GIVEN: gates are open or closed, and only the second layer's cell reads its input.
    """

    WIDTH, P, OPEN = 64, 0.25, 40.0  # σ(40) is 1 to 17 digits
    GIVEN = math.tanh(1.0)

    def __init__(self):
        super().__init__()
        width = self.WIDTH
        self.lstm = nn.LSTM(1, width, 2, batch_first=True, dropout=self.P)
        self.fc = nn.Linear(1, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
            for bias in (self.lstm.bias_ih_l0, self.lstm.bias_ih_l1):
                for gate, value in enumerate((self.OPEN, -self.OPEN, 0.0, self.OPEN)):  # input, forget, cell, output
                    bias[gate * width : (gate + 1) * width] = value
            self.lstm.bias_ih_l0[2 * width : 3 * width] = self.OPEN
            self.lstm.weight_ih_l1[2 * width : 3 * width] = torch.eye(width)
            self.fc.weight[0] = 1

    def forward(self, x):
        return self.fc(self.lstm(x)[0].mean((1, 2)).unsqueeze(1))


class OtherInEvaluation(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        y = self.fc(x)
        return y if self.training else torch.softmax(y, 1)


class Backbone(nn.Module):
    """A body in evaluation and a head that is trained, each with a batch norm and a dropout."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Dropout(0.5))
        self.head = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 10))
        with torch.no_grad():
            self.body[1].running_mean.copy_(torch.linspace(-1, 1, 4))
            self.body[1].running_var.copy_(torch.linspace(0.5, 2, 4))

    def forward(self, x):
        return self.head(self.body(x))


class InEvaluation(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.fc = nn.Linear(12, 10)
        self.what = what

    def forward(self, x):
        y = self.fc(x)
        if self.training:
            return y
        if self.what == "tuple":
            return y, y.softmax(1)
        raise ValueError("no labels")


def branching(module, y):
    return y * 2 if y.sum() > 0 else y


def counting(module, y):
    module.count.add_(1)
    return y + module.count


def residual():
    torch.manual_seed(0)
    return Residual()


def written_in_place():
    torch.manual_seed(0)
    return WrittenInPlace()


def dense():
    torch.manual_seed(0)
    return Dense()


def with_constants():
    torch.manual_seed(0)
    return WithConstants()


def pooled():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d((7, 7)), nn.Flatten(), nn.Linear(196, 10))


def tied():
    torch.manual_seed(0)
    return Tied()


def pairs():
    torch.manual_seed(0)
    return Pairs()


def used_by_four():
    torch.manual_seed(0)
    return Pairs(third=True)


def dropping():
    torch.manual_seed(0)
    return Dropping()


def outputs_by_name():
    torch.manual_seed(0)
    return Outputs(lambda y, aside: {"aside": aside, "logits": y})


def outputs_by_position():
    torch.manual_seed(0)
    return Outputs(lambda y, aside: (aside, y))


def masked():
    torch.manual_seed(0)
    return Masked()


def drops_in_layers():
    torch.manual_seed(0)
    return DropsInLayers(0.5)


def drops_never():
    torch.manual_seed(0)
    return DropsInLayers(1e-300)


def drops_nothing():
    torch.manual_seed(0)
    return DropsInLayers(0.0)


def counts_dropped():
    return CountsDropped()


def other_in_evaluation():
    return OtherInEvaluation()


def frozen_backbone():
    torch.manual_seed(0)
    model = Backbone()
    model.eval()
    model.head.train()
    return model


def frozen_backbone_in_training():
    torch.manual_seed(0)
    model = Backbone().train()
    model.body.eval()
    return model


def frozen_parameters():
    model = frozen_backbone_in_training()
    model.body.requires_grad_(False)
    return model


def residual_in_evaluation():
    return residual().eval()


def raises_in_evaluation():
    return InEvaluation("raise")


def tuple_in_evaluation():
    return InEvaluation("tuple")


def half():
    return nn.Linear(12, 10).half()


def compiled():
    return torch.compile(nn.Linear(12, 10))


def in_data_parallel():
    return nn.Sequential(nn.DataParallel(nn.Linear(12, 10)))


def momentum_none():
    return nn.Sequential(nn.Linear(12, 10), nn.BatchNorm1d(10, momentum=None))


def raises_when_made():
    raise RuntimeError("no weights here\nlook elsewhere")


def leaves_when_made():
    raise SystemExit(3)


def raises_in_forward():
    return Refused(lambda module, y: y + {}["absent"])


def counts_data():
    return nn.Sequential(nn.Linear(12, 10), CountsData())


class CountsData(nn.Module):
    def forward(self, x):
        return x * torch.nonzero_static(x, size=4).to(x.dtype).sum()


def of_complex_numbers():
    return Refused(lambda module, y: torch.fft.fft(y).real)


FAILING = {
    "half": "cannot compute with such an input: RuntimeError: ",
    "compiled": "the module '' is wrapped by torch.compile; expected the module inside",
    "in_data_parallel": "the module '0' is wrapped by DataParallel; expected the module inside",
    "momentum_none": "the batch norm '1' has momentum=None; expected a number",
    "raises_when_made": "graph_modules.py:",
    "leaves_when_made": "make_model: SystemExit: 3",
    "raises_in_forward": "torch.export cannot export the module: KeyError: 'absent'",
    "counts_data": "the operator aten.nonzero_static.default of module '1' (graph_modules.py:",
    "of_complex_numbers": "of module ''",
}


def of_two_inputs():
    module = nn.Linear(12, 10)
    module.forward = lambda x, mask: x + mask
    return module


def draws_by_itself():
    return Refused(lambda module, y: y + torch.rand_like(y))


def decided_by_data():
    return Refused(branching)


def of_two_outputs():
    return Refused(lambda module, y: (y, y * 2))


def of_fixed_batch():
    return Refused(lambda module, y: y + torch.zeros(4, 10))


def counts_by_itself():
    return Refused(counting)


def line_of(text):
    return 1 + next(i for i, line in enumerate(open(__file__, encoding="utf-8")) if line.strip() == text)


REFUSED = {
    "decided_by_data": "data-dependent",
    "of_two_outputs": "returns 2 values in training; expected one tensor, or one that is called logits (--output",
    "of_two_inputs": "forward takes x, mask; expected --input NAME=SIZES for each, also for mask, or a wrapper",
    "draws_by_itself": f"of module '' (graph_modules.py:{line_of('return self.then(self, self.fc(x))')}) draws random numbers",
    "of_fixed_batch": "batch",
    "counts_by_itself": "writes into 'count'",
    "nothing": "has no function 'nothing'",
}
