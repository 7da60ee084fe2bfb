"""A model's tokenizer as a ``TokenizerFiles`` record, which needs no model to be used."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

from tokenizers import Tokenizer
from transformers import AutoTokenizer

from inference.models.model_files import ModelFiles
from inference.records.errors import UnsupportedModelError
from inference.records.model import TokenizerFiles


def read_tokenizer(files: ModelFiles) -> TokenizerFiles:
    """Return the tokenizer of a model.

    Raises:
        UnsupportedModelError: It has none, or one that only runs inside transformers.
    """
    try:
        with redirect_stderr(io.StringIO()):
            tokenizer = AutoTokenizer.from_pretrained(
                files.folder, local_files_only=True, trust_remote_code=False, **files.gguf_argument
            )
    except Exception as error:  # the tokenizers library raises Exception itself
        reason = " ".join(str(error).split())[:200].rstrip(" .;:")
        msg = f"the tokenizer of {files.model_id} cannot be read ({reason}); choose a model that "
        msg += "comes with a tokenizer.json"
        raise UnsupportedModelError(msg) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        msg = f"{files.model_id} has a tokenizer without a tokenizer.json; choose a model with one"
        raise UnsupportedModelError(msg)
    return TokenizerFiles(
        tokenizer_json=backend.to_str(),
        chat_template=one_template(tokenizer.chat_template),
        special_tokens=tuple(
            (str(name), str(token))
            for name, token in tokenizer.special_tokens_map.items()
            if not isinstance(token, list | tuple)
        ),
        special_ids=tuple(int(token_id) for token_id in tokenizer.all_special_ids),
    )


def one_template(templates: str | dict[str, str] | None) -> str | None:
    """Return the template for conversations; some models name several."""
    if isinstance(templates, dict):
        return templates.get("default")
    return templates
