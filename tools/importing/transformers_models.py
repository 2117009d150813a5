# SPDX-License-Identifier: Apache-2.0
"""Modules of Hugging Face's transformers, put into a form that torch.export takes, while they are exported."""

import contextlib
import sys
import unittest.mock


def configurations(module):
    found = []
    for each in module.modules():
        config = getattr(each, "config", None)
        if config is not None and all(config is not other for other in found):
            found.append(config)
    return found


def by_broadcasting(mask_function, bh_indices=True):
    """A mask of all places at once, from a function of one place: indices of samples, heads, queries and keys are a
    dimension each. transformers 4 uses torch.vmap for it, which torch.export cannot trace; transformers 5 does as here.
    """

    def mask(*indices):
        dimensions = range(4) if bh_indices else (2, 3)
        placed = list(indices)
        for place in dimensions:
            shape = [1] * len(dimensions)
            shape[place - dimensions[0]] = -1
            placed[place] = indices[place].reshape(shape)
        return mask_function(*placed).expand([indices[place].shape[0] for place in dimensions])

    return mask


@contextlib.contextmanager
def exportable(module):
    """Keeps no cache for generating text, makes attention masks without vmap, whatever attention reads them, and gives each
    token the weights of its experts, since how many tokens an expert gets depends on data.
    """
    with contextlib.ExitStack() as restore:
        for config in configurations(module):
            for name, instead in (("use_cache", False), ("_experts_implementation", "batched_mm")):
                if own := getattr(config, name, None):
                    setattr(config, name, instead)
                    restore.callback(setattr, config, name, own)
        masking = sys.modules.get("transformers.masking_utils")
        if hasattr(masking, "_vmap_for_bhqkv"):
            restore.enter_context(unittest.mock.patch.object(masking, "_vmap_for_bhqkv", by_broadcasting))
        if hasattr(masking, "TransformGetItemToIndex"):  # what vmap needs
            restore.enter_context(unittest.mock.patch.object(masking, "TransformGetItemToIndex", contextlib.nullcontext))
        yield
