"""Tests of inference/commands/cost.py: the JSON it promises, and refusals in a sentence."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from inference.commands import cost
from inference.counting.costs import step_cost
from inference.counting.public_configs import public_config
from inference.models.config_shapes import shape_of_config
from inference.records.errors import InputError


def arguments(*words: str) -> argparse.Namespace:
    """Return the parsed arguments of ``cost``."""
    parser = argparse.ArgumentParser()
    cost.add_parser(parser.add_subparsers())
    return parser.parse_args(["cost", *words])


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """Run ``cost`` and return what it printed; nothing else may stand there."""
    assert cost.run(arguments(*words)) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.golden
def test_a_config_file_gives_the_promised_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(public_config("Llama-3.1-8B")), encoding="utf-8")
    sizes = ("--batch", "8", "--query", "1", "--context", "1024")
    device = ("--dtype", "bfloat16", "--device", "989e12:3.35e12")

    fields = printed(capsys, "--config", str(path), *sizes, *device)

    expected = step_cost(
        shape_of_config(public_config("Llama-3.1-8B"), "bfloat16"), [(1, 1024)] * 8
    )
    assert fields["linear_flops"] == expected.linear_flops == 120_074_534_912
    assert fields["attention_flops"] == expected.attention_flops == 4_294_967_296
    assert fields["weight_bytes"] == expected.weight_bytes == 15_009_914_880
    assert fields["kv_read_bytes"] == expected.kv_read_bytes == 1_073_741_824
    assert fields["kv_write_bytes"] == expected.kv_write_bytes == 1_048_576
    assert fields["flops_per_byte"] == expected.flops_per_byte
    assert fields["step_s"] == expected.bytes_moved / 3.35e12
    told = fields["device"]
    assert isinstance(told, dict)
    assert told["source"] == "entered"


def test_without_a_device_no_time_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    fields = printed(capsys, "--config", "GPT-2", "--dtype", "float32")

    assert "step_s" not in fields
    assert (fields["batch"], fields["query_tokens"], fields["context_tokens"]) == (1, 1, 1)


def test_a_data_sheet_gives_the_time_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    fields = printed(capsys, "--config", "gpt-2", "--query", "64", "--device", "RTX 4090")

    device = fields["device"]
    assert isinstance(device, dict)
    assert device["source"] == "datasheet"
    assert fields["bound"] == "memory"
    assert fields["context_tokens"] == 64


@pytest.mark.parametrize(
    ("device", "fits"), [("H100", False), ("H200", False), ("989e12:3.35e12", None)]
)
def test_a_model_that_does_not_fit_is_said_not_to(
    capsys: pytest.CaptureFixture[str], device: str, *, fits: bool | None
) -> None:
    fields = printed(capsys, "--config", "Llama-3.1-405B", "--device", device)

    answer = fields["device"]
    assert isinstance(answer, dict)
    assert answer["fits"] is fits
    assert ("cannot run this step" in answer["note"]) is (fits is False)


def test_a_model_that_fits_has_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    answer = printed(capsys, "--config", "GPT-2", "--device", "H100")["device"]

    assert isinstance(answer, dict)
    assert (answer["fits"], answer["note"]) == (True, "")


def test_kv_may_be_stored_in_another_dtype(capsys: pytest.CaptureFixture[str]) -> None:
    usual = printed(capsys, "--config", "GPT-2", "--context", "100")

    small = printed(capsys, "--config", "GPT-2", "--context", "100", "--kv-dtype", "float8")

    assert small["kv_bytes_per_token"] == 18_432
    assert usual["kv_bytes_per_token"] == 36_864
    assert small["weight_bytes"] == usual["weight_bytes"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--config nothing", "no built-in config 'nothing'"),
        ("--config no/such/config.json", "cannot read"),
        ("--config GPT-2 --batch 0", "batch is 0"),
        ("--config GPT-2 --query -3", "query is -3"),
        ("--config GPT-2 --batch two", "batch is 'two'"),
        ("--config GPT-2 --query 5 --context 3", "5 tokens fed with a context of 3"),
        ("--config GPT-2 --dtype int4", "dtype int4"),
        ("--config GPT-2 --kv-dtype int4", "kv dtype int4"),
        ("--config GPT-2 --device Voodoo", "no data sheet for 'Voodoo'"),
        ("--config GPT-2 --device T4", "T4 states no bfloat16"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        cost.run(arguments(*words.split()))
