"""Configs with anything in them: counted, or refused in a sentence."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.counting.config_files import read_config_fields
from inference.counting.config_sizes import checked_fields
from inference.counting.costs import step_cost
from inference.models.config_shapes import shape_of_config
from inference.records.errors import InputError, TokenByTokenError
from inference.records.steps import RowStep
from tests.cost_families import family_config
from tests.faults.fuzzing import check_sentence, damaged, flipped, fuzzed, values

OWN_CLASS = {
    "model_type": "someones_decoder",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "layer_types": ["full_attention", "sliding_attention"] * 2,
    "sliding_window": 16,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
    "quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["lm_head"]},
}
ROW = RowStep(
    request_id="r",
    slot=0,
    query_tokens=1,
    context_tokens=8,
    token_id=1,
    logprob=None,
    finish=None,
)


def is_counted_or_refused(fields: dict[str, object]) -> None:
    """Fail unless a config is refused in a sentence, or has sizes that a step can be counted of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's, about sizes that no model has
        try:
            shape = shape_of_config(fields, "bfloat16")
        except TokenByTokenError as error:
            check_sentence(error)
            return
    assert shape.weight_bytes > 0
    assert step_cost(shape, [ROW]).flops > 0


@fuzzed(300)
@given(values() | damaged(OWN_CLASS))
def test_any_fields_are_checked_or_refused(fields: Any) -> None:  # noqa: ANN401  JSON is anything
    content = json.dumps(fields).encode()
    try:
        checked_fields(read_config_fields(content))
    except InputError as error:
        check_sentence(error)


@fuzzed(150)
@given(flipped(json.dumps(OWN_CLASS).encode()))
def test_any_bytes_are_checked_or_refused(content: bytes) -> None:
    try:
        checked_fields(read_config_fields(content))
    except InputError as error:
        check_sentence(error)


@pytest.mark.parametrize("family", ["llama", "mixtral", "gemma2"])
@fuzzed(30, share=0.05)
@given(data=st.data())
def test_a_config_of_a_class_of_the_library_is_counted_or_refused(
    family: str, data: st.DataObject
) -> None:
    is_counted_or_refused(data.draw(damaged(family_config(family))))


@fuzzed(60, share=0.1)
@given(damaged(OWN_CLASS))
def test_a_config_without_a_class_is_counted_or_refused(fields: Any) -> None:  # noqa: ANN401  JSON
    is_counted_or_refused(fields)
