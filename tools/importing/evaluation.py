# SPDX-License-Identifier: Apache-2.0
"""Whether the graph of a training is that of an evaluation, too, once dropouts and batch norms are switched over."""

import torch

from importing.refusal import Refusal, in_a_line

DIFFERENT = 1e-3  # of the largest number; other kernels give 1e-6 in float32, other layers far more
REMARK = (
    "in evaluation (module.eval()) the module computes something else than in training without dropout; evaluations here "
    "compute what a training does"
)


class Evaluation(torch.fx.Interpreter):
    """Runs the graph as the laboratory does in an evaluation."""

    def call_function(self, target, args, kwargs):
        args = list(args)
        if isinstance(target, torch._ops.OpOverload):
            for place, argument in enumerate(target._schema.arguments[: len(args)]):
                if argument.name in ("train", "training"):
                    args[place] = False
                if argument.name == "dropout_p":
                    args[place] = 0.0
            kwargs = kwargs | {"dropout_p": 0.0} if "dropout_p" in kwargs else kwargs
        return super().call_function(target, tuple(args), kwargs)


def inputs_of(program, samples):
    signature = program.graph_signature
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        for named, source in (
            (signature.inputs_to_parameters, program.state_dict),
            (signature.inputs_to_buffers, program.state_dict | program.constants),
            (signature.inputs_to_lifted_tensor_constants, program.constants),
        ):
            if node.name in named:
                yield source[named[node.name]].detach().clone()
                break
        else:
            yield next(samples)


def computed(program, given, by_name):
    """What the graph makes of an input in evaluation. Refuses an input that the module cannot take."""
    samples = iter((*given, *by_name.values()))
    try:
        (ours,) = Evaluation(program.graph_module).run(*inputs_of(program, samples))
    except Exception as error:
        why = in_a_line(getattr(error, "__cause__", None) or error)
        raise Refusal(f"the module cannot compute with such an input: {why}") from error
    return ours


def remark_on_evaluation(program, module, given, by_name):
    """What to say if the module computes something else in evaluation, or "". It is called as module(*given, **by_name)."""
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            ours = computed(program, given, by_name)
            theirs = module(*given, **by_name)
    except Refusal as refusal:
        if str(refusal).startswith("the module cannot compute"):
            raise
        return f"{REMARK} ({refusal})"
    except Exception as error:  # the author's own, in evaluation alone
        return f"{REMARK} ({in_a_line(error)})"
    finally:
        for each, mode in modes:
            each.training = mode
    if ours.shape != theirs.shape:
        return REMARK
    if not ours.is_floating_point():
        return "" if torch.equal(ours, theirs) else REMARK
    far = (ours - theirs).abs().max() > DIFFERENT * theirs.abs().max()
    return REMARK if far else ""
