"""The figures of a load in words."""

from __future__ import annotations

from collections import Counter

from inference.commands.figure_lines import in_ms
from inference.figures.loads import Limits, LoadFigures, Spread, load_figures
from inference.records.arrivals import RemoteRun, Spacing


def load_lines(run: RemoteRun, limits: Limits | None) -> list[str]:
    """Return what came of a load, a line for each kind of figure."""
    figures = load_figures(run, limits)
    name = _name(run)
    since = "planned" if run.load and run.load.spacing is not Spacing.CLOSED else "sent"
    lines = [
        f"{name}: {', '.join(_counts(figures))}",
        f"{name}: TTFT from {since} {_spread(figures.ttft_s)}",
        f"{name}: TPOT {_spread(figures.tpot_s)}",
        f"{name}: gaps between arrivals {_spread(figures.gaps_s)}",
    ]
    if figures.wanted_per_s is not None and figures.sent_per_s is not None:
        rates = f"{figures.sent_per_s:.4g} requests/s of {figures.wanted_per_s:.4g} wanted"
        lines.append(f"{name}: sent {rates}, waited here {_spread(figures.wait_s)}")
    if figures.cached_tokens is not None:
        lines.append(f"{name}: {figures.cached_tokens:,} tokens of prompts were known already")
    if figures.prefix_hit_ratio is not None:
        share = f"{figures.prefix_hit_ratio:.1%} of the tokens that the engine looked up"
        lines.append(f"{name}: {share} in its cache of prefixes were there, by its own counters")
    if figures.is_late and run.lateness_s is not None:
        lines.append(
            f"{name}: this side was up to {in_ms(run.lateness_s)} late, so the figures are too; "
            "send less, or from a machine that does less"
        )
    reasons = Counter(one.message for one in run.requests if one.message)
    lines += [f"{name}: {count} times: {reason}" for reason, count in reasons.most_common(5)]
    return lines


def _name(run: RemoteRun) -> str:
    if run.load is None:
        return run.run_id
    if run.load.concurrency is not None:
        return f"{run.load.concurrency} at a time"
    return f"{run.load.rate_per_s:g}/s"


def _counts(figures: LoadFigures) -> list[str]:
    said = [f"{figures.finished:,} finished, {figures.failed:,} did not"]
    if figures.finished_per_s is not None:
        said.append(f"{figures.finished_per_s:.4g} requests/s")
    if figures.tokens_per_s is not None:
        said.append(f"{figures.tokens_per_s:.4g} tokens/s")
    if figures.good is not None:
        rate = "" if figures.good_per_s is None else f", {figures.good_per_s:.4g} a second"
        unknown = f", {figures.undecided:,} undecided" if figures.undecided else ""
        said.append(f"{figures.good:,} kept both limits{rate}{unknown}")
    return said


def _spread(spread: Spread) -> str:
    if spread.p50 is None or spread.p95 is None or spread.p99 is None:
        return "not known"
    return f"median {in_ms(spread.p50)}, 95 % {in_ms(spread.p95)}, 99 % {in_ms(spread.p99)}"
