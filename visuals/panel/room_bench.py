"""What a room costs: how soon a press is seen, and how fast decode is, with 30 viewers.

``python -m visuals.panel.room_bench`` prints JSON. It starts the app with an access key and a data
folder of its own, and opens tabs without a browser (``page_client.py``) on the same processors.
First runs with nobody watching and with all viewers take turns. Then operators take turns at one
run, a lecture: they pause it, step it and resume it, and each starts and stops a run of their own
meanwhile, on a second tab. The time of a press is that from the press to the frame that shows its
effect in the operator's own tab.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

import httpx2

from inference.records.errors import first_line
from inference.runs.store import RunStore
from visuals.live.access import AccessKeys
from visuals.live.page_bench import (
    PROMPT,
    READY_S,
    RUN_S,
    decode_rate,
    is_over,
    running_app,
)
from visuals.panel.page_client import FINAL, PageClient

KEY = "a-room-that-is-measured"
LECTURE_TOKENS = 2048
SEEN_S = 10.0  # a press without an effect for so long is an error
THINKING_S = 0.3
FRAMES_FROM_S = 1.0  # after the last viewer has come


def main() -> int:
    """Measure and print; exit code 2 with a sentence where it cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=30)
    parser.add_argument("--operators", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=384)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as data:
            limits = "runs=0,tokens=0,upload_mb=0,kept_mb=0"  # the room is what is measured
            with running_app(Path(data), TOKEN_BY_TOKEN_KEY=KEY, TOKEN_BY_TOKEN_LIMITS=limits) as (
                url,
                _up_s,
            ):
                room = Room(url, RunStore(Path(data)), args.viewers, args.operators)
                report = asyncio.run(room.measure(args.rounds, args.tokens, args.seconds))
    except (OSError, RuntimeError) as error:
        sys.stderr.write(f"{first_line(error)}\n")
        return 2
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n")
    return 0


class Room:
    """The tabs of a room, and what was measured of them.

    Attributes:
        rates: Decode steps a second, with nobody watching and with all viewers, round by round.
        frames_per_s: Of each viewer in each round.
        presses_s: From a press to its effect, by what was pressed.
        errors: What a user would take for one.
    """

    def __init__(self, url: str, store: RunStore, viewers: int, operators: int) -> None:
        keys = AccessKeys(KEY)
        self.rates: dict[str, list[float]] = {"nobody": [], "viewers": []}
        self.frames_per_s: list[float] = []
        self.presses_s: dict[str, list[float]] = {}
        self.errors: list[str] = []
        self._url = url
        self._store = store
        self._watching = [cookie_of(url, keys.watch) for _ in range(viewers)]
        self._operating = [cookie_of(url, keys.operate) for _ in range(operators)]
        self._settings: dict[str, str] = {}
        self._at_the_lecture = asyncio.Lock()

    async def measure(self, rounds: int, tokens: int, seconds: float) -> dict[str, object]:
        """Measure all of it and return it."""
        self._settings = {"prompt": PROMPT, "max_new_tokens": str(tokens)}
        await self._run(viewers=())  # loads the model
        self.rates["nobody"].clear()
        for _ in range(rounds):
            await self._run(viewers=())
            viewers = await self._opened(self._watching)
            await self._run(viewers)
            await self._close(viewers)
        viewers = await self._opened(self._watching)
        await self._operate(seconds)
        await self._close(viewers)
        presses = [took_s for each in self.presses_s.values() for took_s in each]
        ratios = [
            watched / alone
            for alone, watched in zip(self.rates["nobody"], self.rates["viewers"], strict=True)
        ]
        return {
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "processors": os.cpu_count(),
            "load": os.getloadavg(),
            "viewers": len(self._watching),
            "operators": len(self._operating),
            "errors": self.errors,
            "press_s": {"all": _spread(presses)}
            | {name: _spread(each) for name, each in self.presses_s.items()},
            "decode_tokens_per_s": self.rates,
            "decode_ratio": {"median": median(ratios), "rounds": ratios},
            "frames_per_s": {"least": min(self.frames_per_s), "median": median(self.frames_per_s)},
        }

    async def _opened(self, cookies: Sequence[str], **query: str) -> list[PageClient]:
        tabs = [PageClient(self._url, cookie, dict(query)) for cookie in cookies]
        await asyncio.gather(*(tab.open() for tab in tabs))
        return tabs

    async def _close(self, tabs: Sequence[PageClient]) -> None:
        self.errors += [words for tab in tabs for words in tab.complaints]
        for tab in tabs:
            await tab.close()

    async def _run(self, viewers: Sequence[PageClient]) -> None:
        """Make a run that these viewers watch, and nobody else."""
        (operator,) = await self._opened(self._operating[:1], **self._settings)
        run_id = await self._started(operator)
        await operator.until(lambda: operator.seen.state == "running", READY_S)
        await self._close([operator])
        for viewer in viewers:
            await viewer.until(lambda viewer=viewer: viewer.seen.run_id == run_id)
        since, from_s = datetime.now(UTC), time.monotonic() + FRAMES_FROM_S
        end = time.monotonic() + RUN_S
        while not is_over(self._store, run_id):
            if time.monotonic() > end:
                msg = "a run did not end in time"
                raise RuntimeError(msg)
            await asyncio.sleep(0.1)
        trace = self._store.open(run_id)
        self.rates["viewers" if viewers else "nobody"].append(decode_rate(trace, since))
        for viewer in viewers:
            late = [at_s for at_s in viewer.frames_s if at_s > from_s]
            seconds = late[-1] - from_s if late else 1.0
            self.frames_per_s.append(len(late) / seconds)

    async def _started(self, tab: PageClient) -> str:
        """Press Start and return the run that the tab follows then."""
        before = tab.query.get("run", "")
        await tab.press("start")
        await tab.until(lambda: tab.seen.run_id == tab.query.get("run", before) != before, SEEN_S)
        return tab.seen.run_id

    # The operators

    async def _operate(self, seconds: float) -> None:
        settings = {"prompt": PROMPT, "max_new_tokens": str(LECTURE_TOKENS)}
        lecture = await self._opened(self._operating, **settings)
        own = await self._opened(self._operating, prompt="Hello", max_new_tokens="8")
        end = time.monotonic() + seconds
        await asyncio.gather(
            *(self._steer(tabs, lecture[0], end) for tabs in zip(lecture, own, strict=True))
        )
        await lecture[0].press("stop")
        await self._close([*lecture, *own])

    async def _steer(
        self, tabs: tuple[PageClient, PageClient], first: PageClient, end: float
    ) -> None:
        lecture, own = tabs
        while time.monotonic() < end:
            async with self._at_the_lecture:
                await self._hold_the_lecture(lecture, first)
            await asyncio.sleep(THINKING_S)
            await self._timed("start", own, lambda: self._started(own))
            await self._timed("stop", own, lambda: self._press_until(own, "stop", *FINAL))
            await asyncio.sleep(THINKING_S)

    async def _hold_the_lecture(self, tab: PageClient, first: PageClient) -> None:
        """Pause the lecture's run, step it and let it go on; start one where there is none."""
        if not first.seen.run_id or first.seen.state in FINAL or "run" not in first.query:
            await self._timed("start", first, lambda: self._started(first))
        with suppress(TimeoutError):
            await first.until(lambda: first.seen.state in ("running", *FINAL), READY_S)
        if tab.seen.run_id != first.seen.run_id:
            await tab.show(run=first.seen.run_id)
            await tab.until(lambda: tab.seen.run_id == first.seen.run_id)
        with suppress(TimeoutError):
            await tab.until(lambda: tab.seen.state in ("running", *FINAL), SEEN_S)
        if tab.seen.state == "paused":  # an error has left it so
            await self._press_until(tab, "pause", "running", *FINAL)
        await self._timed("pause", tab, lambda: self._press_until(tab, "pause", "paused", *FINAL))
        if tab.seen.state in FINAL:
            return  # it came to its end by itself
        for _ in range(2):
            await self._timed("step", tab, lambda: self._step(tab))
        await self._timed("resume", tab, lambda: self._press_until(tab, "pause", "running", *FINAL))

    async def _press_until(self, tab: PageClient, key: str, *states: str) -> None:
        await tab.press(key)
        await tab.until(lambda: tab.seen.state in states, SEEN_S)

    async def _step(self, tab: PageClient) -> None:
        before = tab.seen.steps
        await tab.press("step")
        await tab.until(lambda: tab.seen.steps > before, SEEN_S)

    async def _timed(
        self, name: str, tab: PageClient, work: Callable[[], Awaitable[object]]
    ) -> None:
        began_s = time.monotonic()
        try:
            await work()
        except TimeoutError:
            self.errors.append(f"{name} had no effect, with {tab.seen}")
            return
        self.presses_s.setdefault(name, []).append(time.monotonic() - began_s)


def cookie_of(url: str, key: str) -> str:
    """Return the cookie that a link with this key brings.

    Raises:
        RuntimeError: The key is not this server's.
    """
    try:
        answer = httpx2.get(f"{url}/", params={"key": key}, timeout=READY_S)
    except httpx2.HTTPError as error:
        raise RuntimeError(first_line(error)) from error
    cookie = answer.headers.get("set-cookie", "")
    if not cookie:
        msg = "the server gave no cookie for its key"
        raise RuntimeError(msg)
    return cookie.partition(";")[0]


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the number of presses, and what half, 95 in 100 and all of them took at most."""
    if len(seconds) < 2:  # noqa: PLR2004  fewer have no quantiles
        return {"presses": len(seconds), "median": sum(seconds), "largest": sum(seconds)}
    return {
        "presses": len(seconds),
        "median": median(seconds),
        "p95": quantiles(seconds, n=20, method="inclusive")[-1],
        "largest": max(seconds),
    }


if __name__ == "__main__":
    sys.exit(main())
