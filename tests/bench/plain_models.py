# SPDX-License-Identifier: Apache-2.0
"""The project's models in plain PyTorch: torchvision's and transformers' where they have them, else written here.

MODELS: from a name to a function of the options that the experiment file has to the module. Every module maps what
`inputs` of model_peer.py makes to the outputs that the loss compares.
"""

import copy
from functools import partial

import torch
import torchvision
import transformers
from torch import nn
from torch.nn import functional
from torchvision.ops import Conv2dNormActivation

VGG16 = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]


def mlp(widths, **_):
    layers = []
    for entering, leaving in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(entering, leaving), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


def pooled_classifier(channels, classes=10):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def cnn(size, dropout=0.1, **_):
    layers, entering, side = [], 3, size
    for i, channels in enumerate([16, 32, 32, 64, 64, 96, 96]):
        layers += [nn.Conv2d(entering, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        layers += [nn.ReLU(inplace=True)]
        if i % 2 == 1:
            if side > 4:
                layers, side = [*layers, nn.MaxPool2d(2)], side // 2
            if dropout > 0:
                layers.append(nn.Dropout(dropout))
        entering = channels
    return nn.Sequential(*layers, *pooled_classifier(entering))


def vgg16(batch_norm=True, width=1, **_):
    channels = [part if part == "M" else round(part * width) for part in VGG16]
    features = torchvision.models.vgg.make_layers(channels, batch_norm=batch_norm)
    return nn.Sequential(features, *pooled_classifier(channels[-2]))


def resnet(depth):
    def make(stem, **_):
        model = getattr(torchvision.models, f"resnet{depth}")(num_classes=10)
        if stem == "cifar":
            model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
        return model

    return make


class NewFirst(nn.Module):
    """What the layers make, then what they were given."""

    def __init__(self, *layers):
        super().__init__()
        self.made = nn.Sequential(*layers)

    def forward(self, x):
        return torch.cat([self.made(x), x], 1)


def norm_relu_convolution(entering, leaving, kernel):
    convolution = nn.Conv2d(entering, leaving, kernel, padding=kernel // 2, bias=False)
    return [nn.BatchNorm2d(entering), nn.ReLU(inplace=True), convolution]


def densenet121(stem, **_):
    if stem == "imagenet":
        return torchvision.models.densenet121(num_classes=10)
    layers, channels = [nn.Conv2d(3, 64, 3, padding=1, bias=False)], 64
    for b, count in enumerate([6, 12, 24, 16]):
        for _ in range(count):
            narrow = norm_relu_convolution(channels, 128, 1)
            layers.append(NewFirst(*narrow, *norm_relu_convolution(128, 32, 3)))
            channels += 32
        if b < 3:
            layers += [*norm_relu_convolution(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(inplace=True), *pooled_classifier(channels))


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


INCEPTIONS = [
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    "M",
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    "M",
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
]


def googlenet(form="cifar", **_):
    if form == "torchvision":
        return torchvision.models.googlenet(num_classes=10, aux_logits=False, init_weights=False)

    def unit(entering, leaving, kernel=1):
        return Conv2dNormActivation(entering, leaving, kernel, bias=True)

    layers, channels = [unit(3, 192, 3)], 192
    for block in INCEPTIONS:
        if block == "M":
            layers.append(nn.MaxPool2d(3, 2, 1))
            continue
        one, three_reduced, three, five_reduced, five, pooled = block
        fives = [unit(channels, five_reduced), unit(five_reduced, five, 3), unit(five, five, 3)]
        layers.append(
            Branches(
                unit(channels, one),
                nn.Sequential(unit(channels, three_reduced), unit(three_reduced, three, 3)),
                nn.Sequential(*fives),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(channels, pooled)),
            )
        )
        channels = one + three + five + pooled
    return nn.Sequential(*layers, *pooled_classifier(channels))


def inception_v3(**_):
    return torchvision.models.inception_v3(num_classes=10, aux_logits=False, init_weights=False)


def alexnet(**_):
    return torchvision.models.alexnet(num_classes=10)


def mobilenet_v2(**_):
    return torchvision.models.mobilenet_v2(num_classes=10)


def relu_convolution_norm(entering, leaving, kernel=1, stride=1, padding=0, inplace=False):
    convolution = nn.Conv2d(entering, leaving, kernel, stride, padding, bias=False)
    return nn.Sequential(nn.ReLU(inplace=inplace), convolution, nn.BatchNorm2d(leaving))


class FactorizedReduction(nn.Module):
    def __init__(self, entering, leaving):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(entering, leaving // 2, 1, stride=2, bias=False)
        self.conv2 = nn.Conv2d(entering, leaving // 2, 1, stride=2, bias=False)
        self.pad = nn.ConstantPad2d((0, 1, 0, 1), 0)
        self.bn = nn.BatchNorm2d(leaving)

    def forward(self, x):
        x = self.relu(x)
        return self.bn(torch.cat([self.conv1(x), self.conv2(self.pad(x[:, :, 1:, 1:]))], 1))


def amoeba_operation(kind, c, stride):
    if kind == "none":
        return nn.Identity() if stride == 1 else FactorizedReduction(c, c)
    if kind == "avg":
        return nn.AvgPool2d(3, stride, 1, count_include_pad=False)
    if kind == "max":
        return nn.MaxPool2d(2, stride)
    if kind == "1x1":
        return relu_convolution_norm(c, c, 1, stride)
    q = c // 4
    if kind == "3x3":
        inner = [relu_convolution_norm(q, q, 3, stride, 1, True)]
    else:
        inner = [relu_convolution_norm(q, q, (1, 7), (1, stride), (0, 3), True)]
        inner += [relu_convolution_norm(q, q, (7, 1), (stride, 1), (3, 0), True)]
    return nn.Sequential(relu_convolution_norm(c, q), *inner, relu_convolution_norm(q, c, inplace=True))


NORMAL = [(1, "1x1"), (1, "avg"), (1, "none"), (0, "1x7"), (0, "1x1"), (0, "1x7"), (2, "avg"), (2, "none")]
NORMAL += [(1, "avg"), (5, "1x1")]
REDUCTION = [(0, "max"), (0, "avg"), (2, "none"), (1, "3x3"), (2, "1x7"), (2, "avg"), (3, "none"), (1, "max")]
REDUCTION += [(2, "avg"), (3, "1x1")]


class AmoebaCell(nn.Module):
    def __init__(self, last, before_last, channels, reduces, after_reduction):
        super().__init__()
        self.plan, self.kept = (REDUCTION, [4, 5, 6]) if reduces else (NORMAL, [0, 3, 4, 6])
        self.reduce1 = relu_convolution_norm(last, channels)
        if after_reduction:
            self.reduce2 = FactorizedReduction(before_last, channels)
        else:
            same = before_last == channels
            self.reduce2 = nn.Identity() if same else relu_convolution_norm(before_last, channels)
        operations = [amoeba_operation(kind, channels, 2 if reduces and s < 2 else 1) for s, kind in self.plan]
        self.operations = nn.ModuleList(operations)

    def forward(self, both):
        last, before_last = both
        states = [self.reduce1(last), self.reduce2(before_last)]
        for i in range(0, len(self.plan), 2):
            one, other = (self.operations[j](states[self.plan[j][0]]) for j in (i, i + 1))
            states.append(one + other)
        return torch.cat([states[i] for i in self.kept], 1), last


class AmoebaNetD(nn.Module):
    def __init__(self, cells, filters, **_):
        super().__init__()
        channels = filters // 4
        self.stem = relu_convolution_norm(3, channels, 3, 2, 1)
        plan = [True, True]
        for group in range(3):
            plan += ([True] if group else []) + [False] * (cells // 3)
        made, last, before_last, after = [], channels, channels, False
        for reduces in plan:
            channels *= 2 if reduces else 1
            made.append(AmoebaCell(last, before_last, channels, reduces, after))
            last, before_last, after = channels * (3 if reduces else 4), last, reduces
        self.cells = nn.Sequential(*made)
        self.classifier = nn.Sequential(*pooled_classifier(last))

    def forward(self, x):
        x = self.stem(x)
        return self.classifier(self.cells((x, x))[0])


class UNet(nn.Module):
    def __init__(self, depth, convolutions, base_channels, dropout=0.1, **_):
        super().__init__()
        at = [base_channels * 2**level // 2 for level in range(depth + 2)]

        def cell(entering, middle, leaving):
            layers = []
            for i in range(convolutions):
                to = leaving if i + 1 == convolutions else middle
                layers.append(nn.Conv2d(entering, to, 3, padding=1, bias=False))
                if dropout > 0:
                    layers.append(nn.Dropout2d(dropout))
                layers += [nn.InstanceNorm2d(to), nn.LeakyReLU(0.01, inplace=True)]
                entering = to
            return nn.Sequential(*layers)

        down = [cell(3 if level == 1 else at[level - 1], at[level], at[level]) for level in range(1, depth + 1)]
        self.down = nn.ModuleList(down)
        self.pool, self.upsample = nn.MaxPool2d(2, 2), nn.Upsample(scale_factor=2, mode="nearest")
        self.bottom = cell(at[depth], at[depth + 1], at[depth])
        up = [cell(at[level + 1], at[level - 1], at[level - 1]) for level in range(depth, 0, -1)]
        self.up = nn.ModuleList(up)
        self.output = nn.Conv2d(at[0], 1, 1, bias=False)

    def forward(self, x):
        stashed = []
        for cell in self.down:
            x = cell(x)
            stashed.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for cell in self.up:
            x = cell(torch.cat([self.upsample(x), stashed.pop()], 1))
        return self.output(x)


class MeanOverTokens(nn.Module):
    def forward(self, x):
        return x.mean(1)


def encoder(layers, width, heads, feed_forward, dropout=0.1, **_):
    block = nn.TransformerEncoderLayer(width, heads, feed_forward, dropout, batch_first=True)
    return nn.Sequential(*[copy.deepcopy(block) for _ in range(layers)], MeanOverTokens(), nn.Linear(width, 10))


class TransformerBlock(nn.Module):
    def __init__(self, width, heads, feed_forward, dropout):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.linear1, self.linear2 = nn.Linear(width, feed_forward), nn.Linear(feed_forward, width)

    def forward(self, x):
        a = self.norm1(x + self.dropout1(self.attention(x, x, x, need_weights=False)[0]))
        return self.norm2(x + self.dropout2(self.linear2(functional.relu(self.linear1(a)))))


class Transformer(nn.Module):
    def __init__(self, vocabulary, tokens, width, heads, feed_forward, blocks, dropout=0.5, **_):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(vocabulary, width), nn.Linear(width, width)
        self.positions = nn.Linear(tokens, width)
        self.blocks = nn.Sequential(*[TransformerBlock(width, heads, feed_forward, dropout) for _ in range(blocks)])
        self.classifier = nn.Linear(width, 2)

    def forward(self, ids):
        positions = self.positions.weight[:, : ids.shape[1]].t() + self.positions.bias
        x = self.linear(self.embedding(ids)) + positions
        return self.classifier(self.blocks(x).mean(1))


class ResidualLstm(nn.Module):
    def __init__(self, vocabulary, width, blocks, **_):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstms = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(blocks))
        self.linears = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.classifier = nn.Linear(width, 2)

    def forward(self, ids):
        x = self.embedding(ids)
        for lstm, linear in zip(self.lstms, self.linears, strict=True):
            x = x + linear(lstm(x)[0])
        return self.classifier(x.mean(1))


class AdditiveAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.direction, self.bias = nn.Parameter(torch.randn(width)), nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, memory, lengths):
        queries = self.query(x).unsqueeze(2) + self.key(memory).unsqueeze(1) + self.bias
        direction = self.direction / self.direction.norm() * self.scale
        scores = torch.tanh(queries) @ direction
        beyond = torch.arange(memory.shape[1]).unsqueeze(0) >= lengths.unsqueeze(1)
        shares = functional.softmax(scores.masked_fill(beyond.unsqueeze(1), -65504.0), -1)
        return torch.bmm(shares, memory)


class Gnmt(nn.Module):
    """For mini-batches without padding: packed sequences, which it would need otherwise, are slower."""

    def __init__(self, depth, vocabulary, width, dropout=0.2, **_):
        super().__init__()
        self.source = nn.Embedding(vocabulary, width, padding_idx=0)
        self.target = nn.Embedding(vocabulary, width, padding_idx=0)
        self.both = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.encoder = nn.ModuleList(
            nn.LSTM(width if i else 2 * width, width, batch_first=True) for i in range(depth - 1)
        )
        self.first = nn.LSTM(width, width, batch_first=True)
        self.attention = AdditiveAttention(width)
        self.decoder = nn.ModuleList(nn.LSTM(2 * width, width, batch_first=True) for _ in range(depth - 1))
        self.dropout, self.classifier = nn.Dropout(dropout), nn.Linear(width, vocabulary)

    def forward(self, source, target):
        lengths = source.ne(0).sum(1)
        x = self.both(self.source(source))[0]
        for i, lstm in enumerate(self.encoder):
            y = lstm(self.dropout(x))[0]
            x = y if i == 0 else y + x
        y = self.first(self.target(target))[0]
        context = self.attention(y, x, lengths)
        for i, lstm in enumerate(self.decoder):
            z = lstm(torch.cat([self.dropout(y), context], 2))[0]
            y = z if i == 0 else z + y
        return self.classifier(y)


class Roberta(nn.Module):
    def __init__(self, vocabulary, positions, width, heads, feed_forward, layers, dropout=0.1, **_):
        super().__init__()
        config = transformers.RobertaConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            num_attention_heads=heads,
            num_hidden_layers=layers,
            intermediate_size=feed_forward,
            max_position_embeddings=positions,
            type_vocab_size=1,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            num_labels=2,
        )
        self.model = transformers.RobertaForSequenceClassification(config)

    def forward(self, ids):
        return self.model(ids, attention_mask=ids.ne(1).long()).logits


class Gpt(nn.Module):
    def __init__(self, vocabulary, tokens, width, heads, layers, dropout=0.1, **_):
        super().__init__()
        config = transformers.GPT2Config(
            vocab_size=vocabulary,
            n_positions=tokens,
            n_embd=width,
            n_head=heads,
            n_layer=layers,
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            tie_word_embeddings=False,
            activation_function="gelu_pytorch_tanh",  # one operator; the same numbers as "gelu_new"
            use_cache=False,
        )
        self.model = transformers.GPT2LMHeadModel(config)

    def forward(self, ids):
        return self.model(ids).logits


class DecoderBlock(nn.Module):
    """Llama's, or that of a public contest over slow links."""

    def __init__(self, width, heads, kv_heads, hidden, contest):
        super().__init__()
        self.heads, self.kv_heads, self.contest = heads, kv_heads, contest
        size = width // heads
        self.q, self.o = (nn.Linear(width, width, bias=contest) for _ in "qo")
        self.k, self.v = (nn.Linear(width, size * kv_heads, bias=contest) for _ in "kv")
        self.up, self.down = nn.Linear(width, hidden, bias=contest), nn.Linear(hidden, width, bias=contest)
        self.gate = None if contest else nn.Linear(width, hidden, bias=False)
        self.before, self.behind = (nn.RMSNorm(width, eps=1e-5) for _ in range(2))

    @staticmethod
    def turned(x, cosines, sines):
        left, right = x.chunk(2, -1)
        return torch.cat((left * cosines - right * sines, right * cosines + left * sines), -1).type_as(x)

    def attention(self, x, angles):
        q, k, v = (each(x).unflatten(-1, (heads, -1)).transpose(1, 2) for each, heads in ((self.q, self.heads), (self.k, self.kv_heads), (self.v, self.kv_heads)))
        if self.contest:
            q, k = (functional.rms_norm(each, (each.shape[-1],), eps=1e-5) for each in (q, k))
        q, k = self.turned(q, *angles), self.turned(k, *angles)
        scale = 0.12 if self.contest else None
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=self.heads != self.kv_heads)
        return self.o(y.transpose(1, 2).flatten(2))

    def forward(self, x, angles):
        x = x + self.attention(self.before(x), angles)
        y = self.behind(x)
        y = self.up(y).relu().square() if self.contest else functional.silu(self.gate(y)) * self.up(y)
        return x + self.down(y)


class Decoder(nn.Module):
    def __init__(self, vocabulary, tokens, width, heads, layers, preset="llama", kv_heads=0, mlp_width=0, **_):
        super().__init__()
        contest, size = preset == "slow_links", width // heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.first = nn.RMSNorm(width, eps=1e-5) if contest else nn.Identity()
        self.blocks = nn.ModuleList(DecoderBlock(width, heads, kv_heads or heads, mlp_width or 4 * width, contest) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=contest)
        self.contest = contest
        frequencies = 10000.0 ** -(torch.arange(size // 2) / (size // 2))
        angles = torch.outer(torch.arange(tokens), frequencies)
        self.angles = angles.cos(), angles.sin()

    def forward(self, ids):
        x = self.first(self.embedding(ids))
        for block in self.blocks:
            x = block(x, self.angles)
        y = self.output(self.norm(x))
        return 15 * y * (y.square() + 15**2).rsqrt() if self.contest else y


MODELS = {
    "alexnet": alexnet,
    "amoebanet_d": AmoebaNetD,
    "cnn": cnn,
    "decoder": Decoder,
    "densenet121": densenet121,
    "encoder": encoder,
    "gnmt8": partial(Gnmt, 4),
    "gnmt16": partial(Gnmt, 8),
    "googlenet": googlenet,
    "gpt": Gpt,
    "inception_v3": inception_v3,
    "mlp": mlp,
    "mobilenet_v2": mobilenet_v2,
    "resnet18": resnet(18),
    "resnet34": resnet(34),
    "resnet50": resnet(50),
    "resnet101": resnet(101),
    "residual_lstm": ResidualLstm,
    "roberta": Roberta,
    "transformer": Transformer,
    "unet": UNet,
    "vgg16": vgg16,
}
