# SPDX-License-Identifier: Apache-2.0
"""Of all that a module returns, the one tensor that is trained."""

import dataclasses
import functools

import torch

from importing.refusal import Refusal

LOGITS = "logits"  # what torchvision and transformers call it


def fields(returned):
    """Names and values of what a module returns, or () if it has no names."""
    if isinstance(returned, dict):
        return tuple(returned.items())
    if hasattr(returned, "_fields"):
        return tuple(zip(returned._fields, returned))
    if dataclasses.is_dataclass(returned):
        return tuple((field.name, getattr(returned, field.name)) for field in dataclasses.fields(returned))
    return ()


def described(returned):
    named = [name for name, value in fields(returned) if value is not None]
    if named:
        return ", ".join(named)
    if isinstance(returned, (list, tuple)):
        return f"{len(returned)} values"
    return type(returned).__name__


def named_output(returned, name):
    """The output that --output names: a key, a field, or a position."""
    named = dict(fields(returned))
    if name in named:
        return named[name]
    if name.isdigit() and isinstance(returned, (list, tuple)) and int(name) < len(returned):
        return returned[int(name)]
    raise Refusal(f"the module returns {described(returned)}; --output is '{name}'")


class OneOutput:
    """Chooses the trained output, and remembers what to say of the others."""

    def __init__(self, name=None):
        self.name, self.remark = name, ""
        self.module = None  # that returns it

    def mode(self):
        return "training" if self.module is None or self.module.training else "evaluation"

    def __call__(self, returned):
        chosen = self.chosen(returned)
        if not isinstance(chosen, torch.Tensor):
            raise Refusal(f"the output '{self.name or LOGITS}' is {described(chosen)}; expected a tensor")
        return chosen

    def chosen(self, returned):
        if isinstance(returned, torch.Tensor):
            return returned
        if self.name is not None:
            return named_output(returned, self.name)
        named = dict(fields(returned))
        if named.get(LOGITS) is not None:
            if len([value for value in named.values() if value is not None]) > 1:
                self.remark = (
                    f"the module returns {described(returned)} in training; its {LOGITS} are trained, and parts that only the "
                    "others need are left out (--output NAME chooses another)"
                )
            return named[LOGITS]
        if isinstance(returned, (list, tuple)) and len(returned) == 1:
            return self.chosen(returned[0])
        raise Refusal(
            f"the module returns {described(returned)} in {self.mode()}; expected one tensor, or one that is called {LOGITS} "
            "(--output NAME or --output POSITION chooses one)"
        )


def return_only(module, choose):
    """Makes the module return choose(what it returns). Returns what undoes that."""
    own, forward = vars(module).get("forward"), module.forward
    choose.module = module

    @functools.wraps(forward)
    def chosen(*arguments, **named):
        return choose(forward(*arguments, **named))

    def undo():
        del module.forward
        if own is not None:
            module.forward = own

    module.forward = chosen
    return undo
