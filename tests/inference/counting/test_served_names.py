"""Which built-in model a server's name means, and that nothing is guessed."""

from __future__ import annotations

import pytest

from inference.counting.served_names import public_name


@pytest.mark.parametrize(
    ("served", "name"),
    [
        ("Qwen/Qwen3-8B-FP8", "Qwen3-8B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("/models/SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M"),
        ("google/gemma-3-4b-it", "Gemma-3-4B"),
        ("microsoft/Phi-4-mini-instruct", None),
        ("openai-community/gpt-2-xl", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", None),
        ("m", None),
        ("", None),
    ],
)
def test_a_name_means_a_model_only_where_nothing_is_left(served: str, name: str | None) -> None:
    assert public_name(served) == name
