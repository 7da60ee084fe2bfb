"""Fetch a model from the hub into its own cache; every failure is a plain sentence. No torch."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from tqdm.asyncio import tqdm_asyncio

from inference.records.errors import (
    FetchError,
    ModelNotFoundError,
    UnsupportedModelError,
    first_line,
)
from inference.records.status import LoadStage

SAFETENSORS_INDEX = ("model.safetensors", "model.safetensors.index.json")
SETTINGS = ["*.json", "*.jinja", "*.model", "*.txt"]
SAFETENSORS = ["*.safetensors"]
PICKLES = ["pytorch_model*.bin"]
SUBFOLDERS = ["*/*"]
HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]{0,95}(/[A-Za-z0-9_][\w.-]{0,95})?", re.ASCII)

OnStage = Callable[[LoadStage], None]


def is_hub_id(model: str) -> bool:
    """Return True when the text has the form of a hub id: ``owner/name`` or ``name``."""
    return HUB_ID.fullmatch(model) is not None and ".." not in model and "--" not in model


def cached_folder(hub_id: str) -> Path | None:
    """Return the folder of a model whose weights were fetched earlier; None when they were not."""
    if not isinstance(try_to_load_from_cache(hub_id, "config.json"), str):
        return None
    paths = [try_to_load_from_cache(hub_id, name) for name in SAFETENSORS_INDEX]
    return next((Path(path).parent for path in paths if isinstance(path, str)), None)


def fetch_from_hub(hub_id: str, revision: str, on_stage: OnStage) -> Path:
    """Return the local folder of a hub model, fetched first unless it is cached.

    Raises:
        ModelNotFoundError: There is no such model, or this user may not read it.
        UnsupportedModelError: It has no weights that can be loaded.
        FetchError: The hub cannot be reached.
    """
    try:
        folder = _snapshot(hub_id, revision, SETTINGS + SAFETENSORS, on_stage)
        if not any(folder.glob("*.safetensors")):
            folder = _snapshot(hub_id, revision, SETTINGS + PICKLES, on_stage)
    except GatedRepoError as error:
        msg = f"{hub_id} is gated: accept its terms on its hub page, then set HF_TOKEN to a token "
        msg += "of that account"
        raise ModelNotFoundError(msg) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        msg = f"the hub has no model {hub_id} at {revision}, or it is private; check the spelling, "
        msg += "or set HF_TOKEN"
        raise ModelNotFoundError(msg) from error
    except LocalEntryNotFoundError as error:
        msg = f"{hub_id} is not on this machine and the hub cannot be reached; connect to a "
        msg += "network, give a local folder, or use the default model"
        raise FetchError(msg) from error
    except (HfHubHTTPError, httpx2.HTTPError, OSError) as error:
        msg = f"cannot fetch {hub_id}: {first_line(error)}; check the network and the disk, then "
        msg += "try again"
        raise FetchError(msg) from error
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("pytorch_model*.bin")):
        msg = f"{hub_id} has no weights in safetensors or PyTorch form; for a GGUF repository, "
        msg += "download the .gguf file and give its path"
        raise UnsupportedModelError(msg)
    return folder


def _snapshot(hub_id: str, revision: str, patterns: list[str], on_stage: OnStage) -> Path:
    return Path(
        snapshot_download(
            hub_id,
            revision=revision,
            allow_patterns=patterns,
            ignore_patterns=SUBFOLDERS,
            tqdm_class=_reporting_bar(hub_id, on_stage),
        )
    )


def _reporting_bar(hub_id: str, on_stage: OnStage) -> type[tqdm_asyncio[Any]]:
    """Return a progress bar class that draws nothing and reports bytes instead."""

    class ReportingBar(tqdm_asyncio):  # pyright: ignore[reportMissingTypeArgument]  # not subscriptable when run
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  tqdm's own
            self.counts_bytes = kwargs.get("unit") == "B"
            super().__init__(*args, **{**kwargs, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            """Count n more bytes and report."""
            is_drawn = super().update(n)
            if self.counts_bytes and self.total:
                ratio = min(self.n / self.total, 1.0)
                on_stage(LoadStage(stage=f"downloading {hub_id}", ratio=ratio))
            return is_drawn

    return ReportingBar
