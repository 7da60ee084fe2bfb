"""`python -m inference run` on a tiny model: files, exit codes and one-line complaints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference.__main__ import main
from inference.records.attention import AttentionMap
from inference.records.options import CacheKind
from inference.records.steps import Phase
from inference.runs.known_tokens import RECAPTURED
from inference.runs.packed_attention import unpacked
from inference.runs.run_file import read


def run(*arguments: str) -> int:
    return main(["run", *arguments])


@pytest.fixture
def common(tiny_model_folder: Path) -> tuple[str, ...]:
    return ("--model", str(tiny_model_folder), "--dtype", "float64", "--max-new-tokens", "5")


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was said on standard error, which must be one line."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    return said.err


def test_a_run_writes_a_run_file_that_reads_back(common: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "run.json"

    code = run(*common, "--prompt", "the cache", "--out", str(out))

    [trace] = read(out)
    assert code == 0
    assert trace.requests[0].prompt_text == "the cache"
    assert len(trace.outputs[0].token_ids) == len(trace.events)
    assert [event.index for event in trace.events] == list(range(len(trace.events)))


def test_stdout_holds_the_json_and_nothing_else(
    common: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(*common, "--prompt", "the cache", "--out", "-")

    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == 0
    assert said["schema_version"] == 1
    assert said["outputs"][0]["token_ids"] == [
        event["rows"][0]["token_id"] for event in said["events"]
    ]


def test_several_prompts_make_a_list_and_with_batch_one_run(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    prompts = ("--prompt", "the cache", "--prompt", "decode reads the weights again")
    one_by_one, together = tmp_path / "list.json", tmp_path / "batch.json"

    run(*common, *prompts, "--out", str(one_by_one))
    run(*common, *prompts, "--batch", "--out", str(together))

    alone, [batch] = read(one_by_one), read(together)
    assert len(json.loads(one_by_one.read_text(encoding="utf-8"))) == 2
    assert [trace.outputs[0].token_ids for trace in alone] == [
        output.token_ids for output in batch.outputs
    ]


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    drawn: list[tuple[int, ...]] = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        out = tmp_path / f"{name}.json"
        options = ("--temperature", "1.5", "--top-k", "200", "--top-p", "0.99", "--seed", seed)
        run(*common, *options, "--prompt", "the", "--raw", "--out", str(out))
        drawn.append(read(out)[0].outputs[0].token_ids)

    assert drawn[0] == drawn[1] != drawn[2]


def test_the_attention_asked_for_is_in_the_run_file(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    traces = {}
    for kind in ("sdpa", "eager"):
        out = tmp_path / f"{kind}.json"
        assert run(*common, "--attention", kind, "--prompt", "the", "--out", str(out)) == 0
        [traces[kind]] = read(out)

    assert {kind: trace.info.attention for kind, trace in traces.items()} == {
        "sdpa": "sdpa",
        "eager": "eager",
    }
    assert traces["sdpa"].outputs == traces["eager"].outputs


def test_raw_leaves_the_chat_template_out(common: tuple[str, ...], tmp_path: Path) -> None:
    raw, templated = tmp_path / "raw.json", tmp_path / "templated.json"

    run(*common, "--prompt", "the cache", "--raw", "--out", str(raw))
    run(*common, "--prompt", "the cache", "--out", str(templated))

    assert len(read(raw)[0].requests[0].prompt_ids) < len(read(templated)[0].requests[0].prompt_ids)


def test_prompts_come_from_a_file_one_a_line(common: tuple[str, ...], tmp_path: Path) -> None:
    prompts, out = tmp_path / "prompts.txt", tmp_path / "out.json"
    prompts.write_text("the cache\n\ndecode 日本語\n", encoding="utf-8")

    code = run(*common, "--prompts", str(prompts), "--out", str(out))

    assert code == 0
    assert [trace.requests[0].prompt_text for trace in read(out)] == ["the cache", "decode 日本語"]


def test_prompts_of_a_file_may_be_conversations(common: tuple[str, ...], tmp_path: Path) -> None:
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "out.json"
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "the cache"},
        {"role": "assistant", "content": "keys"},
    ]
    lines = [{"messages": turns}, {"prompt": "the cache"}]
    prompts.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")

    code = run(*common, "--prompts", str(prompts), "--out", str(out))

    assert code == 0
    [talk], [plain] = (trace.requests for trace in read(out))
    assert talk.prompt_text == "system: Be brief.\n\nuser: the cache"
    assert plain.prompt_text == "the cache"
    assert len(talk.prompt_ids) > len(plain.prompt_ids)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a\x00\x01bad", "it is binary"), (b"\n \n", "it is empty"), (b"PK\x03\x04", "a ZIP")],
    ids=["binary", "blank", "archive"],
)
def test_a_prompt_file_that_cannot_be_used_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_bytes(content)

    code = run("--prompts", str(prompts), "--out", str(tmp_path / "out.json"))

    assert code == 2
    assert said in complaint(capsys)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prompt", ""), "the prompt is empty"),
        (("--prompt", "x", "--max-new-tokens", "0"), "maximum new tokens is 0"),
        (("--prompt", "x", "--split-every", "0"), "split every 0 steps"),
        (("--prompt", "x", "--temperature", "-1"), "temperature is -1"),
        (("--prompt", "x", "--top-p", "2"), "top-p is 2"),
        (("--prompt", "x", "--top-k", "0"), "top-k is 0"),
        (("--prompts", "missing.txt"), "missing.txt cannot be read"),
        (("--prompt", "x", "--dtype", "float3"), "float3"),
        (("--prompt", "x", "--device", "abacus"), "abacus"),
        (("--prompt", "x", "--model", "/no/such/folder"), "/no/such/folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    code = run(*arguments, "--out", str(tmp_path / "out.json"))

    assert code == 2
    assert said in complaint(capsys).splitlines()[-1]
    assert not (tmp_path / "out.json").exists()


def test_a_destination_that_cannot_be_written_is_said_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("--prompt", "x", "--out", str(tmp_path / "missing" / "out.json"))

    assert code == 2
    assert "does not exist" in complaint(capsys)


def test_a_prompt_longer_than_the_context_is_one_line(
    common: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(*common, "--prompt", "word " * 500, "--out", str(tmp_path / "out.json"))

    assert code == 2
    assert "the model takes 128" in capsys.readouterr().err.splitlines()[-1]


def test_chunks_and_caches_choose_the_tokens_of_a_plain_run(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    plain, other = tmp_path / "plain.json", tmp_path / "other.json"
    prompt = ("--prompt", "decode reads the weights again and again")

    run(*common, *prompt, "--out", str(plain))
    run(*common, *prompt, "--chunk", "4", "--cache", "static", "--out", str(other))

    [whole], [chunked] = read(plain), read(other)
    prompt_tokens = len(whole.requests[0].prompt_ids)
    prefills = [event for event in chunked.events if event.phase is Phase.PREFILL]
    assert chunked.outputs[0].token_ids == whole.outputs[0].token_ids
    assert [event.query_tokens for event in prefills[:-1]] == [4] * (len(prefills) - 1)
    assert sum(event.query_tokens for event in prefills) == prompt_tokens
    assert chunked.info.chunk_tokens == 4
    assert chunked.info.cache is CacheKind.STATIC


def test_parts_of_a_step_are_timed_only_where_it_is_asked_for(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    usual, split = tmp_path / "usual.json", tmp_path / "split.json"

    run(*common, "--prompt", "the cache", "--out", str(usual))
    run(*common, "--prompt", "the cache", "--split-every", "2", "--out", str(split))

    [whole], [parted] = read(usual), read(split)
    assert not any(event.observed or event.parts for event in whole.events)
    assert [event.observed for event in parted.events] == [True, False, True, False, True]
    assert parted.outputs == whole.outputs


def test_a_run_that_fails_before_its_first_step_leaves_no_file(
    common: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    option = ("--batch", "--policy", "continuous", "--cache", "static")

    code = run(*common, *option, "--prompt", "the cache", "--out", str(out))

    assert code == 2
    assert "rows cannot come and go" in capsys.readouterr().err.splitlines()[-1]
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--chunk", "0"), "a prefill chunk of 0 tokens"),
        (("--chunk", "4096"), "a prefill chunk of 4,096 tokens is longer than the prompt"),
        (("--cache", "paged"), "invalid choice"),
    ],
    ids=["chunk of 0", "chunk longer than the prompt", "unknown cache"],
)
def test_a_chunk_or_cache_that_cannot_be_is_bad_input(
    common: tuple[str, ...], capsys: pytest.CaptureFixture[str], option: tuple[str, ...], said: str
) -> None:
    try:
        code = run(*common, *option, "--prompt", "a", "--out", "-")
    except SystemExit as ended:
        code = int(str(ended.code))

    assert code == 2
    assert said in capsys.readouterr().err


def test_captured_layers_are_kept_in_the_run_file(common: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "run.json.gz"

    code = run(
        *common, "--prompt", "the cache", "--prompt", "a row", "--batch",
        "--capture", "1:all", "--capture", "0", "--capture", "0:2", "--out", str(out),
    )  # fmt: skip

    [trace] = read(out)
    asked = [(one.choice.layer, one.choice.head, one.choice.slot) for one in trace.attention]
    assert code == 0
    assert asked == [(1, None, 0), (1, None, 1), (0, None, 0), (0, None, 1), (0, 2, 0), (0, 2, 1)]
    for one in trace.attention:
        fed = len(trace.requests[one.choice.slot].prompt_ids) + 4
        rows = [cell for map_ in unpacked(one) for cell in sums(map_)]
        assert len(rows) == fed
        assert rows == pytest.approx([1.0] * fed, abs=2e-3)
        assert one.note == RECAPTURED


def sums(captured: AttentionMap) -> list[float]:
    """Return what each query gave in all, of the first head."""
    assert captured.weights is not None, captured.reason
    return captured.weights[0].astype(float).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("x", "names no layer"),
        ("1:x", "names no layer"),
        ("-1", "names no layer"),
        ("7", "there is no layer 7"),
        ("1:99", "there is no head 99"),
    ],
)
def test_a_layer_that_is_not_there_is_refused(
    common: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    asked: str,
    said: str,
) -> None:
    code = run(*common, "--prompt", "x", f"--capture={asked}", "--out", str(tmp_path / "a.json"))

    assert code == 2
    assert said in capsys.readouterr().err


def test_a_link_given_as_out_is_followed_and_kept(common: tuple[str, ...], tmp_path: Path) -> None:
    link, target = tmp_path / "link.json", tmp_path / "target.json"
    link.symlink_to(target)

    run(*common, "--prompt", "the cache", "--out", str(link))

    assert link.is_symlink()
    assert read(target)[0].requests[0].prompt_text == "the cache"


def test_more_prompts_than_a_batch_has_rows_run_one_by_one(
    common: tuple[str, ...], tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the cache\n" * 33, encoding="utf-8")
    out = tmp_path / "runs.json"

    code = run(*common[:-1], "1", "--prompts", str(prompts), "--out", str(out))

    assert code == 0
    assert len(read(out)) == 33


def test_more_prompts_than_a_batch_has_rows_are_no_batch(
    common: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the cache\n" * 33, encoding="utf-8")

    code = run(*common, "--batch", "--prompts", str(prompts), "--out", str(tmp_path / "run.json"))

    assert code == 2
    assert "33 prompts in one batch; give 32 or fewer" in complaint(capsys)
