"""From a model's name to its files on this machine, fetched first where they are not. No torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inference.models.catalog import DEFAULT_MODEL, DEFAULT_NAMES, catalog_entry
from inference.records.errors import ModelNotFoundError
from inference.records.status import LoadStage

OnStage = Callable[[LoadStage], None]
WEIGHT_PATTERNS = ("*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """Where a model's files are.

    Attributes:
        model_id: The model's name; never a path, which would reveal the user's machine.
        gguf_name: The GGUF file in the folder that holds the weights; None for a model folder.
    """

    model_id: str
    folder: Path
    gguf_name: str | None = None

    @property
    def gguf_argument(self) -> dict[str, str]:
        """What transformers' loaders take beside the folder."""
        return {} if self.gguf_name is None else {"gguf_file": self.gguf_name}

    @property
    def weights_path(self) -> Path:
        """The GGUF file, or the folder."""
        return self.folder if self.gguf_name is None else self.folder / self.gguf_name

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weight files as stored."""
        if self.gguf_name is not None:
            return self.weights_path.stat().st_size
        by_pattern = [
            sum(path.stat().st_size for path in self.folder.glob(p)) for p in WEIGHT_PATTERNS
        ]
        return next((size for size in by_pattern if size), 0)


def locate(model: str, on_stage: OnStage) -> ModelFiles:
    """Return the files of a model.

    Args:
        model: ``default``, a catalogue id, a hub id, a model folder, or a ``.gguf`` file.
        on_stage: Takes how far fetching is.

    Raises:
        ModelNotFoundError: There is no such model.
        UnsupportedModelError: It has no weights that can be loaded.
        FetchError: It cannot be fetched.
    """
    if model in DEFAULT_NAMES:
        # A machine that is given its model as a folder may lack the packages to fetch with.
        from inference.models.fetch import fetch_default  # noqa: PLC0415  see above

        return ModelFiles(model_id=DEFAULT_MODEL.id, folder=fetch_default(on_stage))
    path = Path(model).expanduser()
    if path.suffix.lower() == ".gguf":
        return _gguf_file(path)
    if _is_folder(path):
        return _model_folder(path)
    from inference.models.hf_hub import fetch_from_hub, is_hub_id  # noqa: PLC0415  as above

    if not is_hub_id(model):
        msg = f"there is no model {model!r}; give default, a hub id such as owner/name, a model "
        msg += "folder, or a .gguf file"
        raise ModelNotFoundError(msg)
    entry = catalog_entry(model)
    revision = "main" if entry is None else entry.revision
    return ModelFiles(model_id=model, folder=fetch_from_hub(model, revision, on_stage))


def _is_folder(path: Path) -> bool:
    """Return True for a folder, but not for the current one, which an empty name stands for."""
    try:
        return path != Path() and path.is_dir()
    except (OSError, ValueError):  # a name too long, or with a null byte
        return False


def _gguf_file(path: Path) -> ModelFiles:
    if not path.is_file():
        msg = f"there is no file {path}; check the path"
        raise ModelNotFoundError(msg)
    path = path.resolve()
    return ModelFiles(model_id=path.stem, folder=path.parent, gguf_name=path.name)


def _model_folder(path: Path) -> ModelFiles:
    if not (path / "config.json").is_file():
        msg = f"the folder {path} has no config.json; give a model folder as save_pretrained "
        msg += "writes it, or a .gguf file"
        raise ModelNotFoundError(msg)
    path = path.resolve()
    return ModelFiles(model_id=path.name, folder=path)
