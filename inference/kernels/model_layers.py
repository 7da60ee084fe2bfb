"""Where a model's decoder layers and their attention are: the one look-up for every package."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel


def decoder_layers(model: PreTrainedModel) -> list[nn.Module]:
    """Return the model's decoder layers in order; none where they are in no list of their own."""
    count = int(model.config.get_text_config(decoder=True).num_hidden_layers)
    for module in model.get_decoder().modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return list(module)
    return []


def attention_module(layer: nn.Module) -> nn.Module | None:
    """Return a layer's attention, the first module so named that holds others; None without one."""
    for name, module in layer.named_modules():
        last = name.rpartition(".")[2].lower()
        is_named = "attn" in last or "attention" in last
        if is_named and not isinstance(module, nn.Linear) and any(module.children()):
            return module
    return None
