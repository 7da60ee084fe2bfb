"""Prompt files in the shapes that data sets and spreadsheets have, each with its right values."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference.prompts import parquet_rows
from inference.prompts.parquet_pages import page_sizes
from inference.prompts.prompt_files import Upload, Uploads, UploadSettings, read_uploads
from inference.records.errors import InputError

QUESTIONS = ["What is a token?", "What is a batch?"]
FRAME = pd.DataFrame({"id": [7, 8], "prompt": QUESTIONS})
CHAT = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": "Because."},
]
CHAT_TURNS = (("user", "Hi"), ("assistant", "Hello"), ("user", "Why?"))


def read(name: str, content: bytes | str, settings: UploadSettings | None = None) -> Uploads:
    raw = content.encode() if isinstance(content, str) else content
    return read_uploads([Upload(name=name, content=raw)], settings or UploadSettings())


def record(value: object) -> Uploads:
    """Return what is read of one record, as a line of JSON Lines."""
    return read("a.jsonl", json.dumps(value))


def texts(uploads: Uploads) -> list[str]:
    return [prompt.text for prompt in uploads.prompts]


@pytest.mark.parametrize("orient", ["records", "split", "index", "columns", "table"])
def test_tables_that_pandas_writes_as_json_are_read_by_rows(orient: str) -> None:
    uploads = read("a.json", FRAME.to_json(orient=orient))  # type: ignore[call-overload]

    assert texts(uploads) == QUESTIONS
    assert [one.place for one in uploads.prompts] == ["item 1", "item 2"]
    assert uploads.left_out == ()
    assert all(f"orient='{orient}'" in note for note in uploads.notes)


def test_rows_without_names_are_left_out_by_the_name_of_their_orient() -> None:
    uploads = read("a.json", FRAME.assign(more="x").to_json(orient="values"))

    assert uploads.prompts == ()
    assert [one.place for one in uploads.left_out] == ["item 1", "item 2"]
    assert all("orient='values'" in one.reason for one in uploads.left_out)


def test_rows_without_names_that_hold_one_text_are_read() -> None:
    assert texts(read("a.json", FRAME.to_json(orient="values"))) == QUESTIONS


def test_columns_as_lists_are_read_by_rows() -> None:
    assert texts(read("a.json", json.dumps(FRAME.to_dict(orient="list")))) == QUESTIONS


def test_a_table_written_into_a_string_is_read() -> None:
    uploads = read("a.json", json.dumps(FRAME.to_json(orient="records")))

    assert texts(uploads) == QUESTIONS
    assert "JSON inside a string" in uploads.notes[0]


def test_requests_of_a_batch_file_are_read_from_their_body() -> None:
    request = {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions"}

    chats = record({**request, "body": {"model": "m", "messages": CHAT}})
    completions = record({**request, "body": {"model": "m", "prompt": "Why?"}})
    responses = record({**request, "body": {"model": "m", "input": "Why?"}})

    assert chats.prompts[0].turns == CHAT_TURNS
    assert texts(completions) == texts(responses) == ["Why?"]


@pytest.mark.parametrize("key", ["data", "conversation", "conversations", "dialogue"])
def test_texts_in_turn_are_a_conversation_up_to_the_last_question(key: str) -> None:
    uploads = record({"id": "0", key: ["Hi", "Hello", "Why?", "Because."]})

    assert uploads.prompts[0].turns == CHAT_TURNS


def test_data_is_a_list_of_prompts_around_a_file_and_turns_in_a_record() -> None:
    around = read("a.json", json.dumps({"data": QUESTIONS}))
    inside = read("a.json", json.dumps({"id": "0", "data": ["Hi", "Hello"]}))
    listed = read("a.json", json.dumps([{"id": "0", "data": ["Hi", "Hello"]}]))

    assert texts(around) == QUESTIONS
    assert texts(inside) == texts(listed) == ["Hi"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"conversation": CHAT[:2]}, "Hi"),
        ({"conversations": [{"from": "human", "value": "Hi", "role": None}]}, "Hi"),
        ({"conversation": [{"human": "Hi", "assistant": "Hello"}]}, "Hi"),
        ({"turns": ["Hi", "And now?"]}, "Hi"),
        ({"turns": [{"role": "user", "content": "Hi"}]}, "Hi"),
        ({"instruction": "Sum up.", "input": "A text.", "output": "x"}, "Sum up.\n\nA text."),
        ({"instruction": "Sum up.", "context": "A text.", "response": "x"}, "Sum up.\n\nA text."),
        ({"instruction": "Hi", "input": "  "}, "Hi"),
        ({"question": "Hi", "answer": "x"}, "Hi"),
        ({"query": "Hi"}, "Hi"),
        ({"input": "Hi", "target": "x"}, "Hi"),
        ({"prompt": {"text": "Hi", "role": "prompter", "replies": []}}, "Hi"),
        ({"role": "user", "content": "Hi"}, "Hi"),
        ({"messages": json.dumps(CHAT[:1])}, "Hi"),
        ({"prompt": json.dumps(CHAT[:1])}, "Hi"),
        ({"messages": str(CHAT[:1])}, "Hi"),
        (json.dumps({"prompt": "Hi"}), "Hi"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}, "Hi"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_record_of_any_usual_form_gives_its_prompt(value: object, text: str) -> None:
    uploads = record(value)

    assert texts(uploads) == [text]
    assert uploads.prompts[0].turns == ()


def test_a_text_that_only_looks_like_json_stays_as_it_is() -> None:
    values = ["[1, 2] is a list", "{not json}", '{"a": 1}', "[see below]"]

    assert texts(read("a.json", json.dumps(values))) == values
    assert texts(record({"prompt": '{"question": "Fix this"}'})) == ['{"question": "Fix this"}']


@pytest.mark.parametrize(
    ("value", "turns"),
    [
        ({"system": "Be brief.", "prompt": "Hi"}, (("system", "Be brief."), ("user", "Hi"))),
        ({"system_prompt": "Be brief.", "question": "Hi"},
         (("system", "Be brief."), ("user", "Hi"))),
        ({"system": "", "prompt": "Hi"}, ()),
        ({"system": "no", "messages": [{"role": "system", "content": "yes"}, *CHAT[:1]]},
         (("system", "yes"), ("user", "Hi"))),
        ({"system": "Be brief.", "conversations": ["Hi", "Hello"]},
         (("system", "Be brief."), ("user", "Hi"))),
        ({"instruction": "Why?", "input": "", "history": [["Hi", "Hello"]]}, CHAT_TURNS),
    ],
    ids=["prompt", "question", "empty", "its own", "in turn", "history"],
)  # fmt: skip
def test_what_stands_beside_a_prompt_becomes_its_turns(
    value: object, turns: tuple[tuple[str, str], ...]
) -> None:
    assert record(value).prompts[0].turns == turns


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"messages": [*CHAT[:1], {"role": "tool", "content": "4"}, *CHAT[2:]]}, "role 'tool'"),
        ({"messages": [*CHAT[:1], {"role": "assistant", "content": None, "tool_calls": [1]},
                       *CHAT[2:]]}, "turn 2 of its conversation calls a tool (tool_calls)"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         "something other than text (image_url)"),
        ({"text": "4", "role": "assistant", "parent_id": "1"}, "its role is assistant: it is an"),
        ({"content": "Be brief.", "role": "system"}, "its role is system: it is no prompt"),
        (["one", "two"], "a list of 2 values without names"),
        ({"prompt": "\ud83d"}, "lone surrogate"),
        ({"messages": [{"role": "user", "content": "\ud83d"}]}, "lone surrogate"),
        ({"system": "\ud83d", "prompt": "Hi"}, "lone surrogate"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_prompt_is_left_out_by_name(value: object, words: str) -> None:
    uploads = record(value)

    assert uploads.prompts == ()
    assert words in uploads.left_out[0].reason


def test_tools_after_the_last_question_do_not_matter() -> None:
    tools = [
        {"role": "assistant", "content": None, "tool_calls": [1]},
        {"role": "tool", "content": ""},
    ]

    assert texts(record({"messages": [*CHAT[:1], *tools]})) == ["Hi"]


def test_a_key_with_half_a_character_does_not_break_the_reason() -> None:
    [left] = record({"\ud83d": 1}).left_out

    left.reason.encode()


def test_rows_of_a_tree_are_prompts_where_an_asker_wrote_them() -> None:
    rows = [
        {"message_id": "1", "parent_id": None, "role": "prompter", "text": "Hi"},
        {"message_id": "2", "parent_id": "1", "role": "assistant", "text": "Hello"},
        {"message_id": "3", "parent_id": "2", "role": "prompter", "text": "Why?"},
    ]
    with_content = [{**row, "content": row["text"], "text": None} for row in rows]
    table = pd.DataFrame(rows)

    files = {
        "a.jsonl": "\n".join(json.dumps(row) for row in rows),
        "a.json": json.dumps(with_content),
        "a.csv": table.to_csv(index=False),
    }
    for name, content in files.items():
        uploads = read(name, content)
        assert texts(uploads) == ["Hi", "Why?"], name
        assert uploads.prompts[1].place.endswith("without the turns before it"), name
        assert ["an answer" in one.reason for one in uploads.left_out] == [True], name


def test_a_choice_that_drops_something_says_so() -> None:
    [squad] = record({"context": "A text.", "question": "Why?"}).prompts
    [turns] = record({"turns": ["Hi", "And now?"]}).prompts
    both = read("a.csv", "prompt,text\nHi,Hello\n")

    assert squad.place == "line 1, without its context"
    assert turns.place == "line 1, first of 2 turns"
    assert "its column prompt is read, and text is not" in both.notes[0]


@pytest.mark.parametrize(
    ("value", "dropped"),
    [
        ({"prompt": "Hi", "messages": CHAT}, "without its messages"),
        ({"text": "Hi", "messages": CHAT}, "without its messages"),
        ({"prompt": "Hi", "text": "Hello"}, "without its text"),
        ({"prompt": "Hi", "instruction": "Hello"}, "without its instruction"),
        ({"prompt": "Hi", "input": "A text."}, "without its input"),
        ({"prompt": "Hi", "history": "earlier"}, "without its history"),
        ({"messages": CHAT[:1], "history": [["a", "b"]]}, "without its history"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_a_record_holds_beside_its_prompt_is_read_or_named(
    value: dict[str, object], dropped: str
) -> None:
    """JSON dropped a chat beside a prompt without a word, and so did tables an input."""
    [one] = record(value).prompts

    assert one.place == f"line 1, {dropped}"
    assert record({**value, dropped.rpartition(" ")[2]: None}).prompts[0].place == "line 1"


def test_tables_have_history_and_roles_as_text() -> None:
    history = read("a.csv", 'prompt,history\nWhy?,"[[""Hi"",""Hello""]]"\n')
    beside = read("a.csv", "prompt,input\nDo,this\n")
    [left] = read("a.csv", "prompt,role\nDone,assistant\n").left_out

    assert history.prompts[0].turns == CHAT_TURNS
    assert beside.prompts[0].place == "row 1, without its input"
    assert "its role is assistant" in left.reason


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ndjson"])
@pytest.mark.parametrize(
    "content",
    ['{"prompt":"a"}{"prompt":"b"}', '{"prompt":"a"}\n{"prompt":"b"} {"prompt":"c"}',
     '{\n "prompt": "a"\n}\n{\n "prompt": "b"\n}\n', '"a" "b"'],
    ids=["together", "lines and together", "as jq prints", "texts"],
)  # fmt: skip
def test_values_one_after_another_are_read(name: str, content: str) -> None:
    uploads = read(name, content)

    assert texts(uploads) == ["a", "b", "c"][: content.count("prompt") or 2]
    assert uploads.left_out == ()


def test_a_line_of_json_lines_needs_no_other() -> None:
    assert read("a.jsonl", '{"prompt": "a"}').notes == ()
    pretty = read("a.jsonl", '{\n "prompt": "a"\n}')
    assert texts(pretty) == ["a"]
    assert "it holds one JSON value and not one value a line" in pretty.notes[0]


def test_several_texts_as_a_prompt_are_several_prompts() -> None:
    uploads = record({"body": {"model": "m", "prompt": ["Hi", "Why?"]}})

    assert texts(uploads) == texts(record({"prompt": ["Hi", "Why?"]})) == ["Hi", "Why?"]
    assert uploads.prompts[1].place == "line 1, prompt 2 of 2"


def test_keys_are_found_in_any_case_as_columns_are() -> None:
    values = [{"Prompt": "Hi", "System": "Be brief."}, {"GOAL": "Hi"}, {"Messages": CHAT}]

    assert record(values[0]).prompts[0].turns == (("system", "Be brief."), ("user", "Hi"))
    chosen = read("a.jsonl", json.dumps(values[1]), UploadSettings(column="goal"))
    assert texts(chosen) == ["Hi"]
    assert read("a.json", json.dumps({"Data": [values[2]]})).prompts[0].turns == CHAT_TURNS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"messages": null}', "its messages holds nothing (null)"),
        ('{"goal": "x"}', "(--column)"),
        ('{"prompt": ' + "1" * 10_000 + "}", "a number of more than 4,300 digits"),
    ],
    ids=["null", "another key", "a long number"],
)
def test_refusals_say_what_is_there_and_what_to_do(content: str, words: str) -> None:
    [left] = read("a.jsonl", content).left_out

    assert words in left.reason
    assert "it has none of prompt, text, messages" not in left.reason or "goal" in left.reason


@pytest.mark.parametrize("content", ["[]", '{"data": []}', "prompt,id\n"])
def test_a_file_of_no_entry_says_so(content: str) -> None:
    [left] = read("a.csv" if "," in content else "a.json", content).left_out

    assert "no row, line or element" in left.reason


def test_what_ends_every_row_of_one_column_is_no_text() -> None:
    assert texts(read("a.csv", "prompt\nHello;\nBye;\n")) == ["Hello", "Bye"]
    assert texts(read("a.csv", "prompt\nint x;\nWhy?\n")) == ["int x;", "Why?"]


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.csv", ["id;prompt", "7;What is a token?", "8;What is a batch?"]),
        ("a.csv", ["sep=;", "id;prompt", "7;What is a token?", "8;What is a batch?"]),
        ("a.tsv", ["id\tprompt", "7\tWhat is a token?", "8\tWhat is a batch?"]),
        ("a.jsonl", ['{"prompt": "What is a token?"}', '{"prompt": "What is a batch?"}']),
    ],
    ids=["semicolons", "sep", "tabs", "lines"],
)
def test_lines_end_in_any_of_three_ways(name: str, lines: list[str], end: str) -> None:
    assert texts(read(name, end.join(lines) + end)) == QUESTIONS


def test_a_text_with_carriage_returns_alone_is_split_at_blank_lines() -> None:
    uploads = read("a.txt", "one\r\rtwo\rlines", UploadSettings(separator="\n\n"))

    assert texts(uploads) == ["one", "two\nlines"]


@pytest.mark.parametrize(
    "content",
    [
        "id,prompt\n7,What is a token?,\n8,What is a batch?,,,\n",
        "id,prompt,\n7,What is a token?,\n8,What is a batch?,\n",
        "id;prompt;;\n7;What is a token?;;\n8;What is a batch?\n",
        "prompt;\nWhat is a token?;\nWhat is a batch?;\n",
        'prompt\n"What is a token?",\n"What is a batch?",\n',
    ],
    ids=["rows", "both", "many", "one column", "quoted"],
)
def test_delimiters_at_the_end_of_rows_make_no_columns(content: str) -> None:
    uploads = read("a.csv", content)

    assert texts(uploads) == QUESTIONS
    assert uploads.left_out == ()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize(
    ("content", "expected", "note"),
    [
        ("prompt\nWhy, then?\nSo; what\n", ["Why, then?", "So; what"], ""),
        ("Frage\nWarum?\nWozu?\n", ["Warum?", "Wozu?"], "the name of its one column"),
        ("Why?\nWhat for?\n", ["Why?", "What for?"], "its first line is read as a prompt too"),
        ('"Why, then?"\n"So?"\n', ["Why, then?", "So?"], "its first line is read as a prompt"),
    ],
    ids=["named", "another name", "no name", "quoted"],
)
def test_a_single_column_is_read(name: str, content: str, expected: list[str], note: str) -> None:
    uploads = read(name, content)

    assert texts(uploads) == expected
    assert note in "".join(uploads.notes)
    assert bool(uploads.notes) == bool(note)


def test_rows_of_a_table_are_read_as_records() -> None:
    chats = pd.DataFrame({"messages": [json.dumps(CHAT), str(CHAT[:1])], "n": [1, 2]})
    alpaca = pd.DataFrame({"instruction": ["Sum up."], "input": ["A text."], "output": ["x"]})

    read_chats = read("a.csv", chats.to_csv(index=False)).prompts

    assert [one.turns for one in read_chats] == [CHAT_TURNS, ()]
    assert texts(read("a.csv", alpaca.to_csv(index=False))) == ["Sum up.\n\nA text."]


def test_chats_in_cells_are_read_as_numpy_prints_them_or_left_out() -> None:
    printed = str(CHAT[:3]).replace("}, {", "}\n {")
    table = pd.DataFrame({"messages": [printed, printed[:-20], "plain text"]})

    uploads = read("a.csv", table.to_csv(index=False))

    assert uploads.prompts[0].turns == CHAT_TURNS
    assert uploads.prompts[1].text == "plain text"
    [left] = uploads.left_out
    assert "begin like a list" in left.reason


def parquet(columns: Any, **settings: Any) -> bytes:  # noqa: ANN401  pyarrow is not typed
    sink = pa.BufferOutputStream()
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, sink, **settings)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("columns", "turns"),
    [
        ({"messages": [CHAT]}, CHAT_TURNS),
        ({"data": [["Hi", "Hello", "Why?", "Because."]]}, CHAT_TURNS),
        ({"system": ["Be brief."], "prompt": ["Hi"]}, (("system", "Be brief."), ("user", "Hi"))),
        ({"instruction": ["Why?"], "input": [None], "history": [[["Hi", "Hello"]]]}, CHAT_TURNS),
    ],
    ids=["messages", "in turn", "system", "history"],
)
def test_columns_of_parquet_are_read_as_records(
    columns: dict[str, Any], turns: tuple[tuple[str, str], ...]
) -> None:
    assert read("a.parquet", parquet(columns)).prompts[0].turns == turns


def test_a_text_that_parquet_repeats_is_read_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file of kilobytes unfolded to gigabytes: each row names the same text of a megabyte."""
    monkeypatch.setattr(parquet_rows, "MOST_UNFOLDED", 7 << 19)
    column = pa.array(["x" * (1 << 20)] * 100).dictionary_encode()

    uploads = read("a.parquet", parquet({"prompt": column}))

    chats = [[{"role": "user", "content": "x" * (1 << 20)}]] * 100
    nested = read("a.parquet", parquet({"messages": chats}))

    assert len(uploads.prompts) == len(nested.prompts) == 1
    assert len(uploads.left_out) == len(nested.left_out) == 2
    for one in (uploads, nested):
        assert "unfold to more than 3 MiB; the first 3 are read" in one.notes[0]


def test_chats_of_several_row_groups_are_read() -> None:
    """Texts of several groups in one batch were refused as damaged."""
    rows = [[{"role": "user", "content": f"{n} " * 50}] for n in range(40)]

    uploads = read("a.parquet", parquet({"messages": rows}, row_group_size=10))

    assert len(uploads.prompts) == 40
    assert uploads.left_out == ()


def test_a_cell_of_a_gigabyte_is_refused_before_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file of 58 KB with one cell of 1.9 GB took 11 GB and gave nothing."""
    monkeypatch.setattr(parquet_rows, "LARGEST_PAGE", 1 << 20)
    for has_dictionary in (True, False):
        content = parquet({"prompt": ["x" * (2 << 20)]}, use_dictionary=has_dictionary)

        [left] = read("a.parquet", content).left_out

        assert "a page of its column prompt unfolds to 2 MiB and 1 MiB is the most" in left.reason


def test_a_first_row_that_unfolds_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "MOST_UNFOLDED", 1 << 20)
    chat = [{"role": "user", "content": "x" * (1 << 19)}] * 8

    [left] = read("a.parquet", parquet({"messages": [chat]})).left_out

    assert "its first row unfolds to 4 MiB and 1 MiB is the most" in left.reason


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_headers_of_pages_say_what_they_hold(version: str, compression: str) -> None:
    texts_ = [f"{n:06}" for n in range(5000)]
    content = parquet(
        {"prompt": texts_},
        data_page_version=version,
        compression=compression,
        data_page_size=4096,
        use_dictionary=False,
    )
    chunk = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0).column(0)

    sizes = page_sizes(content, chunk.data_page_offset, chunk.total_compressed_size)

    assert sizes.value_count == 5000
    assert 50_000 <= sizes.total_bytes <= chunk.total_uncompressed_size
    assert sizes.largest_bytes < 20_000


def test_pages_without_a_header_are_damaged() -> None:
    for content in (b"", b"\x15", b"\xff" * 40, bytes(40), b"\x1b" * 40):
        with pytest.raises(InputError, match="damaged"):
            page_sizes(content, 0, 40)


def test_two_columns_of_one_name_are_named() -> None:
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["prompt", "prompt"])

    [left] = read("a.parquet", parquet(twice)).left_out
    table = read("a.csv", "prompt,prompt\na,b\n")

    assert "2 columns of the name prompt" in left.reason
    assert "several columns of the name prompt; the first of them is read" in table.notes[0]


def test_a_first_line_of_megabytes_is_no_name_of_a_column() -> None:
    uploads = read("a.csv", "a" * (1 << 20))

    assert len(uploads.prompts) == 1
    assert len(uploads.notes[0]) < 200


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("café", "cp1252", "cp1252"),
        ("Não há informação sobre a posição", "cp1252", "cp1252"),
        ("Wie heißt die größte Stadt?", "cp1252", "cp1252"),
        ("¿Qué es “esto”? 5 € … ¡dímelo!", "cp1252", "cp1252"),
        ("id;prompt\n1;Qué es un token", "cp1252", "cp1252"),
        ("Hvað er lykill? Útskýrðu það fyrir átta ára barni.", "cp1252", "cp1252"),
        ("Zażółć gęślą jaźń. Jak działa pamięć podręczna kluczy?", "cp1250", "cp1250"),
        ("Что такое кэш ключей и значений? Объясни коротко.", "cp1251", "cp1251"),
        ("Anahtar ve değer önbelleği nedir? Şimdi söyleyin.", "cp1254", "cp1254"),
        ("キーと値のキャッシュとは何ですか。簡単に説明してください。", "cp932", "cp932"),
    ],
)
def test_a_file_in_an_old_encoding_is_read_and_the_guess_is_shown(
    text: str, encoding: str, name: str
) -> None:
    uploads = read("a.txt", text.encode(encoding))

    assert texts(uploads) == [text]
    [note] = uploads.notes
    assert f"not UTF-8; read as {name}: “" in note
    accent = next(one for one in text if not one.isascii())
    assert accent in note
