"""Turn a quantised GGUF file into a model folder of float32 weights, once."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from inference.records.errors import FetchError


def save_dequantised(gguf_path: Path, folder: Path, name: str) -> None:
    """Write the model and the tokenizer of a GGUF file into the folder, as safetensors.

    Args:
        gguf_path: The quantised weights.
        folder: An existing folder.
        name: What the model calls itself in its config.

    Raises:
        FetchError: The file cannot be converted.
    """
    source, file_name = str(gguf_path.parent), gguf_path.name
    try:
        with redirect_stderr(io.StringIO()):  # transformers draws a bar of its own there
            model = AutoModelForCausalLM.from_pretrained(
                source,
                gguf_file=file_name,
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,
            )
            tokenizer = AutoTokenizer.from_pretrained(
                source, gguf_file=file_name, local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        msg = f"cannot convert {file_name}: {error}; remove it and fetch it again"
        raise FetchError(msg) from error
    # What was read is float32; transformers takes it for quantised and would refuse to write it.
    vars(model).update(hf_quantizer=None, is_quantized=False)
    vars(model.config).pop("quantization_config", None)
    model.config.update({"_model_name_or_path": name})
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
