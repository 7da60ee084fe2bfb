"""What a user types of a load to its plans, one for each number."""

from __future__ import annotations

from dataclasses import dataclass

from inference.records.arrivals import LoadPlan, Spacing
from inference.records.errors import InputError

MOST_CONCURRENT = 1024
MOST_PER_S = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChoice:
    """A load as it is asked for.

    Attributes:
        numbers: Requests at a time, or a second, separated by commas.
        name: What the numbers are called where they were given.
        warm_up: Requests before the measured ones; None for as many as go at a time, or one.
    """

    spacing: Spacing
    numbers: str
    name: str
    requests: int
    warm_up: int | None = None
    seed: int = 0
    is_cold: bool = False


def plans_for(choice: LoadChoice) -> list[LoadPlan]:
    """Return a plan for each number given.

    Raises:
        InputError: A number is none that can be sent.
    """
    if choice.spacing is Spacing.CLOSED:
        return [
            LoadPlan(
                spacing=Spacing.CLOSED,
                concurrency=int(number),
                warm_up=int(number) if choice.warm_up is None else choice.warm_up,
                requests=choice.requests,
                seed=choice.seed,
                is_cold=choice.is_cold,
            )
            for number in _numbers(choice, MOST_CONCURRENT)
        ]
    return [
        LoadPlan(
            spacing=choice.spacing,
            rate_per_s=number,
            warm_up=1 if choice.warm_up is None else choice.warm_up,
            requests=choice.requests,
            seed=choice.seed,
            is_cold=choice.is_cold,
        )
        for number in _numbers(choice, MOST_PER_S)
    ]


def plan_name(plan: LoadPlan) -> str:
    """Return a plan as it is told from the others of its sweep."""
    if plan.concurrency is not None:
        return f"{plan.concurrency} at a time"
    return f"{plan.rate_per_s:g}/s"


def _numbers(choice: LoadChoice, most: float) -> list[float]:
    is_whole, name = choice.spacing is Spacing.CLOSED, choice.name
    try:
        parts = choice.numbers.split(",")
        numbers = [float(int(part)) if is_whole else float(part) for part in parts]
    except ValueError as error:
        whole = "whole " if is_whole else ""
        msg = f"{name} is {choice.numbers[:80]!r}; give {whole}numbers such as 1,2,4"
        raise InputError(msg) from error
    for number in numbers:
        if not 0 < number <= most:
            msg = f"{name} holds {number:g}; give numbers above 0 and up to {most:g}"
            raise InputError(msg)
    return numbers
