"""A chapter's question and how an answer is judged. No Streamlit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question whose answer follows from the run on the page.

    Attributes:
        options: What can be chosen; none where a whole number is asked for.
        answer: The right option, or the digits of the number.
        right: What is said of the right answer.
        wrong: What is said of any other: why, without blame.
    """

    text: str
    options: tuple[str, ...] = ()
    answer: str
    right: str
    wrong: str

    def is_right(self, said: str) -> bool:
        """Tell whether an answer is the right one."""
        return said == self.answer

    def verdict(self, said: str) -> str:
        """Return what is said of an answer."""
        return self.right if self.is_right(said) else self.wrong


def nearby(right: int, *wrong: int) -> tuple[str, ...]:
    """Return numbers as options in ascending order, each once."""
    return tuple(f"{number:,}" for number in sorted({right, *wrong}))
