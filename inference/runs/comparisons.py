"""Runs side by side: what is compared with what, over repeats, and whether a difference means much.

A subject is one prompt under one set of settings; its repeats are runs of the same. A figure is the
median over the repeats; its spread is the largest less the smallest. No torch, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median
from string import ascii_uppercase

from inference.figures.disturbance import Disturbance, disturbance
from inference.figures.latency import batch_tokens_per_s, latency_summary
from inference.records.options import ONE_BATCH
from inference.records.run import Output, Request, RunTrace
from inference.records.steps import Finish
from inference.runs.row_bytes import kv_bytes_at_end
from inference.runs.subject_keys import SubjectKey, subject_key, titles_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSpread:
    """One figure over the repeats; all None where no repeat has it.

    Attributes:
        count: Repeats that have the figure.
    """

    middle: float | None
    low: float | None
    high: float | None
    count: int

    @property
    def width(self) -> float | None:
        """Largest less smallest; None for fewer than two repeats, which show no spread."""
        if self.count < 2 or self.low is None or self.high is None:  # noqa: PLR2004  a pair
            return None
        return self.high - self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One repeat: a request of a run."""

    trace: RunTrace
    request_id: str

    @property
    def request(self) -> Request:
        """What was asked."""
        requests = self.trace.requests
        return next(request for request in requests if request.request_id == self.request_id)

    @property
    def text(self) -> str:
        """What came out."""
        output = self._output
        return "" if output is None else output.text

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens that came out."""
        output = self._output
        return () if output is None else output.token_ids

    @property
    def _output(self) -> Output | None:
        outputs = self.trace.outputs
        return next((o for o in outputs if o.request_id == self.request_id), None)

    @property
    def finish(self) -> Finish | None:
        """Why it ended; None when it was cut off."""
        rows = (row for event in self.trace.events for row in event.rows)
        own = (row.finish for row in rows if row.request_id == self.request_id and row.finish)
        return next(own, None)

    @property
    def kv_bytes(self) -> int | None:
        """K/V bytes of this request's tokens after its last step, read off the cache's tensors."""
        return kv_bytes_at_end(self.trace, self.request_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One prompt under one set of settings, and its repeats.

    Attributes:
        label: A letter, in the order of the comparison.
        title: What sets it apart from the others.
        key: What its repeats have in common.
    """

    label: str
    title: str
    key: SubjectKey
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectFigures:
    """The figures of one subject; times in seconds.

    Attributes:
        batch_tokens_per_s: All rows together; None for a prompt that ran alone.
        finish: Why the first repeat ended, as the record says it, or its run's state.
        is_cold: True when first-call costs may be inside.
        answers: How many different answers the repeats gave.
        disturbance: Of the steps of all repeats, those that other programs disturbed.
        disturbed_ttfts: Repeats whose TTFT holds such a step.
        is_all_disturbed: True when a repeat had no other steps, so that its ITLs hold them too.
    """

    subject: Subject
    prompt_tokens: int
    output_tokens: int
    ttft_s: FigureSpread
    itl_p50_s: FigureSpread
    itl_p95_s: FigureSpread
    tpot_s: FigureSpread
    tokens_per_s: FigureSpread
    batch_tokens_per_s: FigureSpread
    kv_bytes: int | None
    finish: str
    is_cold: bool
    answers: int
    disturbance: Disturbance
    disturbed_ttfts: int
    is_all_disturbed: bool


def subjects_of(traces: Iterable[RunTrace]) -> tuple[Subject, ...]:
    """Return the subjects of some runs in the order in which they come; equal ones are repeats.

    Rows of a batch that are copies of each other share every step time, so the first stands for
    all. With a temperature above 0 each row draws with the seed plus its index, so one may end
    before another and shares the step times up to there.
    """
    samples: dict[SubjectKey, list[Sample]] = {}
    for trace in traces:
        distinct = _distinct_requests(trace)
        for request in distinct:
            key = subject_key(trace, request, is_copied=len(distinct) == 1)
            sample = Sample(trace=trace, request_id=request.request_id)
            samples.setdefault(key, []).append(sample)
    titles = titles_of(tuple(samples))
    return tuple(
        Subject(label=_letters(index), title=title, key=key, samples=tuple(samples[key]))
        for index, (key, title) in enumerate(zip(samples, titles, strict=True))
    )


def figures_of(subject: Subject) -> SubjectFigures:
    """Return the figures of a subject over its repeats."""
    first = subject.samples[0]
    summaries = [latency_summary(sample.trace, sample.request_id) for sample in subject.samples]
    finish = first.finish
    return SubjectFigures(
        subject=subject,
        prompt_tokens=len(first.request.prompt_ids),
        output_tokens=len(first.token_ids),
        ttft_s=figure_spread(summary.ttft_s for summary in summaries),
        itl_p50_s=figure_spread(summary.itl_p50_s for summary in summaries),
        itl_p95_s=figure_spread(summary.itl_p95_s for summary in summaries),
        tpot_s=figure_spread(summary.tpot_s for summary in summaries),
        tokens_per_s=figure_spread(summary.sequence_tokens_per_s for summary in summaries),
        batch_tokens_per_s=figure_spread(_batch_rate(sample) for sample in subject.samples),
        kv_bytes=first.kv_bytes,
        finish=finish.value if finish is not None else first.trace.state.value,
        is_cold=any(summary.is_cold for summary in summaries),
        answers=len({sample.text for sample in subject.samples}),
        disturbance=disturbance(
            event for sample in subject.samples for event in sample.trace.events
        ),
        disturbed_ttfts=sum(summary.is_ttft_disturbed for summary in summaries),
        is_all_disturbed=any(summary.is_all_disturbed for summary in summaries),
    )


def figure_spread(values: Iterable[float | None]) -> FigureSpread:
    """Return the median and the ends of the values that are not None."""
    measured = [value for value in values if value is not None]
    if not measured:
        return FigureSpread(middle=None, low=None, high=None, count=0)
    return FigureSpread(
        middle=median(measured), low=min(measured), high=max(measured), count=len(measured)
    )


def difference(first: FigureSpread, second: FigureSpread) -> tuple[float, bool | None] | None:
    """Return by what ratio the second differs from the first, and whether that means anything.

    It does not (False) when it is no larger than the wider of the two spreads and could be chance;
    None where a spread is not known because there was one repeat only.
    """
    if first.middle is None or second.middle is None or first.middle == 0:
        return None
    ratio = second.middle / first.middle - 1
    if first.width is None or second.width is None:
        return ratio, None
    return ratio, abs(second.middle - first.middle) > max(first.width, second.width)


def _distinct_requests(trace: RunTrace) -> tuple[Request, ...]:
    """Return the first of each group of requests that are alike but for their ids.

    Under another plan than one batch each request has its own waits, so all are distinct.
    """
    if trace.info.plan != ONE_BATCH:
        return trace.requests
    alike: dict[Request, Request] = {}
    for request in trace.requests:
        alike.setdefault(replace(request, request_id=""), request)
    return tuple(alike.values())


def _batch_rate(sample: Sample) -> float | None:
    return batch_tokens_per_s(sample.trace) if len(sample.trace.requests) > 1 else None


def _letters(index: int) -> str:
    """Return A to Z, then AA, AB, and so on."""
    letters = len(ascii_uppercase)
    ahead = _letters(index // letters - 1) if index >= letters else ""
    return ahead + ascii_uppercase[index % letters]
