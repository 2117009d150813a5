# SPDX-License-Identifier: Apache-2.0
"""Models of torchvision, timm and transformers in small forms, for zoo.py."""

import contextlib
import functools
import unittest.mock

import torch
import torchvision
import transformers
from graph_training import Case
from torch import nn

CLASSES, TOKENS, VOCABULARY, SIDE = 10, 12, 64, 64


def without_drawing(module):
    """The module without dropouts, stochastic depth and noise."""
    for each in module.modules():
        for name, value in list(vars(each).items()):
            if "drop" in name and isinstance(value, float) or name == "p" and "Drop" in type(each).__name__ or "StochasticDepth" in type(each).__name__ and name == "p":
                setattr(each, name, 0.0)
        config = getattr(each, "config", None)
        for name, value in list(vars(config).items() if config is not None else ()):
            if ("drop" in name or "jitter" in name) and isinstance(value, float):
                with contextlib.suppress(Exception):
                    setattr(config, name, 0.0)
    return module


# ---- torchvision ----


class Means(nn.Module):
    """The mean over the places of each channel of each feature map that a backbone makes, or of one of its outputs."""

    def __init__(self, inner, name=None):
        super().__init__()
        self.inner, self.name = inner, name

    def forward(self, x):
        maps = self.inner(x)
        maps = [maps] if isinstance(maps, torch.Tensor) else [maps[self.name]] if self.name else list(maps.values())
        return torch.cat([each.mean((2, 3)) for each in maps], 1)


@contextlib.contextmanager
def narrow_bottlenecks():
    """ResNets whose bottlenecks have a quarter of the width."""
    make = torchvision.models.resnet._resnet

    def narrow(block, layers, weights, progress, **more):
        if block is torchvision.models.resnet.Bottleneck:
            more["width_per_group"] = more.get("width_per_group", 64) // 4 or 1
        return make(block, layers, weights, progress, **more)

    with unittest.mock.patch.object(torchvision.models.resnet, "_resnet", narrow):
        yield


def narrowed(name):
    """A model of torchvision; what is wide has a quarter of the width."""
    models = torchvision.models
    side = {"inception_v3": 107, "maxvit_t": 224}.get(name, SIDE)

    def vit(patch_size, num_layers, num_heads, hidden_dim, mlp_dim, weights, progress, **more):
        return models.VisionTransformer(
            more.pop("image_size", 224), patch_size, num_layers, num_heads, hidden_dim // 4, mlp_dim // 4, num_classes=CLASSES
        )

    def convnext(blocks, depth, weights, progress, **more):
        fewer = [models.convnext.CNBlockConfig(b.input_channels // 4, b.out_channels and b.out_channels // 4, b.num_layers) for b in blocks]
        return models.ConvNeXt(fewer, depth, num_classes=CLASSES)

    def swin(patch_size, embed_dim, depths, num_heads, window_size, stochastic_depth_prob, weights, progress, num_classes, **more):
        return models.SwinTransformer(patch_size, embed_dim // 4, depths, [each // 2 or 1 for each in num_heads], window_size, num_classes=CLASSES, **more)

    params = models.regnet.BlockParams.from_init_params.__func__

    def regnet(depth, w_0, w_a, w_m, group_width, **more):
        return params(models.regnet.BlockParams, depth, w_0 // 4 // 8 * 8 or 8, w_a / 4, w_m, max(group_width // 4, 8), **more)

    more = {"image_size": side // 14 * 14 if name == "vit_h_14" else side} if name.startswith("vit") else {}
    more |= {"input_size": (side, side)} if name == "maxvit_t" else {}
    more |= {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    more |= {"aux_logits": False} if name == "inception_v3" else {}  # which wants images of 299 places
    with narrow_bottlenecks(), contextlib.ExitStack() as stack:
        patch = unittest.mock.patch.object
        stack.enter_context(patch(models.vision_transformer, "_vision_transformer", vit))
        stack.enter_context(patch(models.convnext, "_convnext", convnext))
        stack.enter_context(patch(models.swin_transformer, "_swin_transformer", swin))
        if name.endswith(("8gf", "16gf", "32gf", "128gf")):
            stack.enter_context(patch(models.regnet.BlockParams, "from_init_params", regnet))
        model = getattr(models, name)(weights=None, num_classes=CLASSES, **more)
    if name.startswith(("vgg", "alexnet")):
        lines = [place for place, each in enumerate(model.classifier) if isinstance(each, nn.Linear)]
        widths = (model.classifier[lines[0]].in_features, 64, 64, CLASSES)
        for place, before, after in zip(lines, widths, widths[1:]):
            model.classifier[place] = nn.Linear(before, after)
    return model


@narrow_bottlenecks()
def backbone(name):
    detection, models = torchvision.models.detection, torchvision.models
    if name.startswith("ssd300"):
        return Means(detection.ssd300_vgg16(weights=None, weights_backbone=None).backbone)
    if name.startswith("ssdlite"):
        return Means(detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None).backbone)
    of = detection.backbone_utils
    if "mobilenet" in name:
        return Means(of.mobilenet_backbone(backbone_name=name, weights=None, fpn=True, trainable_layers=6, norm_layer=nn.BatchNorm2d))
    return Means(of.resnet_fpn_backbone(backbone_name=name, weights=None, trainable_layers=5, norm_layer=nn.BatchNorm2d))


@narrow_bottlenecks()
def segmented(name):
    make = getattr(torchvision.models.segmentation, name)
    return Means(make(weights=None, weights_backbone=None, num_classes=CLASSES), "out")


BACKBONES = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2",
             "wide_resnet101_2", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large")  # fmt: skip


def from_torchvision():
    models = torchvision.models
    for name in models.list_models(module=models):
        side = {"inception_v3": 107, "maxvit_t": 224, "vit_h_14": 56}.get(name, SIDE)
        yield name, lambda name=name, side=side: Case(lambda: narrowed(name), (3, side, side), batch=2)
    for name in BACKBONES:
        side = 300 if name == "ssd300_vgg16" else 96
        yield f"backbone {name}", lambda name=name, side=side: Case(lambda: backbone(name), (3, side, side), batch=2)
    for name in models.list_models(module=models.segmentation):
        yield name, lambda name=name: Case(lambda: segmented(name), (3, SIDE, SIDE), batch=2)


# ---- timm ----


@functools.cache
def smallest(family):
    """The name of a family's model of the fewest parameters among those whose names promise few."""
    import timm

    names = timm.list_models(module=family)
    words = ("test", "zepto", "atto", "nano", "femto", "pico", "xxt", "xxs", "tiny", "_ti", "xs", "_t", "small", "_s", "mini", "lite", "0", "1")
    hopeful = sorted(names, key=lambda name: (next((i for i, word in enumerate(words) if word in name), len(words)), len(name), name))
    counts = {}
    for name in hopeful[:4]:
        with torch.device("meta"), contextlib.suppress(Exception):
            counts[name] = sum(each.numel() for each in timm.create_model(name, num_classes=CLASSES).parameters())
    return min(counts, key=counts.get) if counts else names[0]


def of_timm(family):
    """The smallest model with the smallest images that it takes."""
    import timm

    name = smallest(family)
    for side in (64, 96, 128, 192, 224, 256, 384):
        for more in ({"img_size": side, "embed_dim": 96, "depth": 3, "num_heads": 3}, {"img_size": side, "depth": 3}, {"img_size": side}, {}):
            try:
                torch.manual_seed(3)
                model = timm.create_model(name, num_classes=CLASSES, **more)
                with torch.no_grad():
                    if model(torch.randn(2, 3, side, side)).shape == (2, CLASSES):
                        return Case(lambda more=more: timm.create_model(name, num_classes=CLASSES, **more), (3, side, side), batch=2)
            except Exception:
                continue
    raise ValueError(f"{name} takes no images of these sizes")


def from_timm():
    import timm

    for family in timm.list_modules():
        if timm.list_models(module=family):
            yield f"{family}", lambda family=family: of_timm(family)


# ---- transformers ----

SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "max_position_embeddings": 32, "embedding_size": 32, "head_dim": 8, "d_kv": 8, "d_ff": 48, "d_model": 32,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "ffn_dim": 48, "num_experts": 4, "n_routed_experts": 4,
    "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "state_size": 8,
    "time_step_rank": 4, "n_positions": 32, "num_labels": CLASSES, "image_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 0, "sliding_window": 8, "use_cache": False, "rotary_dim": 4, "word_embed_proj_dim": 32, "attention_window": 4,
    "layerdrop": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "vocab_size_per_layer_input": VOCABULARY,
}  # fmt: skip
CAUSAL, SEQUENCE, PICTURE, TWO, SOUND = "ForCausalLM", "ForSequenceClassification", "ForImageClassification", "ForConditionalGeneration", "sound"
MODELS = {
    CAUSAL: (
        "gpt2 llama mistral mixtral qwen2 qwen3 qwen2_moe qwen3_moe gemma gemma2 gemma3_text phi phi3 falcon bloom opt mpt stablelm "
        "starcoder2 cohere cohere2 olmo olmo2 granite granitemoe openai-gpt codegen gptj gpt_neo gpt_neox gpt_bigcode biogpt "
        "persimmon nemotron glm glm4 smollm3 helium exaone4 ernie4_5 arcee deepseek_v2 deepseek_v3 gpt_oss olmoe jetmoe "
        "mamba mamba2 falcon_mamba rwkv recurrent_gemma jamba bamba lfm2 ctrl xlnet"
    ),
    SEQUENCE: (
        "bert roberta xlm-roberta albert electra distilbert mpnet deberta deberta-v2 convbert funnel mobilebert squeezebert nystromformer "
        "fnet longformer big_bird rembert camembert modernbert roformer megatron-bert ibert yoso canine xlm flaubert ernie layoutlm "
        "xmod roberta-prelayernorm data2vec-text"
    ),
    PICTURE: (
        "vit deit beit swin swinv2 convnext convnextv2 resnet regnet poolformer segformer pvt pvt_v2 levit cvt mobilevit mobilevitv2 "
        "mobilenet_v1 mobilenet_v2 efficientnet focalnet dinov2 vit_msn data2vec-vision bit hiera ijepa swiftformer dinov2_with_registers"
    ),
    TWO: "t5 mt5 umt5 longt5 bart mbart pegasus marian blenderbot blenderbot-small m2m_100 prophetnet switch_transformers led plbart pegasus_x",
    SOUND: "wav2vec2 hubert wavlm sew unispeech audio-spectrogram-transformer",
}
MORE = {
    "albert": {"embedding_size": 16}, "mamba": {"hidden_size": 16}, "mobilebert": {"intra_bottleneck_size": 16, "embedding_size": 16},
    "mamba2": {"num_heads": 4, "head_dim": 16, "hidden_size": 32, "n_groups": 1, "expand": 2}, "rwkv": {"attention_hidden_size": 32, "context_length": 16},
    "deepseek_v3": {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4, "head_dim": 4},
    "deepseek_v2": {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "num_key_value_heads": 4, "head_dim": 4},
    "swin": {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "hidden_size": 32},
    "swinv2": {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "hidden_size": 32},
    "convnext": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}, "convnextv2": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
    "resnet": {"embedding_size": 8, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1]}, "regnet": {"embedding_size": 8, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "groups_width": 8},
    "bit": {"hidden_sizes": [32, 64, 96, 128], "depths": [1, 1, 1, 1], "num_groups": 8, "embedding_size": 32},
    "openai-gpt": {"n_embd": 32, "n_layer": 2, "n_head": 4}, "xlnet": {"n_layer": 2, "n_head": 4, "d_inner": 48, "d_head": 8}, "ctrl": {"n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 48},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 4}, "flaubert": {"emb_dim": 32, "n_layers": 2, "n_heads": 4}, "canine": {"num_hash_buckets": 64, "local_transformer_stride": 4, "downsampling_rate": 2, "upsampling_kernel_size": 2},
    "longformer": {"attention_window": [4, 4]}, "big_bird": {"attention_type": "original_full"}, "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4, "num_layers": 2},
    "funnel": {"block_sizes": [1, 1], "n_head": 4, "d_head": 8, "d_inner": 48}, 
    "gptj": {"rotary_dim": 4}, "codegen": {"rotary_dim": 4, "n_embd": 32, "n_head": 4, "n_layer": 2, "n_ctx": 32}, "jamba": {"mamba_dt_rank": 4, "use_mamba_kernels": False},
    "bamba": {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1}, "mpt": {"n_layers": 2, "n_heads": 4, "max_seq_len": 32},
    "t5": {"num_key_value_heads": 4}, "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"]}, "recurrent_gemma": {"lru_width": 32, "attention_window_size": 8, "block_types": ["recurrent", "attention"], "head_dim": 8, "num_key_value_heads": 1},
    "data2vec-vision": {"image_size": 32, "patch_size": 8}, "beit": {"image_size": 32, "patch_size": 8}, "xmod": {"languages": ["en"], "default_language": "en"}, "deit": {"architectures": ["DeiTForImageClassification"]}, "hiera": {"image_size": [64, 64], "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "embed_dim_multiplier": 2, "num_query_pool": 1, "query_stride": [2, 2], "masked_unit_size": [4, 4]},
    "segformer": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16}, "pvt": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]},
    "pvt_v2": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]}, "poolformer": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
    "levit": {"architectures": ["LevitForImageClassification"], "image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 2, 2], "depths": [1, 1, 1], "key_dim": [8, 8, 8]}, "cvt": {"embed_dim": [8, 16, 24], "num_heads": [1, 2, 2], "depth": [1, 2, 3]},
    "mobilevit": {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32], "num_attention_heads": 2, "hidden_size": 32}, "focalnet": {"embed_dim": 8, "depths": [1, 1, 1, 1]},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320}, "mobilenet_v2": {"depth_multiplier": 0.35}, "mobilenet_v1": {"depth_multiplier": 0.25},
    "vit": {"patch_size": 16}, "swiftformer": {"embed_dims": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}, "olmoe": {"num_experts": 4},
    "ibert": {"quant_mode": False}, "nystromformer": {"num_landmarks": 4, "segment_means_seq_len": TOKENS}, "yoso": {"use_expectation": True}, "audio-spectrogram-transformer": {"max_length": 48, "num_mel_bins": 32},
    "gpt_oss": {"layer_types": ["sliding_attention", "full_attention"]}, "layoutlm": {"max_2d_position_embeddings": 32}, "longt5": {"encoder_attention_type": "local", "local_radius": 3}, "led": {"attention_window": 4, "max_encoder_position_embeddings": 32, "max_decoder_position_embeddings": 32},
    "prophetnet": {"num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4, "ngram": 2, "num_buckets": 8, "relative_max_distance": 16},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16, "position_buckets": 8},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2, "reference_compile": False}, "lfm2": {"layer_types": ["conv", "full_attention"]}, "phi3": {"pad_token_id": 0},
    "squeezebert": {"q_groups": 2, "k_groups": 2, "v_groups": 2, "post_attention_groups": 1, "intermediate_groups": 2, "output_groups": 2},
    "helium": {"head_dim": 8}, "pegasus_x": {"block_size": 4, "num_global_tokens": 2}, "switch_transformers": {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 4},
    "wav2vec2": {"conv_dim": [16, 16], "conv_stride": [4, 4], "conv_kernel": [8, 4], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4, "classifier_proj_size": 16, "mask_time_prob": 0.0},
}  # fmt: skip
NOT = {  # fields that a configuration has and does not take
    "xlnet": ("max_position_embeddings",), "convnext": ("num_hidden_layers",), "convnextv2": ("num_hidden_layers",), "funnel": ("num_hidden_layers",), "prophetnet": ("num_hidden_layers", "num_layers"),
    "swin": ("hidden_size", "num_attention_heads", "num_hidden_layers"), "swinv2": ("hidden_size", "num_attention_heads", "num_hidden_layers"),
}  # fmt: skip
for alike in ("hubert", "wavlm", "sew", "unispeech"):
    MORE[alike] = MORE["wav2vec2"] | {"squeeze_factor": 2}


def configured(kind):
    """A small configuration: what SMALL and MORE say of the fields that it has."""
    known = transformers.models.auto.CONFIG_MAPPING[kind]
    default = known()
    more = MORE.get(kind, {})
    fixed = {name for name, value in vars(known).items() if isinstance(value, property) and value.fset is None}
    small = {name: value for name, value in SMALL.items() if hasattr(default, name) and name not in {*more, *fixed, *NOT.get(kind, ())}}
    small |= {name: 0.0 for name, value in vars(default).items() if "drop" in name and isinstance(value, float)}
    config = known(**(small | more))
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"  # grouped_mm has no float64
    return config


def of_transformers(kind, head):
    auto = {
        CAUSAL: transformers.AutoModelForCausalLM, SEQUENCE: transformers.AutoModelForSequenceClassification,
        PICTURE: transformers.AutoModelForImageClassification, TWO: transformers.AutoModelForSeq2SeqLM,
        SOUND: transformers.AutoModelForAudioClassification,
    }[head]  # fmt: skip

    def make():
        return auto.from_config(configured(kind))

    def tokens(samples):
        return torch.randint(3, VOCABULARY, (samples, TOKENS))

    if head == PICTURE:
        side = getattr(configured(kind), "image_size", SIDE)
        side = SIDE if not isinstance(side, int) else side
        return Case(make, (3, side, side), batch=2)
    if head == TWO:
        inputs = {"input_ids": tokens, "decoder_input_ids": tokens}
        if kind in ("longt5", "switch_transformers"):  # which make no mask themselves while they are exported
            inputs |= {"attention_mask": lambda samples: torch.ones(samples, TOKENS, dtype=torch.int64)}
        return Case(make, (TOKENS,), VOCABULARY, True, batch=2, classes=VOCABULARY, inputs=inputs)
    if head == SOUND:
        shape = (48, 32) if kind.startswith("audio") else (400,)
        return Case(make, shape, batch=2, classes=CLASSES)
    each = head == CAUSAL
    return Case(make, (TOKENS,), VOCABULARY, each, batch=2, classes=VOCABULARY if each else CLASSES)


def from_transformers():
    for head, kinds in MODELS.items():
        for kind in kinds.split():
            yield f"{kind} {head}", lambda kind=kind, head=head: of_transformers(kind, head)


def all_models():
    """(zoo, name, what makes its Case)."""
    for zoo, models in (("torchvision", from_torchvision), ("transformers", from_transformers), ("timm", from_timm)):
        for name, make in models():
            yield zoo, name, make
