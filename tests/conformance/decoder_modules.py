# SPDX-License-Identifier: Apache-2.0
"""Modules for the presets of the model `decoder`, whose parameters have its names: transformers' Llama and GPT-2, and a
plain module of the shape of a public contest over slow links, written from its description."""

import torch
import torch.nn.functional as F
import transformers
from transformers.models.llama import modeling_llama

SMALL = {"vocabulary": 99, "width": 32, "heads": 4, "layers": 3, "tokens": 24}
INNER = 40  # of the MLP


class WideNorm(torch.nn.Module):
    """LlamaRMSNorm in the format of its input; transformers computes it in float32, whatever that is."""

    def __init__(self, theirs):
        super().__init__()
        self.weight, self.eps = theirs.weight, theirs.variance_epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class WideAngles(torch.nn.Module):
    """LlamaRotaryEmbedding in float64, for the same reason."""

    def __init__(self, base, size):
        super().__init__()
        self.frequencies = base ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)

    def forward(self, x, positions):
        angles = positions[:, :, None].double() * torch.cat([self.frequencies, self.frequencies])
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def ours_of_llama(name):
    """The decoder's name of a parameter of LlamaForCausalLM."""
    return name.removeprefix("model.").replace("embed_tokens", "embeddings.tokens")


class Llama(torch.nn.Module):
    """LlamaForCausalLM with half as many heads of keys as of queries."""

    options = {"preset": "llama", "kv_heads": 2, "mlp_width": INNER, "norm_eps": 1e-6, "rotary_base": 500.0}

    def __init__(self):
        super().__init__()
        config = transformers.LlamaConfig(
            vocab_size=SMALL["vocabulary"],
            hidden_size=SMALL["width"],
            intermediate_size=INNER,
            num_hidden_layers=SMALL["layers"],
            num_attention_heads=SMALL["heads"],
            num_key_value_heads=2,
            rms_norm_eps=1e-6,
            rope_theta=500.0,
            max_position_embeddings=SMALL["tokens"],
            tie_word_embeddings=False,
        )
        self.theirs = transformers.LlamaForCausalLM(config).double()
        for path, module in list(self.theirs.named_modules()):
            if isinstance(module, modeling_llama.LlamaRMSNorm):
                parent, _, name = path.rpartition(".")
                setattr(self.theirs.get_submodule(parent), name, WideNorm(module))
        self.theirs.model.rotary_emb = WideAngles(500.0, SMALL["width"] // SMALL["heads"])

    def named(self):
        return {ours_of_llama(name): each for name, each in self.theirs.named_parameters()}

    def forward(self, x):
        return self.theirs(x, use_cache=False).logits


def gpt2_config(vocabulary, width, heads, layers, tokens, **_):
    """GPT-2 without dropout, with an output of its own."""
    return transformers.GPT2Config(
        vocab_size=vocabulary,
        n_positions=tokens,
        n_embd=width,
        n_head=heads,
        n_layer=layers,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        tie_word_embeddings=False,
    )


class Gpt2(torch.nn.Module):
    """GPT2LMHeadModel, whose three projections are one tensor there, transposed."""

    options = {"preset": "gpt2"}

    def __init__(self):
        super().__init__()
        config = gpt2_config(**SMALL)
        self.theirs = transformers.GPT2LMHeadModel(config).double()
        self.parts, self.places = {}, {}
        for name, each in self.theirs.named_parameters():
            ours, pieces = self.ours(name)
            whole = each.t() if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) else each
            for piece, value in zip(pieces or [""], whole.chunk(max(1, len(pieces)), 0)):
                self.parts[ours.format(piece)] = torch.nn.Parameter(value.detach().clone().contiguous())
            self.places[name] = [ours.format(piece) for piece in pieces or [""]]

    @staticmethod
    def ours(name):
        """The decoder's name of one of theirs; those that take the place of {} in it."""
        for theirs, ours in (
            ("transformer.wte", "embeddings.tokens"),
            ("transformer.wpe", "embeddings.positions"),
            ("transformer.ln_f", "norm"),
            ("transformer.h.", "layers."),
            ("ln_1", "input_layernorm"),
            ("ln_2", "post_attention_layernorm"),
            ("attn.c_attn", "self_attn.{}_proj"),
            ("attn.c_proj", "self_attn.o_proj"),
            ("mlp.c_fc", "mlp.up_proj"),
            ("mlp.c_proj", "mlp.down_proj"),
        ):
            name = name.replace(theirs, ours)
        return name, ["q", "k", "v"] if "{}" in name else []

    def named(self):
        return self.parts

    def forward(self, x):
        given = {}
        for name, places in self.places.items():
            whole = torch.cat([self.parts[place] for place in places])
            given[name] = whole.t() if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) else whole
        return torch.func.functional_call(self.theirs, given, (x,), {"use_cache": False}).logits


class Contest(torch.nn.Module):
    """Queries and keys of root mean square 1 and rotary positions for half of the pairs, scores times 0.12, RMS norms
    with gains, squared ReLU, biases everywhere, scores between -15 and 15."""

    options = {"preset": "slow_links", "norm_eps": 1e-7}

    def __init__(self):
        super().__init__()
        width, vocabulary, double = SMALL["width"], SMALL["vocabulary"], torch.float64
        shapes = {"embeddings.tokens.weight": (vocabulary, width), "embeddings.norm.weight": (width,), "norm.weight": (width,)}
        shapes |= {"lm_head.weight": (vocabulary, width), "lm_head.bias": (vocabulary,)}
        for i in range(SMALL["layers"]):
            matrices = {f"self_attn.{x}_proj": (width, width) for x in "qkvo"}
            matrices |= {"mlp.up_proj": (4 * width, width), "mlp.down_proj": (width, 4 * width)}
            for name, shape in matrices.items():
                shapes |= {f"layers.{i}.{name}.weight": shape, f"layers.{i}.{name}.bias": shape[:1]}
            shapes |= {f"layers.{i}.{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
        self.parts = {name: torch.nn.Parameter(torch.randn(shape, dtype=double) / shape[-1] ** 0.5) for name, shape in shapes.items()}

    def named(self):
        return self.parts

    def linear(self, x, name):
        return F.linear(x, self.parts[name + ".weight"], self.parts[name + ".bias"])

    def norm(self, x, name=None):
        return F.rms_norm(x, (x.shape[-1],), name and self.parts[name + ".weight"], 1e-7)

    def turn(self, x):
        """x [batch, tokens, heads, d]: half of the frequencies reach from 1 to 1/1024, the others are 0."""
        turning = x.shape[-1] // 4
        frequencies = torch.cat([(1 / 1024) ** torch.linspace(0, 1, turning, dtype=x.dtype), torch.zeros(turning, dtype=x.dtype)])
        angles = torch.outer(torch.arange(x.shape[1], dtype=x.dtype), frequencies)[:, None, :]
        left, right = x.chunk(2, -1)
        return torch.cat([left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()], -1)

    def attention(self, x, name):
        q, k, v = (self.linear(x, f"{name}.{each}_proj").unflatten(-1, (SMALL["heads"], -1)) for each in "qkv")
        q, k = self.turn(self.norm(q)), self.turn(self.norm(k))
        scores = 0.12 * torch.einsum("bqhd,bkhd->bhqk", q, k)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        shares = scores.masked_fill(later, -torch.inf).softmax(-1)
        return self.linear(torch.einsum("bhqk,bkhd->bqhd", shares, v).flatten(2), name + ".o_proj")

    def forward(self, x):
        x = self.norm(self.parts["embeddings.tokens.weight"][x], "embeddings.norm")
        for i in range(SMALL["layers"]):
            x = x + self.attention(self.norm(x, f"layers.{i}.input_layernorm"), f"layers.{i}.self_attn")
            inner = self.linear(self.norm(x, f"layers.{i}.post_attention_layernorm"), f"layers.{i}.mlp.up_proj")
            x = x + self.linear(inner.relu() ** 2, f"layers.{i}.mlp.down_proj")
        scores = self.linear(self.norm(x, "norm"), "lm_head")
        return 15 * scores / (scores**2 + 15**2).sqrt()


def randomised(module):
    """Norms and biases begin elsewhere than at 1 and 0, so that a mistake shows."""
    with torch.no_grad():
        for name, each in module.named().items():
            if each.dim() == 1:
                each.copy_(torch.randn_like(each) * 0.1 + ("norm" in name and name.endswith("weight")))
    return module
