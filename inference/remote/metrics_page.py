"""A page of metrics in Prometheus' text form to its samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

HEADER = re.compile(r"#\s+(?:HELP|TYPE)\s+(\S+)")
SAMPLE = re.compile(r"([^\s{]+)")
SHARDS = ("tp_rank", "pp_rank")  # parts of one engine, each of which says the same
LARGEST = 2**53


@dataclass(frozen=True, slots=True)
class Sample:
    """A value and the labels that tell it from the others under its name."""

    labels: Mapping[str, str]
    value: float


def samples_in(page: str) -> tuple[dict[str, list[Sample]], tuple[str, ...]]:
    """Return the samples by name, and the names of the metrics that could not be read.

    The parser gives up at the first bad line, so it is given one metric at a time.
    """
    samples: dict[str, list[Sample]] = {}
    unreadable: list[str] = []
    for name, lines in _metrics(page):
        try:
            families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
        except ValueError:
            unreadable.append(name)
            continue
        for one in (sample for family in families for sample in family.samples):
            is_first_shard = all(one.labels.get(shard, "0") == "0" for shard in SHARDS)
            if is_first_shard and isfinite(one.value) and 0 <= one.value <= LARGEST:
                samples.setdefault(one.name, []).append(Sample(one.labels, one.value))
    return samples, tuple(unreadable)


def _metrics(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each metric's name and lines; a line without a header before it stands alone."""
    name, lines = "", []
    for line in page.split("\n"):
        header = HEADER.match(line)
        match = header or (None if line.startswith("#") else SAMPLE.match(line))
        if match is None:
            continue
        found = match[1]
        is_same = found == name if header is not None else bool(name) and found.startswith(name)
        if not is_same:
            if lines:
                yield name, lines
            name, lines = found, []
        lines.append(line)
    if lines:
        yield name, lines
