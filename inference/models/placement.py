"""The device, or devices, that hold the weights of a model."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from inference.models.devices import AUTO, SPREAD
from inference.records.errors import OutOfMemoryError

# One device, or the bytes of weights that each GPU may hold, by its number.
Layout = torch.device | dict[int, int]
# Source: our choice. The rest is for keys and values, activations and the libraries' own memory.
SHARE_FOR_WEIGHTS = 0.85


def free_gpu_bytes(requested: str, device: torch.device) -> tuple[int, ...]:
    """Return the free bytes of the GPUs that may hold the weights; empty on other devices.

    Args:
        requested: The device as the user gave it; one GPU by its number stays alone.
        device: The device chosen.
    """
    if device.type != "cuda":
        return ()
    is_free_to_spread = requested in (AUTO, SPREAD)
    numbers = range(torch.cuda.device_count()) if is_free_to_spread else (device.index or 0,)
    return tuple(int(torch.cuda.mem_get_info(number)[0]) for number in numbers)


def placement(
    model_id: str,
    needed_bytes: int,
    device: torch.device,
    free: Sequence[int],
    *,
    is_spread: bool = False,
) -> Layout:
    """Return where the weights go: one device, or as much on each GPU as it may hold.

    A model that fits one GPU stays on one, unless it is to be spread: every step takes longer when
    activations move between GPUs.

    Args:
        model_id: For the message.
        needed_bytes: Of the weights.
        device: The device chosen.
        free: Free bytes of the GPUs that may be used, ``device`` first; empty on other devices.
        is_spread: Use all of them even if one is enough.

    Raises:
        OutOfMemoryError: All of them together have too little.
    """
    if not free or (needed_bytes <= free[0] * SHARE_FOR_WEIGHTS and not is_spread):
        return device
    shares = [int(one * SHARE_FOR_WEIGHTS) for one in free]
    if needed_bytes > sum(shares):
        gpus = "the GPU" if len(free) == 1 else f"{len(free)} GPUs"
        msg = f"{model_id} needs {needed_bytes / 2**30:.1f} GiB and {sum(free) / 2**30:.1f} GiB of "
        msg += f"{gpus} are free; end other programs on it, or choose a smaller dtype or model"
        raise OutOfMemoryError(msg)
    return dict(enumerate(shares))


def spread_note(network: PreTrainedModel) -> str:
    """Return a note of how many devices hold the model; an empty string for one."""
    devices = sorted({str(weight.device) for weight in network.parameters()})
    if len(devices) == 1:
        return ""
    return f" Its weights are spread over {len(devices)} devices."


def placing(layout: Layout) -> dict[str, Any]:
    """Return from_pretrained's arguments; none without accelerate, when weights move afterwards."""
    if not isinstance(layout, torch.device):
        return {"device_map": "auto", "max_memory": layout}
    if layout.type == "cpu" or importlib.util.find_spec("accelerate") is None:
        return {}
    return {"device_map": {"": layout}}
