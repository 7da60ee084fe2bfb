"""Built-in shapes are those of the built-in configs, and an uploaded config is counted apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inference.counting.config_files import MOST_BYTES, read_config_fields
from inference.counting.public_configs import public_config, public_config_names
from inference.counting.public_shapes import SHAPES_FILE, STORED_DTYPES, public_shape
from inference.counting.shape_jobs import count_apart
from inference.models.config_shapes import shape_of_config
from inference.records.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.golden
@pytest.mark.parametrize("name", public_config_names())
def test_the_stored_shape_is_the_one_counted_from_the_config(name: str) -> None:
    for dtype in sorted(set(STORED_DTYPES.values())):
        assert public_shape(name, dtype) == shape_of_config(public_config(name), dtype), dtype


@pytest.mark.golden
def test_a_dtype_of_as_many_bytes_has_the_shape_of_the_stored_one() -> None:
    assert public_shape("GPT-2", "float16") == shape_of_config(public_config("GPT-2"), "float16")


def test_the_stored_shapes_say_how_they_were_made() -> None:
    content = json.loads(SHAPES_FILE.read_text(encoding="utf-8"))

    assert "tests.golden.make_public_shapes" in content["made_by"]


def test_the_stored_shapes_need_no_torch() -> None:
    script = (
        "import sys; from inference.counting.public_shapes import public_shape;"
        "import inference.counting.shape_jobs;"
        "public_shape('GPT-2', 'float16'); print('torch' in sys.modules)"
    )

    answer = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "False"


def test_an_unknown_model_or_dtype_is_a_sentence() -> None:
    with pytest.raises(InputError, match="choose one of"):
        public_shape("no-such-model", "bfloat16")
    with pytest.raises(InputError, match="dtype int3 is not one of"):
        public_shape("GPT-2", "int3")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not json", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[1, 2]", "holds no JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (MOST_BYTES + 1), "a few thousand"),
    ],
    ids=["text", "bytes", "list", "deep", "large"],
)
def test_an_upload_that_is_no_config_is_a_sentence(content: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_config_fields(content)


def test_a_config_is_counted_in_a_process_of_its_own() -> None:
    answer = count_apart(public_config("SmolLM2-135M"), "float32")

    assert answer.sentence == ""
    assert answer.shape == public_shape("SmolLM2-135M", "float32")


def test_a_config_that_cannot_be_counted_is_a_sentence() -> None:
    answer = count_apart({"model_type": "no_such_thing"}, "float32")

    assert answer.shape is None
    assert "no_such_thing" in answer.sentence
