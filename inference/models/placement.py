"""On which device, or devices, the weights of a model are put."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from inference.models.devices import AUTO, SPREAD
from inference.records.errors import OutOfMemoryError

# One device, or bytes for the weights by the number of the GPU.
Layout = torch.device | dict[int, int]
# Source: our choice. The rest is for keys and values, activations and the libraries' own memory.
SHARE_FOR_WEIGHTS = 0.85


def free_gpu_bytes(asked: str, device: torch.device) -> tuple[int, ...]:
    """Return the free bytes of the GPUs that may hold the weights; empty on other devices.

    Args:
        asked: The device as it was asked for; one GPU by its number stays alone.
        device: The device taken.
    """
    if device.type != "cuda":
        return ()
    is_free_to_spread = asked in (AUTO, SPREAD)
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

    A model that fits one GPU stays on one, unless it is to be spread: handing over between GPUs
    costs time in every step.

    Args:
        model_id: For the message.
        needed_bytes: Of the weights.
        device: The device taken.
        free: Free bytes of the GPUs that may be used, ``device`` first; empty on other devices.
        is_spread: Use all of them even so.

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
    """Return that the model lies on several devices; an empty string when it does not."""
    devices = sorted({str(weight.device) for weight in network.parameters()})
    if len(devices) == 1:
        return ""
    return f" Its weights are spread over {len(devices)} devices."


def placing(layout: Layout) -> dict[str, Any]:
    """Return from_pretrained's arguments; without accelerate the weights are moved afterwards."""
    if not isinstance(layout, torch.device):
        return {"device_map": "auto", "max_memory": layout}
    if layout.type == "cpu" or importlib.util.find_spec("accelerate") is None:
        return {}
    return {"device_map": {"": layout}}
