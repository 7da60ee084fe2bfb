"""Playlist files: read as written, refused in a sentence, and damaged in one item only."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from inference.records.errors import RunFileError
from inference.records.run import RunTrace
from inference.runs.playlist_file import MAX_PLAYLIST_BYTES, playlist_json, read_playlist
from inference.runs.playlists import LONGEST_NOTE, MOST_ITEMS, Playlist, PlaylistItem
from inference.runs.run_file import to_json
from tests.builders import run_info
from tests.visuals.traces import trace_of

SAID = '{"playlist_version":1,"title":"x","items":%s}'


@pytest.fixture
def run() -> RunTrace:
    return replace(trace_of([b"why"], [b"be", b"cause"]), info=run_info("mine"))


def listed(*items: object) -> bytes:
    return (SAID % json.dumps(items)).encode()


def test_a_playlist_is_read_as_it_was_written(run: RunTrace) -> None:
    playlist = Playlist(
        title="Monday: <b>K/V</b>",
        items=(
            PlaylistItem(recording="long-prompt", note="<script>1</script>", panel="kv", step=0),
            PlaylistItem(kept="abc", note="é 日本 👩‍👩‍👧"),
            PlaylistItem(run=run, step=3),
        ),
    )
    text = playlist_json(playlist).encode()

    assert read_playlist(text) == playlist
    assert read_playlist(gzip.compress(b"\xef\xbb\xbf" + text)) == playlist


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged or cut short"),
        (b"{}", "no playlist of this program"),
        (b"[1]", "a run and no playlist"),
        (b'"playlist_version"', "no playlist of this program"),
        (b'{"playlist_version":true,"items":[]}', "no playlist of this program"),
        (b'{"playlist_version":"1","items":[]}', "no playlist of this program"),
        (b'{"playlist_version":2,"items":[]}', "version 2 and this program reads up to 1"),
        (b'{"playlist_version":0,"items":[]}', "version 0, which never was"),
        (b'{"playlist_version":1,"items":{}}', "its items are no list"),
        (b'{"playlist_version":1,"title":7,"items":[]}', "its title is no text"),
        (listed({"recording": "a"})[:-9], "damaged or cut short"),
        (listed(*[{"recording": "a"}] * (MOST_ITEMS + 1)), "201 items and this program takes 200"),
        (b'{"playlist_version":1,"items":' + b"[" * 5000, "recursion limit"),
        (b'{"playlist_version":1,"items":[{"step":NaN}]}', "damaged or cut short"),
        (gzip.compress(listed(), mtime=0)[:-6], "cut short"),
        (b" " * 100_000_000, f"larger than {MAX_PLAYLIST_BYTES >> 20} MiB"),
        (
            gzip.compress(b" " * 100_000_000, 1, mtime=0),
            f"larger than {MAX_PLAYLIST_BYTES >> 20} MiB",
        ),
        (b'{"playlist_version":1,"items":[' + b"1," * 5_000_000 + b"1]}", "5,000,003 values"),
        (b"\x89PNG\r\n\x1a\n\0\0", "damaged or cut short"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value[:20],
)
def test_what_is_no_playlist_is_refused_in_a_sentence(content: bytes, words: str) -> None:
    with pytest.raises(RunFileError, match=words) as refusal:
        read_playlist(content)

    assert "\n" not in str(refusal.value)


def test_a_run_file_is_said_to_be_one(run: RunTrace) -> None:
    with pytest.raises(RunFileError, match="open it on the Runs page"):
        read_playlist(to_json(run).encode())


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (7, "nothing of it that could be used"),
        (None, "nothing of it that could be used"),
        ({}, "has to name one"),
        ({"recording": "a", "kept": "b"}, "has to name one"),
        ({"recording": 7}, "recording: input should be a valid string"),
        ({"kept": "k" * 81}, "kept: "),
        ({"recording": "a", "step": -1}, "step: "),
        ({"recording": "a", "step": 1e300}, "step: "),
        ({"recording": "a", "note": ["x"]}, "note: "),
        ({"run": []}, "run: "),
        ({"run": {}}, "no run of this program"),
        ({"run": {"schema_version": 99}}, "schema 99"),
    ],
)
def test_one_damaged_item_leaves_the_others_and_is_written_back_as_it_was(
    item: object, words: str
) -> None:
    content = listed({"recording": "first"}, item, {"kept": "last"})

    playlist = read_playlist(content)

    first, damaged, last = playlist.items
    assert (first.recording, last.kept) == ("first", "last")
    assert words in damaged.problem
    assert not first.problem + last.problem
    assert json.loads(playlist_json(playlist)) == json.loads(content)


def test_a_damaged_run_inside_is_damage_to_its_item_only(run: RunTrace) -> None:
    damaged = json.loads(to_json(run))
    damaged["events"][0]["duration_s"] = 1e308

    playlist = read_playlist(
        listed({"run": damaged, "note": "mine"}, {"run": json.loads(to_json(run))})
    )

    assert "events[0]" in playlist.items[0].problem
    assert playlist.items[0].note == "mine"
    assert playlist.items[1].run == run


def test_a_note_of_many_lines_becomes_one_of_bounded_length() -> None:
    [item] = read_playlist(listed({"recording": "a", "note": "x\ny " + "z" * 999})).items

    assert item.note.startswith("x y zz")
    assert len(item.note) == LONGEST_NOTE
