"""A model by name, made ready to run: files, device, dtype, weights, tokenizer, shape.

Whatever the name, it becomes files on this machine first (fetch.py, hf_hub.py), and only those are
loaded. Code from a model repository is never run, nor code in a pickle of weights.
"""

from __future__ import annotations

import copy
import io
import pickle
import struct
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from inference.counting.config_files import config_file_fields
from inference.counting.config_sizes import checked_fields
from inference.kernels.install import install, switched_off
from inference.models.attention_implementations import check_attention
from inference.models.config_models import model_on_meta
from inference.models.devices import SPREAD, choice_note, choose_device, describe_device
from inference.models.host_memory import free_host_bytes
from inference.models.memory_errors import is_out_of_memory
from inference.models.model_files import ModelFiles, locate
from inference.models.placement import (
    Layout,
    check_on_gpus,
    free_gpu_bytes,
    placement,
    placing,
    spread_note,
)
from inference.models.process_memory import MEMORY_VARIABLE
from inference.models.shapes import model_shape
from inference.models.tokenizer_files import read_tokenizer
from inference.records.block_formats import block_format_of
from inference.records.errors import (
    FetchError,
    OutOfMemoryError,
    UnsupportedModelError,
    first_line,
)
from inference.records.model import Device, ModelShape, TokenizerFiles
from inference.records.options import AttentionKind
from inference.records.status import LoadStage

OnStage = Callable[[LoadStage], None]
# What reading a damaged file raises, by format.
BROKEN_FILES = (
    SafetensorError,
    OSError,
    ValueError,
    LookupError,
    EOFError,
    struct.error,
)
SENSELESS_SIZES = (ArithmeticError, TypeError, AttributeError, AssertionError, IndexError)
ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model in evaluation mode and what the engine must know of it.

    Attributes:
        attention: The attention implementation the model resolved to.
        eos_ids: Tokens that end a generation.
        context_limit: Tokens the model takes at most; None where it names no limit.
        device_note: What it runs on and why, as a sentence or two.
        kernels: What small steps are computed with, and why where not with kernels of our own.
    """

    model: PreTrainedModel
    tokenizer_files: TokenizerFiles
    shape: ModelShape
    device: Device
    model_id: str
    attention: str
    eos_ids: frozenset[int]
    context_limit: int | None
    device_note: str = ""
    kernels: str = ""


def load_model(  # noqa: PLR0913  each is a choice of the user's
    model: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    on_stage: OnStage,
    is_plain: bool = False,
    attention: AttentionKind = AttentionKind.AUTO,
    most_bytes: int | None = None,
) -> LoadedModel:
    """Return the model, on its device and ready to run.

    Args:
        model: ``default``, a catalogue id, a hub id, a model folder, or a ``.gguf`` file.
        dtype: See ``choose_device``.
        device: See ``choose_device``.
        on_stage: Takes what is happening and how far it is.
        is_plain: Use the library's own code only, no kernels of ours, for the model's own
            computation.
        attention: Which implementation computes attention. One that is named computes it in every
            step, so no layer is fused.
        most_bytes: What its weights may take of the processor's memory; None for what is free.

    Raises:
        InputError: There is no such device or dtype, or the model has no such attention.
        ModelNotFoundError: There is no such model.
        UnsupportedModelError: It is not a causal language model that can be run.
        FetchError: Its files cannot be fetched, or are damaged.
        OutOfMemoryError: The device has too little memory for its weights.
    """
    torch_device, torch_dtype = choose_device(device, dtype)
    files = locate(model, on_stage)
    on_stage(LoadStage(stage="reading the model's settings and tokenizer"))
    config = read_config(files)
    tokenizer = read_tokenizer(files)
    check_attention(config, files.model_id, attention, (torch_device, torch_dtype))
    blocks = block_format_of(dtype)
    if blocks is not None:
        # A machine with a GPU may lack the package for blocks, which are for a CPU.
        from inference.models.block_loading import check_blocks  # noqa: PLC0415  see above

        check_blocks(model_on_meta(copy.deepcopy(config), "float32"), files.model_id, blocks)
    needed_bytes = weight_bytes_in(files, config, torch_dtype)
    if torch_device.type == "cpu":
        check_weights_fit(files.model_id, needed_bytes, most_bytes)
    free = free_gpu_bytes(device, torch_device, needed_bytes)
    is_spread = device == SPREAD
    layout = placement(files.model_id, needed_bytes, torch_device, free, is_spread=is_spread)
    chosen = {} if attention is AttentionKind.AUTO else {"attn_implementation": attention.value}
    network = _read_weights(files, config, (layout, {"dtype": torch_dtype, **chosen}), on_stage)
    if blocks is not None:
        on_stage(LoadStage(stage=f"putting weights into blocks of {blocks}"))
        from inference.models.block_loading import keep_in_blocks  # noqa: PLC0415  as above

        keep_in_blocks(network, blocks)
    on_stage(LoadStage(stage="preparing the kernels"))
    kernels = switched_off(network) if is_plain else install(network, is_fused=not chosen).text
    on_stage(LoadStage(stage="model loaded", ratio=1.0))
    return LoadedModel(
        model=network,
        tokenizer_files=tokenizer,
        shape=model_shape(network),
        device=describe_device(torch_device, torch_dtype, blocks),
        model_id=files.model_id,
        attention=attention_of(network),
        eos_ids=eos_ids_of(network),
        context_limit=context_limit_of(network.config),
        device_note=choice_note((device, dtype), torch_device, torch_dtype) + spread_note(network),
        kernels=kernels,
    )


def read_config(files: ModelFiles) -> PreTrainedConfig:
    """Return the model's config.

    Raises:
        UnsupportedModelError: It is not one of a causal language model that transformers knows.
    """
    try:
        if files.gguf_name is None:  # before a class makes lists as long as its sizes
            checked_fields(config_file_fields(files.folder))
        config = AutoConfig.from_pretrained(
            files.folder, local_files_only=True, trust_remote_code=False, **files.gguf_argument
        )
        if files.gguf_name is not None:
            checked_fields(config.to_dict())
    except Exception as error:  # each config class checks its values in its own way
        if "trust_remote_code" in str(error):
            msg = f"{files.model_id} needs code from its own repository, which is never run here; "
            msg += "choose a model of an architecture built into transformers"
        else:
            msg = f"the config of {files.model_id} cannot be used: {first_line(error)}; choose "
            msg += "another model, or fetch this one again"
        raise UnsupportedModelError(msg) from error
    check_causal(config, files.model_id)
    return config


def check_causal(config: PreTrainedConfig, model_id: str) -> None:
    """Raise UnsupportedModelError unless the config is one of a causal language model."""
    causal_classes = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    architectures = set(config.architectures or ())
    if config.is_encoder_decoder:
        reason = "is an encoder-decoder model"
    elif config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        reason = f"is of type {config.model_type}, which has no causal language model"
    elif architectures and not architectures & causal_classes:
        reason = f"is a {', '.join(sorted(architectures))} and not a causal language model"
    else:
        return
    msg = f"{model_id} {reason}; choose a model that generates text one token after another"
    raise UnsupportedModelError(msg)


def check_weights_fit(model_id: str, needed_bytes: int, most_bytes: int | None = None) -> None:
    """Raise OutOfMemoryError when the weights cannot fit; Linux would end the process instead."""
    free_bytes = free_host_bytes()
    if most_bytes is not None and most_bytes < min(needed_bytes, free_bytes):
        msg = f"{model_id} needs {needed_bytes / 2**30:.1f} GiB and the engine may take "
        msg += f"{most_bytes / 2**30:.1f} GiB more; raise {MEMORY_VARIABLE}, or choose a smaller "
        msg += "dtype or model"
        raise OutOfMemoryError(msg)
    if needed_bytes > free_bytes:
        msg = f"{model_id} needs {needed_bytes / 2**30:.1f} GiB and "
        msg += f"{free_bytes / 2**30:.1f} GiB are free; close other programs, or choose a smaller "
        msg += "dtype or model"
        raise OutOfMemoryError(msg)


def weight_bytes_in(files: ModelFiles, config: PreTrainedConfig, dtype: torch.dtype) -> int:
    """Return about how many bytes the weights take in this dtype.

    Raises:
        UnsupportedModelError: The config of a GGUF file gives no model.
    """
    if files.gguf_name is not None:  # its file is quantised, and what is loaded is not
        made = model_on_meta(copy.deepcopy(config), str(dtype).removeprefix("torch."))
        return dtype.itemsize * sum(weight.numel() for weight in made.parameters())
    stored = str(config.dtype or torch.float32).removeprefix("torch.")
    return files.weight_bytes * dtype.itemsize // ITEM_BYTES.get(stored, dtype.itemsize)


def attention_of(network: PreTrainedModel) -> str:
    """Return the attention implementation the model resolved to, such as ``sdpa``."""
    return str(getattr(network.config, "_attn_implementation", None) or "eager")


def eos_ids_of(network: PreTrainedModel) -> frozenset[int]:
    """Return the ids that end a generation, those that the library's ``generate`` stops at."""
    ids: object = getattr(network.generation_config, "eos_token_id", None)
    if ids is None:
        ids = getattr(network.config.get_text_config(), "eos_token_id", None)
    if isinstance(ids, int):
        return frozenset({ids})
    return frozenset(ids) if isinstance(ids, list | tuple) else frozenset()


def context_limit_of(config: PreTrainedConfig) -> int | None:
    """Return how many tokens the model takes; None where its config names no limit."""
    limit = getattr(config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def _read_weights(
    files: ModelFiles,
    config: PreTrainedConfig,
    target: tuple[Layout, dict[str, Any]],
    on_stage: OnStage,
) -> PreTrainedModel:
    layout, chosen = target
    on_stage(LoadStage(stage="reading weights"))
    with plain_errors(files), _reported(on_stage):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            files.folder,
            config=copy.deepcopy(config),  # from_pretrained writes into the one it is given
            local_files_only=True,
            trust_remote_code=False,
            # Tensors of a pickle and no code. 5.24 reads .bin files with its own default, True,
            # whatever is given here: test_loading.py tries a pickle that would run code.
            weights_only=True,
            output_loading_info=True,
            **chosen,
            **placing(layout),
            **files.gguf_argument,
        )
        network, report = loaded
        missing = sorted(report["missing_keys"])
        if missing:
            reason = f"{len(missing)} tensors are missing, {missing[0]} first"
            raise FetchError(_damaged(files, reason))
        check_on_gpus(files.model_id, network)
        if isinstance(layout, torch.device) and network.device != layout:
            network = network.to(layout)
        return network.eval().requires_grad_(False)  # noqa: FBT003  torch's own signature


@contextmanager
def plain_errors(files: ModelFiles) -> Generator[None]:
    """Turn each error that occurs while weights are read into one of ours with a sentence."""
    try:
        yield
    except ImportError as error:
        msg = f"{files.model_id} needs a package that is not installed: {first_line(error)}; "
        msg += "choose a model without it"
        raise UnsupportedModelError(msg) from error
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemoryError(_no_room(files)) from error
        raise FetchError(_damaged(files, first_line(error))) from error
    except pickle.UnpicklingError as error:
        msg = f"the weights of {files.model_id} are a pickle that is damaged or runs code when it "
        msg += "is read; none was run: choose a model with safetensors weights"
        raise UnsupportedModelError(msg) from error
    except BROKEN_FILES as error:
        raise FetchError(_damaged(files, first_line(error))) from error
    except SENSELESS_SIZES as error:
        msg = f"the config of {files.model_id} has impossible sizes: {first_line(error)}; "
        msg += "choose another model, or fetch this one again"
        raise UnsupportedModelError(msg) from error


@contextmanager
def _reported(on_stage: OnStage) -> Generator[None]:
    """Report the weights read instead of drawing transformers' own bars and warnings."""

    def hook(_factory: object, args: tuple[Any, ...], _options: dict[str, Any]) -> Iterator[Any]:
        return _counted(args[0] if args else (), on_stage)

    previous_hook = transformers_logging.set_tqdm_hook(hook)
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with redirect_stderr(io.StringIO()):  # a GGUF file is converted under a bar of its own
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        transformers_logging.set_tqdm_hook(previous_hook)


def _counted(items: Iterable[Any], on_stage: OnStage) -> Iterator[Any]:
    listed = list(items)
    for index, item in enumerate(listed):
        yield item
        on_stage(LoadStage(stage="reading weights", ratio=(index + 1) / len(listed)))


def _no_room(files: ModelFiles) -> str:
    return (
        f"out of memory while loading {files.model_id}; close other programs, or choose a smaller "
        "dtype or model"
    )


def _damaged(files: ModelFiles, reason: str) -> str:
    return (
        f"the weights of {files.model_id} are damaged or incomplete ({reason}); delete "
        f"{files.weights_path} and fetch the model again"
    )
