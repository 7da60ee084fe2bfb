"""Formats side by side: divergence, perplexity and agreement against the library's own numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from inference.__main__ import main
from inference.bench import format_fidelity
from inference.bench.format_fidelity import FormatOrder, compare_formats
from inference.models.loading import LoadedModel, load_model
from inference.records.errors import InputError

PROMPT = "the cache holds keys"
TEXT = "decode reads the weights again and the cache holds keys and values"


def order(folder: Path, *dtypes: str, text_tokens: int = 40) -> FormatOrder:
    return FormatOrder(
        model=str(folder),
        dtypes=dtypes,
        prompt=PROMPT,
        text=TEXT,
        device="cpu",
        max_new_tokens=12,
        text_tokens=text_tokens,
        is_raw=True,
    )


def disturb(model: torch.nn.Module) -> None:
    """Change every weight matrix a little, as a format of few bits would."""
    seeded = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                noise = torch.randn(weight.shape, generator=seeded, dtype=torch.float64)
                weight.add_(0.05 * weight.std() * noise.to(weight.dtype))


def log_probs(model: Any, ids: list[int]) -> np.ndarray:  # noqa: ANN401  the library's own
    """Return the log-probabilities at every position, [position, vocab], by numpy alone."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().numpy()
    highest = logits.max(-1, keepdims=True)
    return logits - highest - np.log(np.exp(logits - highest).sum(-1, keepdims=True))


def test_divergence_perplexity_and_agreement_are_the_librarys(
    tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[LoadedModel] = []

    def load(model: str, *, dtype: str, device: str, **rest: Any) -> LoadedModel:  # noqa: ANN401
        loaded = load_model(model, dtype="float64", device=device, **rest)
        if dtype == "disturbed":
            disturb(loaded.model)
        loads.append(loaded)
        return loaded

    monkeypatch.setattr(format_fidelity, "load_model", load)
    made = compare_formats(order(tiny_model_folder, "float64", "disturbed"), lambda _stage: None)

    first, second = made.results
    exact = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float64)
    changed = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float64)
    disturb(changed)
    from inference.models.tokenization import TextCodec  # noqa: PLC0415  beside its use

    codec = TextCodec.from_files(loads[0].tokenizer_files)
    prompt = list(codec.encode(PROMPT, is_raw=True))
    answers = [
        model.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)[0].tolist()
        for model in (exact, changed)
    ]
    whole = answers[0][: len(prompt) + first.output_tokens]
    at = slice(len(prompt) - 1, len(whole) - 1)
    expected, found = log_probs(exact, whole)[at], log_probs(changed, whole)[at]
    divergence = (np.exp(expected) * (expected - found)).sum(-1).mean()
    text = list(codec.encode(TEXT, is_raw=True))[:40]
    losses = [
        model(torch.tensor([text]), labels=torch.tensor([text])).loss.item()
        for model in (exact, changed)
    ]
    assert (made.prompt_tokens, made.text_tokens) == (len(prompt), len(text))
    assert first.kl_nats == pytest.approx(0.0, abs=1e-12)
    assert first.same_tokens == first.output_tokens
    assert first.same_choice_ratio == 1.0
    assert second.kl_nats == pytest.approx(divergence, rel=1e-6)
    assert second.kl_nats > 1e-5
    assert second.same_choice_ratio == np.mean(expected.argmax(-1) == found.argmax(-1))
    assert [one.perplexity for one in made.results] == pytest.approx(np.exp(losses), rel=1e-6)
    differing = [ours != theirs for ours, theirs in zip(*answers, strict=False)]
    until = differing.index(True) if True in differing else min(map(len, answers))
    assert second.same_tokens == min(until, len(whole)) - len(prompt)


def test_the_command_compares_formats_by_bytes_speed_and_answers(
    tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["formats", "--model", str(tiny_model_folder), "--prompt", PROMPT, "--raw"]
    few = ["--formats", "float32,q8_0", "--max-new-tokens", "6", "--text-tokens", "9"]

    assert main([*common, *few, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main([*common, *few]) == 0
    table = capsys.readouterr().out

    plain, blocks = made["results"]
    assert blocks["weight_bytes"] < plain["weight_bytes"]
    assert plain["kl_nats"] == 0.0
    assert 0 < blocks["kl_nats"] < 0.1
    assert blocks["perplexity"] == pytest.approx(plain["perplexity"], rel=0.1)
    assert plain["latency"]["ttft_s"] > 0
    assert "Perplexity: of a shipped\ntext of 9 tokens." in table
    assert len([line for line in table.splitlines() if line.startswith(("float32 ", "q8_0 "))]) == 2


@pytest.mark.parametrize(
    ("dtypes", "text_tokens", "sentence"),
    [
        ((), 40, "at least one number format"),
        (("float32", "float32"), 40, "each once"),
        (("float32", "q9"), 40, "q9"),
        (("float32",), 1, "at least two tokens"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(
    tiny_model_folder: Path, dtypes: tuple[str, ...], text_tokens: int, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        compare_formats(
            order(tiny_model_folder, *dtypes, text_tokens=text_tokens), lambda _stage: None
        )
