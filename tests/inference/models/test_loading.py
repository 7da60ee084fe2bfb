"""Models by name: what loads is ready to run, what cannot is refused in a sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    BertConfig,
    GenerationConfig,
    LlamaForCausalLM,
    T5Config,
    ViTConfig,
)

from inference.kernels.install import fused_layers
from inference.models.devices import choose_device, describe_device
from inference.models.loading import (
    check_causal,
    context_limit_of,
    eos_ids_of,
    load_model,
    plain_errors,
    weight_bytes_in,
)
from inference.models.model_files import ModelFiles, locate
from inference.records.errors import (
    FetchError,
    InputError,
    ModelNotFoundError,
    OutOfMemoryError,
    TokenByTokenError,
    UnsupportedModelError,
)
from inference.records.options import AttentionKind
from inference.records.status import LoadStage
from tests.families import tiny_model
from tests.tiny_model import tiny_config, tiny_tokenizer


def ignore(_stage: LoadStage) -> None:
    """Take a stage and do nothing."""


@pytest.fixture
def copied_model(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may spoil."""
    return Path(shutil.copytree(tiny_model_folder, tmp_path / "copied"))


def test_a_loaded_model_is_ready_and_described(tiny_model_folder: Path) -> None:
    stages: list[LoadStage] = []

    loaded = load_model(
        str(tiny_model_folder), dtype="float64", device="cpu", on_stage=stages.append
    )

    assert not loaded.model.training
    assert not any(weight.requires_grad for weight in loaded.model.parameters())
    assert loaded.model.dtype == torch.float64
    assert loaded.model_id == "tiny-llama"
    assert loaded.eos_ids == {1}
    assert loaded.context_limit == 128
    assert loaded.attention == "sdpa"
    assert (loaded.device.kind, loaded.device.dtype) == ("cpu", "float64")
    assert loaded.shape.num_key_value_heads == 2
    assert stages[-1] == LoadStage(stage="model loaded", ratio=1.0)


@pytest.mark.parametrize("kind", [AttentionKind.SDPA, AttentionKind.EAGER])
def test_an_attention_that_is_asked_for_is_the_one_in_every_step(
    tiny_model_folder: Path, kind: AttentionKind
) -> None:
    loaded = load_model(
        str(tiny_model_folder), dtype="float32", device="cpu", on_stage=ignore, attention=kind
    )

    assert loaded.attention == kind.value
    assert loaded.model.config._attn_implementation == kind.value
    assert fused_layers(loaded.model) is None
    assert "fused" not in loaded.kernels


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        pytest.param(AttentionKind.SDPA, "the library has none for this architecture", id="sdpa"),
        pytest.param(AttentionKind.FLASH, "it needs an NVIDIA GPU", id="flash"),
    ],
)
def test_an_attention_that_the_family_cannot_have_is_refused(
    tmp_path: Path, kind: AttentionKind, said: str
) -> None:
    tiny_model("gemma2").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)

    with pytest.raises(InputError, match=said) as refused:
        load_model(str(tmp_path), device="cpu", on_stage=ignore, attention=kind)

    assert "choose auto or eager" in str(refused.value)


def test_reading_weights_reports_how_far_it_is(tiny_model_folder: Path) -> None:
    stages: list[LoadStage] = []

    load_model(str(tiny_model_folder), device="cpu", on_stage=stages.append)

    ratios = [s.ratio for s in stages if s.stage == "reading weights" and s.ratio is not None]
    assert len(ratios) > 2
    assert ratios == sorted(ratios)
    assert ratios[-1] == 1


def test_loading_writes_nothing_to_standard_error(
    tiny_model_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    load_model(str(tiny_model_folder), device="cpu", on_stage=ignore)

    assert capfd.readouterr().err == ""


def test_the_default_model_loads_by_both_names(default_model_folder: Path) -> None:
    assert locate("default", ignore) == locate("SmolLM2-135M-Instruct", ignore)
    assert locate("default", ignore).folder == default_model_folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("no such model", "there is no model", id="no id"),
        pytest.param("", "there is no model", id="empty"),
        pytest.param("./nowhere", "there is no model", id="no folder"),
        pytest.param("nowhere.gguf", "there is no file", id="no file"),
        pytest.param("x" * 5000, "there is no model", id="too long for a path"),
        pytest.param("a\0b", "there is no model", id="null byte"),
    ],
)
def test_a_name_that_names_nothing_is_refused(name: str, said: str) -> None:
    with pytest.raises(ModelNotFoundError, match=said):
        load_model(name, on_stage=ignore)


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no config\.json"):
        load_model(str(tmp_path), on_stage=ignore)


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF, or so it says")

    with pytest.raises(UnsupportedModelError, match="broken"):
        load_model(str(path), on_stage=ignore)


def truncate(folder: Path) -> None:
    """Cut the weights in half."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(folder: Path) -> None:
    """Overwrite the weights' header."""
    (folder / "model.safetensors").write_bytes(b"\xff" * 4096)


def remove(folder: Path) -> None:
    """Delete the weights."""
    (folder / "model.safetensors").unlink()


def lose_a_tensor(folder: Path) -> None:
    """Leave one tensor out of the weights."""
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("model.layers.1.mlp.up_proj.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def reshape_a_tensor(folder: Path) -> None:
    """Give one tensor another shape than the config says."""
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"] = torch.ones(7, dtype=torch.float64)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    "spoil",
    [truncate, scramble, remove, lose_a_tensor, reshape_a_tensor],
    ids=lambda spoil: spoil.__name__,
)
def test_damaged_weights_are_named_with_the_remedy(
    spoil: Callable[[Path], None], copied_model: Path
) -> None:
    spoil(copied_model)

    with pytest.raises(FetchError, match=r"copied are damaged .* fetch the model again"):
        load_model(str(copied_model), device="cpu", on_stage=ignore)


class Malicious:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        """Return what unpickling calls."""
        return Path.touch, (self.path,)


@pytest.mark.parametrize("is_zipped", [True, False], ids=["zipped", "bare pickle"])
def test_weights_that_would_run_code_are_refused_and_run_none(
    copied_model: Path, tmp_path: Path, *, is_zipped: bool
) -> None:
    tensors: dict[str, object] = dict(load_file(copied_model / "model.safetensors"))
    (copied_model / "model.safetensors").unlink()
    trace = tmp_path / "code-was-run"
    torch.save(
        tensors | {"model.extra": Malicious(trace)},
        copied_model / "pytorch_model.bin",
        _use_new_zipfile_serialization=is_zipped,
    )

    with pytest.raises(UnsupportedModelError, match=r"copied .* runs code .* none was run: choose"):
        load_model(str(copied_model), device="cpu", on_stage=ignore)

    assert not trace.exists()
    torch.load(copied_model / "pytorch_model.bin", weights_only=False)
    assert trace.exists()  # it would have run


def test_weights_of_tensors_only_are_read_from_a_pickle(copied_model: Path) -> None:
    tensors = load_file(copied_model / "model.safetensors")
    (copied_model / "model.safetensors").unlink()
    torch.save(tensors, copied_model / "pytorch_model.bin")

    loaded = load_model(str(copied_model), device="cpu", on_stage=ignore)

    assert torch.equal(loaded.model.state_dict()["model.norm.weight"], tensors["model.norm.weight"])


def test_a_config_that_is_no_json_is_refused(copied_model: Path) -> None:
    (copied_model / "config.json").write_text("{")

    with pytest.raises(UnsupportedModelError, match="config of copied"):
        load_model(str(copied_model), on_stage=ignore)


def test_an_architecture_that_is_not_built_in_is_refused(copied_model: Path) -> None:
    (copied_model / "config.json").write_text(json.dumps({"model_type": "never-heard-of"}))

    with pytest.raises(UnsupportedModelError, match="config of copied"):
        load_model(str(copied_model), on_stage=ignore)


def test_code_from_a_repository_is_never_run(copied_model: Path) -> None:
    own_code = {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig"}}
    (copied_model / "config.json").write_text(json.dumps(own_code))
    (copied_model / "own.py").write_text("raise SystemExit('code of a repository was run')")

    with pytest.raises(UnsupportedModelError, match="never run here"):
        load_model(str(copied_model), on_stage=ignore)


def test_a_model_without_a_tokenizer_is_refused(copied_model: Path) -> None:
    for path in copied_model.glob("*token*"):
        path.unlink()

    with pytest.raises(UnsupportedModelError, match="tokenizer"):
        load_model(str(copied_model), on_stage=ignore)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param(T5Config(), "encoder-decoder", id="encoder-decoder"),
        pytest.param(ViTConfig(), "type vit", id="no language model"),
        pytest.param(BertConfig(architectures=["BertForMaskedLM"]), "BertForMaskedLM", id="masked"),
        pytest.param(
            tiny_config(architectures=["LlamaForSequenceClassification"]), "not a causal", id="head"
        ),
    ],
)
def test_what_is_no_causal_language_model_is_refused(config: AutoConfig, said: str) -> None:
    with pytest.raises(UnsupportedModelError, match=said):
        check_causal(config, "it")


def test_weights_beyond_the_free_memory_are_refused_before_they_are_read(
    tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelFiles, "weight_bytes", 2**60)

    with pytest.raises(OutOfMemoryError, match=r"needs .* GiB"):
        load_model(
            str(tiny_model_folder), dtype="float64", device="cpu", on_stage=lambda _stage: None
        )


def test_a_quantised_file_is_counted_as_it_is_loaded(tmp_path: Path) -> None:
    """Its own size is a quarter of what the loaded weights take, so too many were let in."""
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    files = ModelFiles(model_id="tiny", folder=tmp_path, gguf_name="tiny.gguf")

    model = LlamaForCausalLM(tiny_config())

    parameters = sum(weight.numel() for weight in model.parameters())
    assert weight_bytes_in(files, tiny_config(), torch.bfloat16) == 2 * parameters


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(torch.OutOfMemoryError("CUDA"), OutOfMemoryError, id="device"),
        pytest.param(RuntimeError("can't allocate memory"), OutOfMemoryError, id="host"),
        pytest.param(ImportError("needs kernels"), UnsupportedModelError, id="package"),
        pytest.param(RuntimeError("size mismatch"), FetchError, id="shape"),
    ],
)
def test_errors_of_the_library_become_ours(
    error: Exception, kind: type[TokenByTokenError], tmp_path: Path
) -> None:
    files = ModelFiles(model_id="it", folder=tmp_path)

    with pytest.raises(kind, match="it"), plain_errors(files):
        raise error


@pytest.mark.parametrize(
    ("eos", "expected"), [(2, {2}), ([2, 3], {2, 3}), (None, {1})], ids=["one", "several", "none"]
)
def test_a_generation_ends_where_the_library_ends_it(eos: object, expected: set[int]) -> None:
    network = LlamaForCausalLM(tiny_config())
    network.generation_config = GenerationConfig(eos_token_id=eos)

    assert eos_ids_of(network) == expected


def test_a_model_that_names_no_limit_has_none() -> None:
    assert context_limit_of(tiny_config(max_position_embeddings=0)) is None


def test_without_a_gpu_the_dtype_of_choice_is_float32() -> None:
    assert choose_device("cpu", "auto") == (torch.device("cpu"), torch.float32)


@pytest.mark.parametrize(
    ("device", "dtype", "said"),
    [("cuda:99", "auto", "no device 'cuda:99'"), ("cpu", "int3", "no dtype 'int3'")],
)
def test_a_device_or_dtype_that_is_not_there_is_refused(device: str, dtype: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        choose_device(device, dtype)


def test_a_device_has_a_name_and_its_memory() -> None:
    described = describe_device(torch.device("cpu"), torch.bfloat16)

    assert described.dtype == "bfloat16"
    assert described.name
    assert described.memory_bytes is not None
    assert described.memory_bytes > 0
