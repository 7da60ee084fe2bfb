"""Prompt files of every kind: what is read, what is left out and why, and what bad input says."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference.prompts.prompt_files import (
    BLANK_LINE,
    MAX_BYTES,
    MAX_PROMPTS,
    Upload,
    Uploads,
    UploadSettings,
    columns_of,
    grouped,
    read_uploads,
)

PLAIN = UploadSettings()


def read(name: str, content: bytes | str, settings: UploadSettings = PLAIN) -> Uploads:
    raw = content.encode() if isinstance(content, str) else content
    return read_uploads([Upload(name=name, content=raw)], settings)


def texts(uploads: Uploads) -> list[str]:
    return [prompt.text for prompt in uploads.prompts]


def reason(uploads: Uploads) -> str:
    """Return the one reason why something was left out."""
    [left_out] = uploads.left_out
    return left_out.reason


def parquet(columns: dict[str, list[object]]) -> bytes:
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["a.txt", "a.md", "A.TXT"])
def test_a_text_file_is_one_prompt(name: str) -> None:
    assert texts(read(name, "Why?\n\nBecause.\n")) == ["Why?\n\nBecause."]


def test_a_separator_parts_a_text_file_into_many() -> None:
    by_lines = UploadSettings(separator="\n---\n")
    by_blanks = UploadSettings(separator=BLANK_LINE)

    assert texts(read("a.txt", "one\r\n---\r\ntwo\n\nlines", by_lines)) == ["one", "two\n\nlines"]
    assert texts(read("a.txt", "one\n\ntwo", by_blanks)) == ["one", "two"]
    assert "the separator --- does not occur" in read("a.txt", "one", by_lines).notes[0]


def test_pasted_text_brings_a_separator_that_a_chosen_one_overrules() -> None:
    pasted = Upload(name="pasted.txt", content=b"one\n\ntwo\n---\nthree", separator=BLANK_LINE)

    by_blanks = read_uploads([pasted], UploadSettings())
    by_lines = read_uploads([pasted], UploadSettings(separator="\n---\n"))

    assert texts(by_blanks) == ["one", "two\n---\nthree"]
    assert texts(by_lines) == ["one\n\ntwo", "three"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,prompt\n1,"with ""quotes"", commas\nand a line"\n2,second\n'),
        ("a.csv", 'id;prompt\n1;"with ""quotes"", commas\nand a line"\n2;second\n'),
        ("a.tsv", 'id\tprompt\n1\t"with ""quotes"", commas\nand a line"\n2\tsecond\n'),
        ("a.csv", '\ufeffPrompt,id\r\n"with ""quotes"", commas\nand a line",1\r\nsecond,2\r\n'),
    ],
    ids=["commas", "semicolons", "tabs", "mark and other case"],
)
def test_a_table_gives_its_prompt_column(name: str, content: str) -> None:
    assert texts(read(name, content)) == ['with "quotes", commas\nand a line', "second"]


def test_a_column_can_be_chosen() -> None:
    content = "question,answer\nq1,a1\nq2,a2\n"

    assert columns_of(Upload(name="a.csv", content=content.encode()), PLAIN) == (
        "question",
        "answer",
    )
    assert texts(read("a.csv", content, UploadSettings(column="answer"))) == ["a1", "a2"]


def test_a_csv_without_a_header_says_what_to_do_and_can_be_read() -> None:
    content = "Why is the sky blue?,1\nWhy is grass green?,2\n"
    settings = UploadSettings(has_header=False, column="column 1")

    assert "no column prompt; its columns are Why is the sky blue?" in reason(
        read("a.csv", content)
    )
    assert texts(read("a.csv", content, settings)) == [
        "Why is the sky blue?",
        "Why is grass green?",
    ]


def test_one_column_without_a_header_is_read_whether_it_is_said_or_not() -> None:
    content = "Why is the sky blue?\nWhy is grass green?\n"

    said = read("a.csv", content, UploadSettings(has_header=False))

    assert texts(said) == texts(read("a.csv", content)) == content.splitlines()
    assert said.notes == ()


def test_rows_of_another_length_are_left_out_by_their_number() -> None:
    uploads = read("a.csv", "id,prompt\n1,one\n2\n3,three\n")

    assert texts(uploads) == ["one", "three"]
    assert [(one.place, one.reason) for one in uploads.left_out] == [
        ("row 2", "it has 1 field where the first row has 2")
    ]


def test_an_open_quote_names_the_line() -> None:
    assert "no proper CSV" in reason(read("a.csv", 'prompt\n"one\ntwo\n'))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('["one", "two"]', ["one", "two"]),
        ('"one"', ["one"]),
        ('{"prompt": "one"}', ["one"]),
        ('[{"prompt": "one"}, {"text": "two"}]', ["one", "two"]),
        ('{"data": [{"prompt": "one"}]}', ["one"]),
        ('[{"role": "user", "content": "one"}]', ["one"]),
        ('{"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}]}]}', ["one"]),
    ],
    ids=["strings", "a string", "an object", "prompt and text", "in data", "a chat", "parts"],
)
def test_json_of_every_form_gives_its_prompts(content: str, expected: list[str]) -> None:
    assert texts(read("a.json", content)) == expected


def test_a_conversation_keeps_its_turns_up_to_the_last_question() -> None:
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because."},
    ]
    share = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}

    [first, second] = read(
        "a.jsonl", f"{json.dumps({'messages': chat})}\n{json.dumps(share)}"
    ).prompts

    assert first.turns == (
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Why?"),
    )
    assert (second.text, second.turns) == ("Hi", ())


def test_a_bad_line_leaves_the_others_alone() -> None:
    uploads = read("a.jsonl", '{"prompt": "one"}\n{"prompt": \n\n{"other": 1}\n"four"\n')

    assert texts(uploads) == ["one", "four"]
    assert [one.place for one in uploads.left_out] == ["line 2", "line 4"]
    assert "not valid JSON" in uploads.left_out[0].reason
    assert "none of prompt, text, messages, conversations; it has other" in (
        uploads.left_out[1].reason
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"messages": [{"role": "robot", "content": "x"}]}, "unknown role 'robot'"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "no turn of a user"),
        ({"messages": [{"content": "x"}]}, "turn 1 of its conversation has no role"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "other than text"),
        ({"messages": [{"role": "user", "content": 1}]}, "holds a number, no text"),
        ({"prompt": 5}, "its prompt is a number"),
        (5, "it is a number"),
    ],
)
def test_what_is_no_prompt_in_json_is_named(value: object, sentence: str) -> None:
    assert sentence in reason(read("a.json", json.dumps([value])))


def test_deep_json_is_a_sentence() -> None:
    assert "nested too deep" in reason(read("a.json", "[" * 200_000 + "]" * 200_000))


def test_parquet_gives_text_and_chats() -> None:
    chats = [[{"role": "user", "content": "Hi"}], None]

    assert texts(read("a.parquet", parquet({"prompt": ["one", "two"]}))) == ["one", "two"]
    assert texts(read("a.parquet", parquet({"messages": chats}))) == ["Hi"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (parquet({"prompt": [{"a": 1}]}), "its column prompt holds struct<a: int64>, no text"),
        (parquet({"prompt": [1, 2]}), "holds int64, no text"),
        (parquet({"prompt": [["a"]]}), "no text"),
        (parquet({"other": ["a"]}), "no column prompt; its columns are other"),
        (b"PAR1 and nothing after", "no Parquet file or damaged"),
        (parquet({"prompt": ["one"] * 100})[:-30] + b"x" * 30, "damaged"),
    ],
    ids=["nested", "numbers", "lists of text", "no column", "no table", "damaged"],
)
def test_parquet_of_no_use_is_a_sentence(content: bytes, sentence: str) -> None:
    assert sentence in reason(read("a.parquet", content))


@pytest.mark.parametrize(
    ("encoding", "note"),
    [("utf-8-sig", ""), ("utf-16", ""), ("utf-16-le", "UTF-16"), ("cp1252", "not UTF-8; read as")],
)
def test_any_encoding_that_can_be_recognised_is_read(encoding: str, note: str) -> None:
    text = "Où est la bibliothèque ? Là-bas, à côté de l'école, près du café où l'été dernier…"

    uploads = read("a.txt", text.encode(encoding))

    assert texts(uploads) == [text]
    assert note in "".join(uploads.notes)
    assert bool(uploads.notes) == bool(note)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"PK\x03\x04rest", "a ZIP archive or an Office document, whatever its name"),
        ("a.csv", b"\x1f\x8brest", "a gzip archive"),
        ("a.txt", b"text\x00\x01\x02 and more of it", "binary"),
        ("a.txt", b"\xff\xfea\xd8", "UTF-16"),
        ("a.txt", b"", "empty; choose another file"),
        ("a.csv", b" \n\n ", "empty"),
        ("a.json", b"[1, 2", "not valid JSON"),
        ("a.json", b"3", "it holds a number where a list of prompts was expected"),
        ("a.exe", b"text", "give one of .txt, .md, .csv"),
        ("a.log", b"text", "give one of .txt"),
        ("a.txt", b"   ", "empty"),
    ],
)
def test_a_file_of_no_use_is_a_sentence(name: str, content: bytes, sentence: str) -> None:
    uploads = read(name, content)

    assert uploads.prompts == ()
    assert sentence in reason(uploads)


def test_a_file_of_a_hundred_megabytes_is_a_sentence() -> None:
    assert "more than 50 MiB, which is the most" in reason(read("a.txt", b"x" * (2 * MAX_BYTES)))


def test_ten_thousand_prompts_are_read_and_no_more() -> None:
    content = "prompt\n" + "".join(f"prompt {number}\n" for number in range(MAX_PROMPTS + 5))

    uploads = read("a.csv", content)

    assert len(uploads.prompts) == MAX_PROMPTS
    assert grouped(uploads.left_out) == (
        ("a.csv", "10,000 prompts are read at most, and these are enough", 5),
    )


def test_duplicates_and_empty_rows_are_left_out_over_all_files() -> None:
    files = [
        Upload(name="a.csv", content=b'prompt,n\none,1\n"",2\none,3\n'),
        Upload(name="b.txt", content=b"one"),
        Upload(name="c.txt", content=b"two"),
    ]

    uploads = read_uploads(files, PLAIN)

    assert texts(uploads) == ["one", "two"]
    assert [(one.source, one.place, one.reason) for one in uploads.left_out] == [
        ("a.csv", "row 2", "it is empty"),
        ("a.csv", "row 3", "it is the same as prompt 1"),
        ("b.txt", "whole", "it is the same as prompt 1"),
    ]


def test_a_file_that_cannot_be_read_leaves_the_others_alone() -> None:
    files = [
        Upload(name="../../a.zip", content=b"PK\x03\x04"),
        Upload(name="b.txt", content=b"two"),
    ]

    uploads = read_uploads(files, PLAIN)

    assert texts(uploads) == ["two"]
    assert uploads.left_out[0].source == "../../a.zip"
    assert columns_of(files[0], PLAIN) == columns_of(files[1], PLAIN) == ()
