"""Weight files whose header is not what it should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.models.local_models import is_whole


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"[[1, 2]]",
        b"null",
        b"7",
        b'{"weight": []}',
        b'{"weight": {}}',
        b'{"weight": {"data_offsets": 4}}',
        b'{"weight": {"data_offsets": [0]}}',
        b'{"weight": {"data_offsets": [0, "many"]}}',
        b'{"weight": {"data_offsets": [0, null]}}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_header_that_is_no_object_of_tensors_is_no_whole_file(
    tmp_path: Path, header: bytes
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)

    assert not is_whole(path)


def test_a_file_as_long_as_its_header_says_is_whole(tmp_path: Path) -> None:
    header = b'{"weight": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}'
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"abc")

    assert is_whole(path)
