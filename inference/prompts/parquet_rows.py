"""The rows of a Parquet file, one after another, within bounds of memory. No torch.

Kilobytes may unfold to gigabytes: a page that compresses well, or a text that every row names. So
pages are weighed before they are unpacked (``parquet_pages``) and rows before they become objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inference.prompts.parquet_pages import PageSizes, page_sizes
from inference.records.errors import InputError, first_line
from inference.records.prompts import Upload

LARGEST_PAGE = 2**27  # bytes; the largest that a usual writer makes is a tenth of a gigabyte
MOST_OF_A_GROUP = 2**29  # bytes of one column of a row group
MOST_VALUES = 2**24  # of one column of a row group
MOST_UNFOLDED = 2**27  # bytes of all rows that are read
OBJECT_BYTES = 64  # what a value takes at least once it is an object
BATCH_ROWS = 64
LONGEST_REASON = 160
# What reading a damaged file raises; names and texts that are no UTF-8 the last.
DAMAGED = (pa.ArrowException, OSError, UnicodeDecodeError)


def opened(file: Upload) -> pq.ParquetFile:
    """Return the file, of which only the footer is read.

    Raises:
        InputError: It is no Parquet file.
    """
    try:
        return pq.ParquetFile(pa.BufferReader(file.content))
    except DAMAGED as error:
        msg = f"it is no Parquet file or damaged: {_reason(error)}; make it again"
        raise InputError(msg) from error


def parquet_rows(file: Upload, columns: Sequence[str]) -> Iterator[dict[str, Any] | str]:
    """Yield rows one after another, and where they unfold to too much, a note at the end.

    A text that many rows share is held once until its row.

    Raises:
        InputError: It is damaged, or a page or the first row of it unfolds to too much.
    """
    number = unfolded = 0
    try:
        for batch in _batches(file, columns):
            together = _weight(batch)
            is_within = unfolded + together <= MOST_UNFOLDED
            for row in range(batch.num_rows):
                one = batch.slice(row, 1)
                unfolded += 0 if is_within else _weight(one)
                if unfolded > MOST_UNFOLDED:
                    yield _end(unfolded, number)
                    return
                number += 1
                cells = zip(one.schema.names, one.columns, strict=True)
                yield {name: column[0].as_py() for name, column in cells}
            unfolded += together if is_within else 0
    except DAMAGED as error:
        msg = f"it is damaged after row {number}: {_reason(error)}; make it again"
        raise InputError(msg) from error


def _end(unfolded: int, rows: int) -> str:
    """Return what to say where no more rows are read.

    Raises:
        InputError: None was read.
    """
    if rows:
        return (
            f"its rows unfold to more than {MOST_UNFOLDED >> 20:,} MiB; the first {rows:,} are read"
        )
    msg = f"its first row unfolds to {unfolded >> 20:,} MiB and {MOST_UNFOLDED >> 20:,} MiB is the "
    msg += "most; cut its texts"
    raise InputError(msg)


def _batches(file: Upload, columns: Sequence[str]) -> Iterator[Any]:
    table = opened(file)
    paths = [table.schema.column(number).path for number in range(len(table.schema))]
    ours = [
        number
        for number, path in enumerate(paths)
        if any(path == name or path.startswith(f"{name}.") for name in columns)
    ]
    texts = [
        paths[number]
        for number in ours
        if table.schema.column(number).physical_type == "BYTE_ARRAY"
    ]
    shared = pq.ParquetFile(pa.BufferReader(file.content), read_dictionary=texts)
    # A batch of several groups would have several dictionaries, which nested columns cannot.
    for group in range(table.num_row_groups):
        largest = max(_checked(file, table, group, number).largest_bytes for number in ours)
        rows = min(BATCH_ROWS, max(1, LARGEST_PAGE // max(1, largest)))
        yield from shared.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns))


def _checked(file: Upload, table: pq.ParquetFile, group: int, number: int) -> PageSizes:
    """Return what the pages of one column of a row group unfold to.

    Raises:
        InputError: It is more than is read.
    """
    chunk = table.metadata.row_group(group).column(number)
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    sizes = page_sizes(file.content, start, chunk.total_compressed_size)
    name = chunk.path_in_schema.partition(".")[0][:40]
    for what, found, most in (
        ("a page", sizes.largest_bytes, LARGEST_PAGE),
        ("a row group", sizes.total_bytes, MOST_OF_A_GROUP),
    ):
        if found > most:
            msg = (
                f"{what} of its column {name} unfolds to {found >> 20:,} MiB and {most >> 20} MiB "
            )
            msg += "is the most; cut long texts, or write smaller row groups"
            raise InputError(msg)
    if sizes.value_count > MOST_VALUES:
        found = f"{sizes.value_count:,} values and {MOST_VALUES:,}"
        msg = f"a row group of its column {name} has {found} "
        msg += "are the most; write smaller row groups"
        raise InputError(msg)
    return sizes


def _weight(batch: Any) -> int:  # noqa: ANN401  pyarrow is not typed
    """Return the bytes that a batch takes as objects, at least."""
    return sum(_weight_of(column) for column in batch.columns)


def _weight_of(array: Any) -> int:  # noqa: ANN401  pyarrow is not typed
    kind, types = array.type, pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return OBJECT_BYTES + _weight_of(array.flatten())
    if types.is_struct(kind):
        return sum(_weight_of(field) for field in array.flatten())
    if types.is_dictionary(kind) and (
        types.is_string(kind.value_type) or types.is_binary(kind.value_type)
    ):
        lengths = pc.call_function("binary_length", [array.dictionary]).take(array.indices)
        total = pc.call_function("sum", [lengths.cast(pa.int64())])
        return int(total.as_py() or 0) + OBJECT_BYTES * len(array)
    return int(array.nbytes) + OBJECT_BYTES * len(array)


def _reason(error: Exception) -> str:
    return first_line(error)[:LONGEST_REASON]
