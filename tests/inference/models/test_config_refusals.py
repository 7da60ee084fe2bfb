"""Configs that do not fit their class: each is refused, or counted, in words of its own."""

from __future__ import annotations

from typing import Any

import pytest

from inference.models.config_shapes import shape_of_config
from inference.models.library_configs import reason
from inference.records.errors import InputError
from tests.cost_families import family_config

LLAMA = family_config("llama")
KINDS = ["full_attention"] * 3


@pytest.mark.parametrize(
    ("family", "change", "words"),
    [
        ("llama", {"rope_scaling": "yarn"}, "rope_scaling is 'yarn'; it must be null, or an obj"),
        ("llama", {"num_hidden_layers": 2, "layer_types": KINDS}, "has 3 values in layer_types"),
        (
            "llama",
            {"num_hidden_layers": 2, "layer_types": ["full_attention", "odd"]},
            "layer_types holds 'full_attention', 'odd', of which not all are kinds",
        ),
        ("mixtral", {"num_local_experts": 8, "num_experts_per_tok": 20}, "is 20, more than its 8"),
    ],
    ids=["rope", "layers", "kind", "experts"],
)
def test_a_refusal_names_the_field_and_what_it_holds(
    family: str, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        shape_of_config({**family_config(family), **change}, "bfloat16")

    assert "alidator" not in str(caught.value)


def test_a_sentence_of_the_library_stays_one() -> None:
    text = "Missing required keys in `rope_parameters`"

    assert reason(KeyError(text)) == text
    assert reason(KeyError("wobble")) == "it does not know 'wobble'"


@pytest.mark.parametrize("name", ["torch_dtype", "dtype"])
def test_a_files_dtype_is_not_read(name: str) -> None:
    """The caller's is; "float3" ended in a sentence about torch's attributes."""
    assert shape_of_config({**LLAMA, name: "float3"}, "bfloat16") == shape_of_config(
        LLAMA, "bfloat16"
    )


def test_a_class_of_several_types_is_counted_as_the_one_it_is_named_after() -> None:
    fields = {**LLAMA, "model_type": "someones", "architectures": ["LlamaForCausalLM"]}

    assert "counted as llama" in shape_of_config(fields, "bfloat16").uncounted[0]


def test_a_class_that_cannot_be_built_ties_as_it_would() -> None:
    """Llama's class has two tables where the file does not say; one was assumed."""
    fields = {**LLAMA, "rope_scaling": {"rope_type": "wobble", "factor": 2.0}}
    fields.pop("tie_word_embeddings", None)

    shape = shape_of_config(fields, "bfloat16")

    assert not shape.tie_word_embeddings
    assert "it does not know 'wobble'" in shape.uncounted[0]
    assert any("two, the default of its class, are assumed" in note for note in shape.uncounted)


@pytest.mark.parametrize("is_tied", [True, False])
def test_tying_that_only_the_text_part_states_is_its(*, is_tied: bool) -> None:
    text = {**LLAMA, "model_type": "llama", "tie_word_embeddings": is_tied}

    shape = shape_of_config({"model_type": "llava", "text_config": text}, "bfloat16")

    assert shape.tie_word_embeddings is is_tied
