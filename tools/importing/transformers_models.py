# SPDX-License-Identifier: Apache-2.0
"""Modules of Hugging Face's transformers, put into a form that torch.export takes, while they are exported."""

import contextlib
import sys

WITHOUT_VMAP = "sdpa_without_vmap"  # transformers' own name for the attention whose masks it can export


def configurations(module):
    found = []
    for each in module.modules():
        config = getattr(each, "config", None)
        if config is not None and all(config is not other for other in found):
            found.append(config)
    return found


def register_attention():
    """Whether this transformers has the attention whose masks are made without vmap."""
    if "transformers" not in sys.modules:
        return False
    try:
        from transformers.integrations.executorch import sdpa_mask_without_vmap
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    except ImportError:
        return False
    ALL_MASK_ATTENTION_FUNCTIONS.register(WITHOUT_VMAP, sdpa_mask_without_vmap)
    ALL_ATTENTION_FUNCTIONS.register(WITHOUT_VMAP, ALL_ATTENTION_FUNCTIONS["sdpa"])
    return True


@contextlib.contextmanager
def exportable(module):
    """Keeps no cache for generating text, and makes attention masks without vmap."""
    with contextlib.ExitStack() as restore:
        registered = register_attention()
        for config in configurations(module):
            if getattr(config, "use_cache", False):
                config.use_cache = False
                restore.callback(setattr, config, "use_cache", True)
            if registered and getattr(config, "_attn_implementation", None) == "sdpa":
                config._attn_implementation = WITHOUT_VMAP
                restore.callback(setattr, config, "_attn_implementation", "sdpa")
        yield
