# SPDX-License-Identifier: Apache-2.0
"""Modules that people have: torchvision's and transformers' models, a recurrent network and PyTorch's own encoder.

Widths are those of the authors where a training takes a second, and otherwise smaller; names, operators and order are
theirs.
"""

import torch
import torchvision
import transformers
from graph_training import Case
from torch import nn
from torchvision.models.convnext import CNBlockConfig

CLASSES = 10
TOKENS, VOCABULARY = 12, 60


def vision(name, **options):
    return lambda: getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **options)


def narrow_vgg(dropout):
    """A quarter of the width: as it is, the linear layers have 120 million parameters."""
    plan = [16, 16, "M", 32, 32, "M", 64, 64, 64, "M", 128, 128, 128, "M", 128, 128, 128, "M"]
    model = torchvision.models.VGG(torchvision.models.vgg.make_layers(plan, batch_norm=True), CLASSES, False, dropout)
    model.avgpool = nn.AdaptiveAvgPool2d(1)
    model.classifier[0], model.classifier[3], model.classifier[6] = nn.Linear(128, 64), nn.Linear(64, 64), nn.Linear(64, CLASSES)
    return model


def narrow_convnext(drop):
    widths = (16, 32, 48, 64)
    blocks = [CNBlockConfig(a, b, count) for a, b, count in zip(widths, (*widths[1:], None), (3, 3, 9, 3))]
    return torchvision.models.ConvNeXt(blocks, stochastic_depth_prob=drop, num_classes=CLASSES)


def narrow_swin(drop):
    return torchvision.models.SwinTransformer([4, 4], 16, [2, 2, 6, 2], [2, 4, 8, 16], [7, 7], stochastic_depth_prob=drop, num_classes=CLASSES)


def narrow_vit(dropout):
    return torchvision.models.VisionTransformer(32, 8, 12, 4, 32, 64, dropout=dropout, attention_dropout=dropout, num_classes=CLASSES)


class Recurrent(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.first = nn.LSTM(12, 16, 3, batch_first=True, bidirectional=True, dropout=dropout)
        self.second = nn.LSTM(32, 16, batch_first=True)
        self.third = nn.GRU(16, 16, 2, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        x, _ = self.first(x)
        x, _ = self.second(x)
        x, _ = self.third(x)
        return self.fc(x[:, -1])


class Encoder(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, tokens):
        x = self.encoder(self.embedding(tokens), src_key_padding_mask=tokens == 0)
        return self.fc(x.mean(1))


def gpt2(drop, tied=False):
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=16, n_embd=16, n_head=2, n_layer=4, tie_word_embeddings=tied,
            resid_pdrop=drop, embd_pdrop=drop, attn_pdrop=drop,
        )
    )  # fmt: skip


def bert(drop):
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=16, num_labels=CLASSES, hidden_dropout_prob=drop, attention_probs_dropout_prob=drop,
        )
    )  # fmt: skip


def transformers_convnext(drop):
    """Its stochastic depth rounds rand() + p down."""
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_labels=CLASSES, drop_path_rate=drop, layer_scale_init_value=0.1)
    return transformers.ConvNextForImageClassification(config)


class TwoTowers(nn.Module):
    """A tower of features, a tower of tokens behind it, and two numbers that only the end reads: each input is of another
    type, and all but the first live longer than a stage.
    """

    def __init__(self, dropout):
        super().__init__()
        self.user = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))
        self.embedding = nn.Embedding(VOCABULARY, 12)
        self.item = nn.Linear(12, 12)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(24, CLASSES)

    def forward(self, user, item, keep, scale):
        for layer in self.user:
            user = torch.tanh(layer(user))
        item = self.embedding(item).masked_fill(~keep.unsqueeze(2), 0.0).sum(1)
        item = self.drop(torch.tanh(self.item(item)))
        return self.fc(torch.cat([user, item], 1)) * scale.unsqueeze(1)


def some_tokens(samples):
    return torch.randint(VOCABULARY, (samples, TOKENS))


def padded_behind(samples):
    """The attention mask of texts of half the tokens or more."""
    return (torch.arange(TOKENS) < torch.randint(TOKENS // 2, TOKENS + 1, (samples, 1))).long()


TOWER_INPUTS = {
    "user": lambda samples: torch.randn(samples, 12),
    "item": some_tokens,
    "keep": lambda samples: torch.rand(samples, TOKENS) < 0.7,
    "scale": lambda samples: 0.5 + torch.rand(samples),
}
TEXT_INPUTS = {
    "input_ids": some_tokens,
    "attention_mask": padded_behind,
    "token_type_ids": lambda samples: torch.randint(2, (samples, TOKENS)),
}


def llama(drop=0.0):
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=16, tie_word_embeddings=False, attention_dropout=drop,
        )
    )  # fmt: skip


CONVOLUTIONS = {
    "resnet18": Case(vision("resnet18"), (3, 64, 64)),
    "resnet50": Case(vision("resnet50", width_per_group=16), (3, 64, 64)),
    "vgg16_bn": Case(lambda: narrow_vgg(0), (3, 32, 32), dropping=lambda: narrow_vgg(0.5)),
    "densenet121": Case(lambda: torchvision.models.DenseNet(8, (6, 12, 24, 16), 16, num_classes=CLASSES), (3, 64, 64)),
    "googlenet": Case(
        vision("googlenet", init_weights=False, dropout=0.0, dropout_aux=0.0),
        (3, 64, 64),
        dropping=vision("googlenet", init_weights=False),
        left_out="aux",
    ),
    "inception_v3": Case(
        vision("inception_v3", init_weights=False, dropout=0.0, aux_logits=False),
        (3, 107, 107),
        dropping=vision("inception_v3", init_weights=False, aux_logits=False),
    ),
    "mobilenet_v2": Case(vision("mobilenet_v2", dropout=0.0), (3, 64, 64), dropping=vision("mobilenet_v2")),
    "efficientnet_b0": Case(
        vision("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0), (3, 64, 64), dropping=vision("efficientnet_b0")
    ),
    "convnext_tiny": Case(lambda: narrow_convnext(0.0), (3, 32, 32), dropping=lambda: narrow_convnext(0.1)),
}
SEQUENCES = {
    "swin_t": Case(lambda: narrow_swin(0.0), (3, 64, 64), dropping=lambda: narrow_swin(0.2)),
    "vit_b_16": Case(lambda: narrow_vit(0.0), (3, 32, 32), depth=4, dropping=lambda: narrow_vit(0.1)),
    "lstm": Case(Recurrent, (7, 12), dropping=lambda: Recurrent(0.3)),
    "encoder": Case(lambda: Encoder(0.0), (TOKENS,), VOCABULARY, depth=3, dropping=lambda: Encoder(0.1)),
    "gpt2": Case(lambda: gpt2(0.0), (TOKENS,), VOCABULARY, True, 3, classes=VOCABULARY, dropping=lambda: gpt2(0.1)),
    "bert": Case(lambda: bert(0.0), (TOKENS,), VOCABULARY, depth=4, dropping=lambda: bert(0.1)),
    "transformers_convnext": Case(lambda: transformers_convnext(0.0), (3, 64, 64), depth=5, dropping=lambda: transformers_convnext(0.3)),
    "two_towers": Case(lambda: TwoTowers(0.0), (), depth=2, inputs=TOWER_INPUTS, dropping=lambda: TwoTowers(0.2)),
    "bert_with_masks": Case(lambda: bert(0.0), (), depth=4, inputs=TEXT_INPUTS, dropping=lambda: bert(0.1)),
    # Its norms and rotations compute in float32 by name, which is the precision of the training here.
    "llama": Case(llama, (TOKENS,), VOCABULARY, True, 3, classes=VOCABULARY, precision="float32", dropping=lambda: llama(0.1)),
}
