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
SHARED_POOL = (0, 0)  # of torch's allocator; every recorded graph has one of its own


def free_gpu_bytes(requested: str, device: torch.device, needed_bytes: int) -> tuple[int, ...]:
    """Return the free bytes of the GPUs that may hold the weights; empty on other devices.

    A GPU that is asked for its memory gives some hundred MiB to this process and lists it among the
    programs that use it, so the others are asked only where the first is too small.

    Args:
        requested: The device as the user gave it; one GPU by its number stays alone.
        device: The device chosen.
        needed_bytes: Of the weights.
    """
    if device.type != "cuda":
        return ()
    first = unused_gpu_bytes(device.index or 0)
    is_enough = needed_bytes <= first * SHARE_FOR_WEIGHTS
    if requested not in (AUTO, SPREAD) or (requested == AUTO and is_enough):
        return (first,)
    others = (unused_gpu_bytes(number) for number in range(1, torch.cuda.device_count()))
    return (first, *others)


def unused_gpu_bytes(number: int) -> int:
    """Return the bytes of a GPU that new tensors can have: the free ones and torch's own reserve.

    What torch holds for recorded steps is theirs alone, so it counts as used.
    """
    free_bytes, _total = torch.cuda.mem_get_info(number)
    reserve = sum(
        segment["total_size"] - segment["allocated_size"]
        for segment in torch.cuda.memory_snapshot()
        if segment["device"] == number
        and tuple(segment.get("segment_pool_id", SHARED_POOL)) == SHARED_POOL
    )
    return int(free_bytes) + reserve


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
    count = len(devices_of(network))
    if count == 1:
        return ""
    return f" Its weights are spread over {count} devices; parts of its steps are not timed."


def devices_of(network: PreTrainedModel) -> dict[torch.device, int]:
    """Return the devices that hold the model's layers, with how many each holds.

    Weights beside the layers, such as embeddings, count for no layer.
    """
    held = dict.fromkeys((weight.device for weight in network.parameters()), 0)
    layers: Any = getattr(network.get_decoder(), "layers", ())
    for layer in layers:
        first = next(layer.parameters(), None)
        if first is not None:
            held[first.device] += 1
    return held


def check_on_gpus(model_id: str, network: PreTrainedModel) -> None:
    """Raise unless a model that was spread over GPUs is on them whole.

    Source: accelerate 1.15, utils/modeling.py, ends its list of devices with the disk, and
    transformers 5.24 then reads such layers from the weights' files in every step, without a word.

    Raises:
        OutOfMemoryError: Some layers would stay on the disk or in the machine's own memory.
    """
    placed: dict[str, Any] = getattr(network, "hf_device_map", None) or {}
    kinds = {str(place) for place in placed.values()}
    if kinds - {"cpu"} and kinds & {"disk", "cpu"}:
        count = sum(str(place) in ("disk", "cpu") for place in placed.values())
        msg = (
            f"{model_id} does not fit the GPUs: {count} of its parts would be read from elsewhere "
        )
        msg += "in each step; end other programs, or choose a smaller dtype or model"
        raise OutOfMemoryError(msg)


def placing(layout: Layout) -> dict[str, Any]:
    """Return from_pretrained's arguments; none without accelerate, when weights move afterwards."""
    if not isinstance(layout, torch.device):
        return {"device_map": "auto", "max_memory": layout}
    if layout.type == "cpu" or importlib.util.find_spec("accelerate") is None:
        return {}
    return {"device_map": {"": layout}}
