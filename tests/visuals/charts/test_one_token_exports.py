"""Every export of a run of one token, and of one whose numbers are not finite, is whole JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, nan

import pytest

from inference.records.run import RunTrace
from inference.runs.comparisons import subjects_of
from inference.runs.perfetto import perfetto_json
from inference.runs.run_file import to_json
from tests.visuals.traces import trace_of
from visuals.charts.chart_files import comparison_charts, run_charts, spec_json, titled
from visuals.charts.report import report_html

WHOLE = trace_of([b"a", b"b"], [b"x"], step_time_s=0.07)
ONE = replace(WHOLE, events=WHOLE.events[:1])


def strict(text: str) -> object:
    """Return JSON read as the standard has it."""

    def refused(name: str) -> object:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refused)


def test_a_run_of_one_token_is_exported_everywhere() -> None:
    charts = (*run_charts(ONE), *comparison_charts(subjects_of([ONE, ONE])))

    for chart in charts:
        strict(spec_json(titled(chart, [ONE])))
    strict(to_json(ONE))
    strict(perfetto_json(ONE))
    assert "</html>" in report_html([ONE], b"", title="One token")


@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_number_that_is_not_finite_is_a_gap_in_a_chart_file(value: float) -> None:
    row = replace(ONE.events[0].rows[0], logprob=value)
    broken: RunTrace = replace(ONE, events=(replace(ONE.events[0], rows=(row,)),))

    for chart in run_charts(broken):
        strict(spec_json(titled(chart, [broken])))
