"""Which device and dtype a model runs in, and what the device is called."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil
import torch

from inference.records.block_formats import BlockFormat, block_format_of
from inference.records.errors import InputError
from inference.records.model import Device, DeviceOption

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
AUTO = "auto"
SYSCTL_S = 5.0  # it answers in milliseconds
SPREAD = "cuda:all"


def choose_device(device: str, dtype: str) -> tuple[torch.device, torch.dtype]:
    """Return the device and dtype to use; ``auto`` prefers CUDA, then MPS, then the CPU.

    Args:
        device: ``auto``, ``cpu``, ``mps``, ``cuda``, ``cuda:N``, or ``cuda:all`` for all GPUs, of
            which the first is returned.
        dtype: ``auto``, a name in ``DTYPES``, or a ``BlockFormat``, which keeps weights in blocks
            beside float32. ``auto`` is bfloat16 on a CUDA device that has it, float16 on an older
            one, float32 elsewhere.

    Raises:
        InputError: This machine has no such device, or there is no such dtype.
    """
    torch_device = _torch_device(device)
    if dtype == AUTO:
        return torch_device, _usual_dtype(torch_device)
    if block_format_of(dtype) is not None:
        if torch_device.type != "cpu":
            msg = f"{dtype} runs on a CPU only here; choose the device cpu, or another dtype"
            raise InputError(msg)
        return torch_device, torch.float32
    if dtype not in DTYPES:
        msg = f"there is no dtype {dtype!r}; use auto, {', '.join((*DTYPES, *BlockFormat))}"
        raise InputError(msg)
    if torch_device.type == "mps" and dtype == "float64":
        msg = "mps has no float64; use float32, or the CPU"
        raise InputError(msg)
    return torch_device, DTYPES[dtype]


def choice_note(requested: tuple[str, str], device: torch.device, dtype: torch.dtype) -> str:
    """Return the device and dtype that a model runs in, and why, as one sentence.

    Args:
        requested: The device and the dtype as the user gave them.
        device: The device chosen.
        dtype: The dtype chosen.
    """
    device_requested, dtype_requested = requested
    dtype_name = dtype_requested if block_format_of(dtype_requested) else _name(dtype)
    why_device = "as asked" if device_requested != AUTO else _why_device(device)
    why_dtype = "as asked" if dtype_requested != AUTO else _why_dtype(device)
    return f"Runs on {device} ({why_device}) in {dtype_name} ({why_dtype})."


def _why_device(device: torch.device) -> str:
    if device.type == "cuda":
        count = torch.cuda.device_count()
        return "the only NVIDIA GPU" if count == 1 else f"the first of {count} NVIDIA GPUs"
    if device.type == "mps":
        return "Apple's GPU, as there is no NVIDIA one"
    return "torch finds no GPU here"


def _why_dtype(device: torch.device) -> str:
    if device.type != "cuda":
        return "the default there"
    is_usual = _usual_dtype(device) is torch.bfloat16
    return "this GPU has it" if is_usual else "this GPU is too old for bfloat16"


def device_options() -> tuple[DeviceOption, ...]:
    """Return what a model can be loaded on, each with its product name, the preferred one first."""
    return tuple(DeviceOption(name=name, label=_label(name)) for name in available_devices())


def _label(name: str) -> str:
    if name == SPREAD:
        return f"{name} \u00b7 spread over {torch.cuda.device_count()} GPUs"
    if name == "mps":
        return f"mps \u00b7 GPU of {processor_name()}"
    if name == "cpu":
        return f"cpu \u00b7 {processor_name()}"
    properties = torch.cuda.get_device_properties(name)
    return f"{name} \u00b7 {properties.name}, {properties.total_memory / 2**30:.0f} GiB"


def gpu_id(device: torch.device) -> str | int | None:
    """Return the name that NVML has for the device: its UUID, or its number on an old torch.

    None for what is no GPU of NVIDIA's. CUDA numbers only the GPUs that ``CUDA_VISIBLE_DEVICES``
    leaves visible, NVML all of them.
    """
    if device.type != "cuda":
        return None
    uuid: object = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return str(uuid) if uuid is not None else device.index or 0


def gpu_ids(devices: Iterable[torch.device]) -> tuple[str | int, ...]:
    """Return the names that NVML has for these devices; what is no GPU of NVIDIA's has none."""
    return tuple(name for name in map(gpu_id, devices) if name is not None)


def describe_device(
    device: torch.device, dtype: torch.dtype, blocks: BlockFormat | None = None
) -> Device:
    """Return a device as the runs made on it describe it.

    Args:
        device: Of the weights.
        dtype: Of weights, or beside those in blocks.
        blocks: What weights are kept in; None where in the dtype.
    """
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        name, memory_bytes = properties.name, properties.total_memory
    else:
        name, memory_bytes = processor_name(), psutil.virtual_memory().total
    kept = str(blocks or _name(dtype))
    return Device(kind=device.type, name=name, dtype=kept, memory_bytes=memory_bytes)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def processor_name() -> str:
    """Return the processor's product name, or its architecture where the system has none."""
    if sys.platform == "darwin":
        return _apple_name() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _apple_name() -> str:
    """Return a Mac's chip as Apple names it; ``platform`` knows it as arm only."""
    asked = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
    try:
        return subprocess.run(
            asked, capture_output=True, text=True, timeout=SYSCTL_S, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def available_devices() -> tuple[str, ...]:
    """Return the device names that this machine can run on, the preferred one first."""
    cuda = tuple(f"cuda:{index}" for index in range(torch.cuda.device_count()))
    spread = (SPREAD,) if len(cuda) > 1 else ()
    mps = ("mps",) if torch.backends.mps.is_available() else ()
    return (*cuda, *spread, *mps, "cpu")


def _torch_device(device: str) -> torch.device:
    available = available_devices()
    if device == AUTO:
        return torch.device(available[0])
    wanted = "cuda:0" if device == "cuda" else device
    if wanted not in available:
        msg = f"this machine has no device {device!r}; use auto or one of {', '.join(available)}"
        raise InputError(msg)
    return torch.device("cuda:0" if wanted == SPREAD else wanted)


def _usual_dtype(device: torch.device) -> torch.dtype:
    if device.type != "cuda":
        return torch.float32
    has_bfloat16 = torch.cuda.get_device_capability(device) >= (8, 0)  # Ampere and later
    return torch.bfloat16 if has_bfloat16 else torch.float16
