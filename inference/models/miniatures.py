"""Published architectures made small, with random weights: what shows their shapes without a hub.

The kinds of layers, the experts and how many of them a token passes through are those of the
published config; widths, depth and window are small. What such a model writes is noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from inference.counting.public_configs import public_config
from inference.kernels.install import install
from inference.models.config_models import read_config, text_part
from inference.models.loading import LoadedModel, attention_of, context_limit_of
from inference.models.shapes import model_shape

RANDOM_WEIGHTS = "made small, random weights"  # behind the name of the published model
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Miniature:
    """What is made small of a published model.

    Attributes:
        config: Its name among the built-in configs.
        sizes: Pairs of a config's field and what it is here.
    """

    config: str
    sizes: tuple[tuple[str, object], ...]

    @property
    def model_id(self) -> str:
        """What runs on it call the model."""
        return f"{self.config}, {RANDOM_WEIGHTS}"


def miniature(kind: Miniature, beside: LoadedModel) -> LoadedModel:
    """Return the small model, always with the same weights, ready to run in float32.

    Args:
        kind: What it is.
        beside: The model whose tokenizer and device it uses.
    """
    fields = public_config(kind.config)
    config = read_config(
        {
            **(text_part(fields) or fields),
            **dict(kind.sizes),
            "vocab_size": beside.shape.vocab_size,
            # Weights wider than the library's, and a head of its own: attention then differs from
            # cell to cell and greedy generation does not repeat one token for ever.
            "initializer_range": 0.2,
            "tie_word_embeddings": False,
            "bos_token_id": None,
            "eos_token_id": None,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    network = network.to(beside.model.device).eval()
    network.requires_grad_(False)  # noqa: FBT003  torch's own signature
    return LoadedModel(
        model=network,
        tokenizer_files=beside.tokenizer_files,
        shape=model_shape(network),
        device=replace(beside.device, dtype="float32"),
        model_id=kind.model_id,
        attention=attention_of(network),
        eos_ids=frozenset(),
        context_limit=context_limit_of(network.config),
        kernels=install(network).text,
    )
