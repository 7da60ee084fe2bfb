"""Weights put into blocks at loading: their bytes and numbers, and what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize
from safetensors.torch import load_file
from torch import nn

from inference.counting.costs import matrix_costs, step_cost
from inference.kernels.block_weights import BlockWeight, widened
from inference.models.block_loading import check_blocks, keep_in_blocks, quantised
from inference.models.loading import LoadedModel, load_model
from inference.records.block_formats import BlockFormat
from inference.records.errors import InputError
from inference.records.model import MatrixRole
from tests.families import fresh_model, tiny_model
from tests.tiny_model import tiny_config

FORMATS = list(BlockFormat)


def loaded_in(folder: Path, dtype: str) -> LoadedModel:
    return load_model(str(folder), dtype=dtype, device="cpu", on_stage=lambda _stage: None)


@pytest.mark.parametrize(
    ("block_format", "layout"), [("q8_0", "<e32b"), ("q4_0", "<e16B"), ("q4_1", "<ee16B")]
)
def test_a_block_has_the_layout_of_ggml(block_format: str, layout: str) -> None:
    """Worked out by hand: the scale, and in Q4_1 the least number, come first."""
    row = torch.linspace(-1, 1, 32)[None]
    blocks = quantised(row, BlockFormat(block_format))

    scale, *others = struct.unpack(layout, blocks.detach().numpy().tobytes())

    assert struct.calcsize(layout) == BlockFormat(block_format).block_bytes
    if block_format == "q8_0":
        numbers = [scale * one for one in others]
    elif block_format == "q4_0":
        halves = [one & 15 for one in others] + [one >> 4 for one in others]
        numbers = [scale * (one - 8) for one in halves]
    else:
        least, *pairs = others
        halves = [one & 15 for one in pairs] + [one >> 4 for one in pairs]
        numbers = [scale * one + least for one in halves]
    off = (torch.tensor(numbers) - row[0]).abs().max()
    assert float(off) <= (0.005 if block_format == "q8_0" else 0.13)
    torch.testing.assert_close(widened(blocks, BlockFormat(block_format))[0], torch.tensor(numbers))


@pytest.mark.parametrize("block_format", FORMATS)
def test_numbers_that_were_in_blocks_come_back_the_same(block_format: BlockFormat) -> None:
    """So a GGUF file in the format asked for loses nothing more."""
    once = quantised(torch.randn(64, 128, generator=torch.Generator().manual_seed(1)), block_format)
    numbers = dequantize(once.detach().numpy(), GGMLQuantizationType[block_format.name])

    twice = quantised(torch.from_numpy(numbers), block_format)

    torch.testing.assert_close(
        widened(twice, block_format), torch.from_numpy(numbers), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("block_format", FORMATS)
def test_bytes_are_those_of_the_tensors(tiny_model_folder: Path, block_format: BlockFormat) -> None:
    loaded = loaded_in(tiny_model_folder, block_format)

    stored = load_file(tiny_model_folder / "model.safetensors")
    matrices = sum(one.numel() for one in stored.values() if one.ndim == 2)
    others = sum(one.numel() for one in stored.values() if one.ndim == 1)
    expected = matrices // 32 * block_format.block_bytes + others * 4
    assert sum(weight.nbytes for weight in loaded.model.parameters()) == expected
    assert loaded.shape.weight_bytes == expected
    assert loaded.shape.parameters == matrices + others
    assert loaded.shape.kv_dtype_bytes == 4
    assert loaded.device.dtype == block_format
    cost = step_cost(loaded.shape, [(1, 9)])
    row = 32 // 32 * block_format.block_bytes
    embedding = 320 * row
    is_tied = loaded.shape.tie_word_embeddings
    assert cost.weight_bytes == expected + row - (0 if is_tied else embedding)


def test_what_goes_through_a_matrix_is_float32(tiny_model_folder: Path) -> None:
    shapes = {name: loaded_in(tiny_model_folder, name).shape for name in ("float32", "q4_0")}

    plain, blocks = (matrix_costs(shape, 7, 1) for shape in shapes.values())

    assert [one.activation_bytes for one in plain] == [one.activation_bytes for one in blocks]
    assert any(one.matrix.role is MatrixRole.EMBEDDING for one in plain)
    assert shapes["float32"].activation_dtype_bytes is None


def test_a_matrix_that_modules_share_stays_one() -> None:
    model = fresh_model(tiny_config(tie_word_embeddings=True), torch.float32)

    keep_in_blocks(model, BlockFormat.Q8_0)

    weight = model.get_input_embeddings().weight
    assert isinstance(weight, BlockWeight)
    assert model.get_output_embeddings().weight is weight


def test_an_embedding_gives_the_rows_of_its_blocks() -> None:
    model = fresh_model(tiny_config(), torch.float32)
    before = model.get_input_embeddings().weight.detach().clone()

    keep_in_blocks(model, BlockFormat.Q8_0)
    found = model.get_input_embeddings()(torch.tensor([[3, 5], [0, 3]]))

    assert found.shape == (2, 2, 32)
    torch.testing.assert_close(found, before[torch.tensor([[3, 5], [0, 3]])], rtol=0, atol=1e-3)


def test_a_row_that_is_no_multiple_of_a_block_is_refused() -> None:
    model = fresh_model(tiny_config(intermediate_size=72), torch.float32)

    with pytest.raises(InputError, match="down_proj of tiny has rows of 72 numbers and q4_1 keeps"):
        check_blocks(model, "tiny", BlockFormat.Q4_1)


def test_modules_of_a_models_own_kind_are_refused() -> None:
    model = fresh_model(tiny_model("gpt2").config, torch.float32)

    with pytest.raises(InputError, match=r"c_attn.weight in a module of its own kind"):
        check_blocks(model, "tiny", BlockFormat.Q8_0)


def test_what_derives_from_a_linear_layer_is_refused() -> None:
    class Scaled(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) * 2

    model = fresh_model(tiny_config(), torch.float32)
    model.model.layers[0].mlp.up_proj.__class__ = Scaled

    with pytest.raises(InputError, match=r"layers.0.mlp.up_proj.weight in a module of its own"):
        check_blocks(model, "tiny", BlockFormat.Q8_0)


def test_a_model_that_cannot_be_in_blocks_is_refused_before_its_weights_are_read(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    config = (tiny_model_folder / "config.json").read_text()
    assert '"intermediate_size": 64' in config
    for file in tiny_model_folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(
        config.replace('"intermediate_size": 64', '"intermediate_size": 70')
    )
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"never read")

    with pytest.raises(InputError, match="rows of 70 numbers and q8_0 keeps blocks of 32"):
        loaded_in(tmp_path, "q8_0")
