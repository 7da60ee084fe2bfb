"""What a self-check holds for: this program, its libraries, these weights, this machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
from functools import cache
from pathlib import Path

import torch

from inference.calibration.ceilings import machine_name
from inference.models.loading import LoadedModel
from inference.records.checks import CheckSubject

LIBRARIES = ("torch", "transformers")
SOURCES = ("*.py", "*.c", "*.h")
SAMPLED = 256  # values of each weight tensor


def subject_of(loaded: LoadedModel) -> CheckSubject:
    """Return what a check of this model holds for."""
    return CheckSubject(
        model_id=loaded.model_id,
        device=loaded.device,
        attention=loaded.attention,
        kernels=loaded.kernels,
        machine=machine_name(loaded.model.device),
        versions=tuple((name, importlib.metadata.version(name)) for name in LIBRARIES),
        program=program_digest(),
        weights=weights_digest(loaded.model),
    )


@cache
def program_digest() -> str:
    """Return the SHA-256 of the sources of ``inference``, by name and content."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for kind in SOURCES for path in folder.rglob(kind)):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@torch.inference_mode()
def weights_digest(model: torch.nn.Module) -> str:
    """Return the SHA-256 of the name, size and evenly spaced values of every weight tensor.

    Reading all of them would take longer than the checks; other weights of a model differ
    everywhere, and so in the sample.
    """
    config = getattr(model, "config", None)
    digest = hashlib.sha256(repr(config).encode())
    for name, weight in model.named_parameters():
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        flat = weight.flatten() if weight.is_contiguous() else weight.reshape(-1)
        values = flat[:: max(1, flat.numel() // SAMPLED)].to(device="cpu", dtype=torch.float64)
        digest.update(values.numpy().tobytes())
    return digest.hexdigest()
