"""Tests of inference/commands/prompts.py: files in the shapes that data sets really have."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.commands.prompts import read_prompts
from inference.records.errors import InputError

FILES = Path(__file__).parent / "prompt_files"
COUNTS = {
    "P01_sep_line.csv": 2,
    "P02_hf_to_json.json": 3,
    "P03_lone_surrogate.jsonl": 2,
    "P04_mt_bench_question.jsonl": 2,
    "P06_conversation_singular.jsonl": 2,
    "P09_sharegpt_dump.json": 4,
    "P12_trailing_separator.csv": 2,
    "P15_null_padded.jsonl": 2,
    "P16_messages_json_string.jsonl": 2,
    "P20_hand_edited.jsonl": 3,
    "P24_alpaca.jsonl": 2,
    "P25_oasst.jsonl": 1,
}


def printed(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, list[dict[str, object]]]:
    """Return what the command prints of a file."""
    assert main(["prompts", str(FILES / name), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", COUNTS)
def test_files_give_the_prompts_that_are_in_them(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(printed(capsys, name)["prompts"]) == COUNTS[name]


def test_every_file_has_its_count() -> None:
    assert {path.name for path in FILES.iterdir()} == set(COUNTS)


def test_a_half_character_is_left_out_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    (left,) = printed(capsys, "P03_lone_surrogate.jsonl")["left_out"]

    assert "lone surrogate" in str(left["reason"])


def test_the_first_of_several_turns_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    first = printed(capsys, "P04_mt_bench_question.jsonl")["prompts"][0]

    assert "first of 2 turns" in str(first["place"])


def test_a_records_system_text_is_its_system_turn(capsys: pytest.CaptureFixture[str]) -> None:
    prompts = printed(capsys, "P09_sharegpt_dump.json")["prompts"]

    first_turns = [one["turns"][0] for one in prompts if one["turns"]]  # type: ignore[index]
    assert any(role == "system" for role, _ in first_turns)


def test_a_chat_inside_a_string_is_read_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    first = printed(capsys, "P16_messages_json_string.jsonl")["prompts"][0]

    assert first["text"] == "Inside a string?"


def test_each_reason_has_its_own_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    left = printed(capsys, "P20_hand_edited.jsonl")["left_out"]

    assert len(left) == 3
    assert not any("in line 1" in str(one["reason"]) for one in left)


def test_a_file_that_cannot_be_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompts", str(FILES / "none.txt")]) == 2

    assert "cannot be read" in capsys.readouterr().err


def test_without_json_each_prompt_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompts", str(FILES / "P25_oasst.jsonl")]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 prompt, ")
    assert any("an answer, no prompt" in line for line in lines)


def test_run_takes_the_prompts_of_tables_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    read = [one.text for one in read_prompts(FILES / "P01_sep_line.csv")]

    assert read == ["What is a KV cache?", "Two; parts"]
    assert len(read_prompts(FILES / "P25_oasst.jsonl")) == 1
    assert "an answer, no prompt" in capsys.readouterr().err


def test_run_takes_conversations_with_their_turns() -> None:
    turned = [one for one in read_prompts(FILES / "P09_sharegpt_dump.json") if one.turns]

    assert "system" in {one.turns[0][0] for one in turned}


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-8", "\n"), ("utf-16", "\r\n"), ("cp1252", "\r"), ("utf-8-sig", "\n\n")],
)
def test_each_line_of_a_text_file_is_a_prompt(tmp_path: Path, encoding: str, end: str) -> None:
    path = tmp_path / "prompts.txt"
    path.write_bytes(end.join(["Où est-il ?", "Déjà vu\u2026", "Déjà vu\u2026"]).encode(encoding))

    read = [one.text for one in read_prompts(path)]

    assert read == ["Où est-il ?", "Déjà vu\u2026", "Déjà vu\u2026"]


def test_a_text_file_of_several_lines_is_said_to_be_read_by_lines_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")

    assert main(["prompts", str(path)]) == 0

    out = capsys.readouterr().out
    assert out.startswith("1 prompt, ")
    assert "`run --prompts` takes each line" in out


def test_nothing_to_read_is_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of a first line only gave no prompts, no word and exit code 0."""
    path = tmp_path / "header.csv"
    path.write_text("prompt\n", encoding="utf-8")

    assert main(["prompts", str(path), "--json"]) == 2

    said = capsys.readouterr()
    [left] = json.loads(said.out)["left_out"]
    assert "no row, line or element" in left["reason"]
    assert "no prompt could be read" in said.err


@pytest.mark.parametrize("name", ["a.yaml", "a.ndjson", "a.jsonl", "a.md", "prompts"])
def test_run_reads_what_prompts_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """YAML and .ndjson were refused by one of them and run line by line by the other."""
    path = tmp_path / name
    path.write_text('{"prompt": "Hi"}\n', encoding="utf-8")

    code = main(["prompts", str(path), "--json"])
    read = json.loads(capsys.readouterr().out)

    if code:
        with pytest.raises(InputError, match="files of this kind are not read"):
            read_prompts(path)
    else:
        assert [one.text for one in read_prompts(path)] == [one["text"] for one in read["prompts"]]
    assert (code == 2) == (name == "a.yaml")


def test_run_takes_a_column_that_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "no", "goal": "yes"}\n', encoding="utf-8")

    assert [one.text for one in read_prompts(path, column="goal")] == ["yes"]


def test_a_named_pipe_is_refused_and_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipe.json"
    os.mkfifo(path)

    assert main(["prompts", str(path)]) == 2

    assert "is a named pipe" in capsys.readouterr().err
