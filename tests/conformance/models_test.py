# SPDX-License-Identifier: Apache-2.0
"""Models against torchvision and transformers: their weights under their names, the same input;
then the same outputs, gradients and batch-norm statistics.

models_test.py [NAME…] compares these cases only.
"""

import json
import os
import subprocess
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import decoder_modules
import skips
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file
from tolerances import RELATIVE, relative_error

PROBE = os.environ["PIPEWRIGHT_MODEL_PROBE"]


@dataclass
class Case:
    """A model of ours and the same one of theirs."""

    model: dict  # ours: the section of an experiment
    theirs: Callable  # makes theirs
    batch: int = 2
    size: int = 64  # of images
    modes: tuple = ("evaluation",)  # and "training", where nothing is dropped
    format: str = "torchvision"
    inputs: Callable | None = None  # batch → tensors, unless images
    run: Callable = lambda model, *x: model(*x)
    without_gradient: tuple = ()  # parameters whose gradient is zero but for rounding


def images(case):
    channels = case.model.get("channels", 3)
    return (torch.randn(case.batch, channels, case.size, case.size, dtype=torch.float64),)


def small_vgg(norm):
    """A quarter of the width; as large as it is, VGG-16 takes a gigabyte in float64."""
    plan = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]
    plan = [x if x == "M" else x // 4 for x in plan]
    features = torchvision.models.vgg.make_layers(plan, batch_norm=norm)
    model = torchvision.models.VGG(features, num_classes=10, init_weights=False)
    for index, (entering, leaving) in {0: (128 * 49, 1024), 3: (1024, 1024), 6: (1024, 10)}.items():
        model.classifier[index] = torch.nn.Linear(entering, leaving)
    return model


def torchvision_case(ours, make, size, modes=("evaluation", "training"), batch=2, **options):
    """`make`: the name of a function of torchvision.models, or a function."""

    def theirs():
        if callable(make):
            return make()
        return getattr(torchvision.models, make)(weights=None, num_classes=10, **options)

    return Case(ours | {"size": size, "classes": 10}, theirs, batch, size, modes)


PADDING = 1
SMALL = {"vocabulary": 99, "width": 32, "heads": 4, "layers": 2, "dropout": 0}


def roberta_tokens(case):
    return (torch.randint(2, SMALL["vocabulary"], (case.batch, 20)),)


def padded_roberta_tokens(case):
    (tokens,) = roberta_tokens(case)
    for sample, length in enumerate((20, 7, 13)):
        tokens[sample, length:] = PADDING
    return (tokens,)


def roberta_case(tokens):
    config = transformers.RobertaConfig(
        vocab_size=SMALL["vocabulary"],
        hidden_size=SMALL["width"],
        num_attention_heads=SMALL["heads"],
        num_hidden_layers=SMALL["layers"],
        intermediate_size=48,
        max_position_embeddings=40,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        num_labels=3,
    )
    ours = {"name": "roberta", "tokens": 20, "positions": 40, "feed_forward": 48, "classes": 3}
    return Case(
        ours | SMALL,
        lambda: transformers.RobertaForSequenceClassification(config),
        batch=3,
        modes=("evaluation", "training"),
        format="huggingface",
        inputs=tokens,
        run=lambda model, x: model(x, attention_mask=(x != PADDING).long()).logits,
        # softmax does not change where the same is added to all keys' products with a query
        without_gradient=tuple(
            f"roberta.encoder.layer.{i}.attention.self.key.bias" for i in range(SMALL["layers"])
        ),
    )


def gpt_case():
    config = decoder_modules.gpt2_config(tokens=24, **SMALL)
    return Case(
        {"name": "gpt", "tokens": 24} | SMALL,
        lambda: transformers.GPT2LMHeadModel(config),
        batch=3,
        modes=("evaluation", "training"),
        format="huggingface",
        inputs=lambda case: (torch.randint(0, SMALL["vocabulary"], (case.batch, 20)),),
        run=lambda model, x: model(x).logits,
    )


AUXILIARY = {"aux_logits": True, "init_weights": False}  # in the file; ours have none
IMAGENET = {"stem": "imagenet"}
VGG16 = {"name": "vgg16", "head": "classifier", "width": 0.25}
CASES = {
    # dropout of one half, always: evaluation only
    "vgg16": torchvision_case(VGG16 | {"batch_norm": False}, lambda: small_vgg(False), 64, ("evaluation",)),
    "vgg16_bn": torchvision_case(VGG16, lambda: small_vgg(True), 64, ("evaluation",)),
    "resnet18": torchvision_case({"name": "resnet18"} | IMAGENET, "resnet18", 64),
    "resnet34": torchvision_case({"name": "resnet34"} | IMAGENET, "resnet34", 64),
    "resnet50": torchvision_case({"name": "resnet50"} | IMAGENET, "resnet50", 64),
    "resnet50_by_blocks": torchvision_case({"name": "resnet50", "cut": "blocks"} | IMAGENET, "resnet50", 64),
    "resnet101": torchvision_case({"name": "resnet101"} | IMAGENET, "resnet101", 64),
    "alexnet": torchvision_case({"name": "alexnet"}, "alexnet", 96, ("evaluation",)),
    "mobilenet_v2": torchvision_case({"name": "mobilenet_v2"}, "mobilenet_v2", 64, ("evaluation",)),
    "densenet121": torchvision_case({"name": "densenet121"} | IMAGENET, "densenet121", 64),
    # dropout, always: evaluation only; the files' auxiliary classifiers are ignored
    "googlenet": torchvision_case(
        {"name": "googlenet", "form": "torchvision"}, "googlenet", 64, ("evaluation",), **AUXILIARY
    ),
    "inception_v3": torchvision_case(
        {"name": "inception_v3"}, "inception_v3", 96, ("evaluation",), **AUXILIARY
    ),
    "roberta": roberta_case(roberta_tokens),
    "roberta_padded": roberta_case(padded_roberta_tokens),
    "gpt": gpt_case(),
}


def randomise(model):
    """Everything that starts as 0 or 1 to something else, so that a mistake shows."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
        if isinstance(module, (torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm)):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
        if isinstance(getattr(module, "bias", None), torch.nn.Parameter):
            torch.nn.init.normal_(module.bias, 0, 0.1)


def reference(case, model, inputs, grad_y, training):
    """What theirs gives, under the names the probe uses."""
    model.train(training)
    model.zero_grad()
    inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = case.run(model, *inputs)
    y.backward(grad_y)
    results = {"y": y.detach()}
    if inputs[0].requires_grad:
        results["x.grad"] = inputs[0].grad
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:  # auxiliary classifiers have none in evaluation
            results[name + ".grad"] = parameter.grad
    if training:
        for name, buffer in model.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                results[name] = buffer.clone()
    return results


class Models(unittest.TestCase):
    def compare(self, name, precision, mode):
        case, folder = CASES[name], Path(self.folder)
        torch.manual_seed(sum(name.encode()))
        model = case.theirs()
        with torch.no_grad():
            randomise(model)
        dtype = getattr(torch, precision)
        model.to(dtype)
        inputs = [x.to(dtype) if x.is_floating_point() else x for x in (case.inputs or images)(case)]
        with torch.no_grad():
            grad_y = torch.randn_like(case.run(model.eval(), *inputs))
        save_file(model.state_dict(), folder / "weights.safetensors")
        given = {f"x.{i}": x for i, x in enumerate(inputs)} | {"grad_y": grad_y}
        save_file(given, folder / "input.safetensors")
        ours = self.probe(case, precision, mode)
        theirs = reference(case, model, inputs, grad_y, mode == "training")
        self.assertEqual(sorted(ours), sorted(theirs))
        return max((self.error(case, ours, theirs, key), key) for key in theirs)

    def error(self, case, ours, theirs, key):
        self.assertEqual(ours[key].shape, theirs[key].shape, key)
        if key.removesuffix(".grad") in case.without_gradient:
            sibling = theirs[key.replace("key.bias", "query.bias")]
            return max(x[key].norm() / sibling.norm() for x in (ours, theirs)).item()
        return relative_error(ours[key], theirs[key])

    def probe(self, case, precision, mode):
        folder = Path(self.folder)
        size = {} if case.inputs else {"channels": 3}  # else those of the data set that is the default
        weights = {"weights": str(folder / "weights.safetensors"), "weights_format": case.format}
        document = {
            "model": size | case.model | weights,
            "precision": precision,
            "training": mode == "training",
            "input": str(folder / "input.safetensors"),
            "output": str(folder / "output.safetensors"),
        }
        (folder / "case.yaml").write_text(json.dumps(document))
        subprocess.run([PROBE, folder / "case.yaml"], check=True)
        return load_file(folder / "output.safetensors")


def test_of(name):
    def test(self):
        for mode in CASES[name].modes:
            for precision, limit in RELATIVE.items():
                with self.subTest(mode=mode, precision=precision):
                    with tempfile.TemporaryDirectory(prefix="pipewright-conformance-") as self.folder:
                        error, worst = self.compare(name, precision, mode)
                    print(f"{name:20} {mode:10} {precision}: {error:.1e} ({worst})", flush=True)
                    self.assertLessEqual(error, limit, worst)

    return test


for case_name in CASES:
    setattr(Models, f"test_{case_name}", test_of(case_name))

if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
