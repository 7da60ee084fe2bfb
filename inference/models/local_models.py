"""Which models of the catalogue are on this machine. No torch."""

from __future__ import annotations

from pathlib import Path

from inference.models.catalog import CATALOG, CatalogEntry


def local_folder(entry: CatalogEntry) -> Path | None:
    """Return the folder of the model's weights on this machine; None when not fetched."""
    from inference.models.fetch import default_model_folder, is_complete  # noqa: PLC0415  as fetch
    from inference.models.hf_hub import cached_folder  # noqa: PLC0415

    if entry.wheel is None:
        return cached_folder(entry.id)
    folder = default_model_folder()
    return folder if is_complete(folder) else None


def local_ids() -> frozenset[str]:
    """Return the ids of the catalogue's models that are on this machine."""
    return frozenset(entry.id for entry in CATALOG if local_folder(entry) is not None)
