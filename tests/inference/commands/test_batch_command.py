"""`python -m inference run --batch` with a plan: run files, and one-line complaints."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.__main__ import main
from inference.records.options import BatchPlan, Padding, Policy
from inference.runs.run_file import read

PROMPTS = ("--prompt", "the cache", "--prompt", "decode reads the weights", "--prompt", "keys")


@pytest.fixture
def common(tiny_model_folder: Path) -> tuple[str, ...]:
    model = ("--model", str(tiny_model_folder), "--dtype", "float64", "--max-new-tokens", "5")
    return ("run", *model, *PROMPTS)


@pytest.mark.parametrize("chunk", [(), ("--chunk", "2")], ids=["at once", "in chunks"])
def test_a_continuous_batch_gives_each_prompt_the_tokens_it_gets_alone(
    common: tuple[str, ...], tmp_path: Path, chunk: tuple[str, ...]
) -> None:
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    main([*common, "--out", str(alone)])

    code = main(
        [*common, *chunk, "--batch", "--policy", "continuous", "--slots", "2",
         "--arrival-gap", "0.01", "--out", str(together)]
    )  # fmt: skip

    [batch] = read(together)
    assert code == 0
    assert batch.info.plan == BatchPlan(policy=Policy.CONTINUOUS, slots=2)
    assert [request.arrival_s for request in batch.requests] == [0.0, 0.01, 0.02]
    assert [output.token_ids for output in batch.outputs] == [
        trace.outputs[0].token_ids for trace in read(alone)
    ]


def test_prompts_padded_on_the_right_give_the_same_tokens(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    left, right = tmp_path / "left.json", tmp_path / "right.json"

    main([*common, "--batch", "--out", str(left)])
    main([*common, "--batch", "--padding", "right", "--out", str(right)])

    [one], [other] = read(left), read(right)
    assert other.info.plan.padding is Padding.RIGHT
    assert [output.token_ids for output in one.outputs] == [
        output.token_ids for output in other.outputs
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--slots", "2"), "add --batch"),
        (("--batch", "--slots", "0"), "a batch cannot have 0 slots; give 1 to 32"),
        (("--batch", "--arrival-gap", "-1"), "arrives at -1 s"),
        (("--batch", "--policy", "continuous", "--cache", "static"), "rows cannot come and go"),
    ],
    ids=["no batch", "no slots", "an arrival in the past", "a static cache"],
)
def test_a_plan_that_cannot_be_had_is_refused_in_one_line(
    common: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    out = tmp_path / "run.json"

    code = main([*common, *arguments, "--out", str(out)])

    assert code == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()


def test_the_prompt_that_is_too_long_is_named(
    common: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"

    code = main([*common, "--prompt", "x" * 4000, "--batch", "--out", str(out)])

    assert code == 2
    assert "prompt 4 of 4: prompt has" in capsys.readouterr().err
    assert not out.exists()
