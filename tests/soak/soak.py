"""The server for hours: runs, model switches, tabs and kills of the engine; a chart and a verdict.

``make soak SOAK_MINUTES=60`` starts the app on a free port with a data folder of its own, and works
on it with pauses, so that it takes less than a third of one core. It ends with 0 where memory,
descriptors, threads and disk stayed within their bounds and no run was lost, else with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import psutil

from inference.records.status import RunState
from inference.runs.store import RunStore
from inference.runs.store_room import MEGABYTE, ROOM_VARIABLE, bytes_below
from inference.storage.folders import DATA_VARIABLE
from tests.soak.chart import soak_chart
from tests.soak.tab import PATIENCE_S, Followed, PageError, follow, opened_tab, server_news
from tests.soak.verdict import Finding, Reading, RunEnd, Sample, verdict
from tests.tiny_model import save_tiny_model
from visuals.live.page_bench import ROOT, is_healthy

CYCLE_S = 15.0
REST_S = 3.0  # after the last tab was closed, before anything is read
CYCLES_A_MODEL = 8
LEAVING_EVERY, VISITING_EVERY = 7, 5  # cycles
FIRST_KILLS, KILL_EVERY = (2.0, 5.0), 30.0  # minutes
ROOM_MB = 2  # little, so that kept runs reach it
NEW_TOKENS, MANY_TOKENS = 24, 400
PROMPT = "Why is the sky blue?"
PAGES = ("tour", "compare", "roofline", "batching", "serving", "device", "runs", "self-check")
DEFAULT = "default"
ENDED = "ended unexpectedly"
BAD_WORDS = ("Traceback (most recent call last)",)


class Soak:
    """The work on one server, and what was seen of it.

    Attributes:
        samples: The server at rest, once a cycle.
        runs: Every run that was started.
        kills: Minutes at which the engine was killed.
        complaints: What pages showed that they should not.
    """

    def __init__(self, url: str, app: psutil.Process, data: Path, tiny: Path) -> None:
        self.samples: list[Sample] = []
        self.runs: list[RunEnd] = []
        self.kills: list[float] = []
        self.complaints: list[str] = []
        self._url = url
        self._app = app
        self._data = data
        self._store = RunStore(data)
        self._models = (DEFAULT, str(tiny))
        self._began_s = time.monotonic()

    @property
    def minute(self) -> float:
        """Minutes since the server was up."""
        return (time.monotonic() - self._began_s) / 60

    def work(self, minutes: float) -> None:
        """Work until the time is over."""
        cycle = 0
        with opened_tab(self._url):  # a tab that stays
            while self.minute < minutes:
                begun_s = time.monotonic()
                self._cycle(cycle)
                cycle += 1
                time.sleep(max(0.0, CYCLE_S - (time.monotonic() - begun_s)))

    def _cycle(self, cycle: int) -> None:
        model = self._models[cycle // CYCLES_A_MODEL % len(self._models)]
        try:
            if model == DEFAULT and self._is_kill_due():
                self._killed_run(is_idle=len(self.kills) % 2 == 1)
            else:
                self._run(model, is_left=cycle % LEAVING_EVERY == LEAVING_EVERY - 1)
            if cycle % VISITING_EVERY == 0:
                page = PAGES[cycle // VISITING_EVERY % len(PAGES)]
                with opened_tab(self._url, page):
                    pass
        except (PageError, OSError, TimeoutError) as error:
            self.complaints.append(f"minute {self.minute:.1f}: {type(error).__name__}: {error}")
        time.sleep(REST_S)
        self._sample(model)

    def _run(self, model: str, *, is_left: bool) -> None:
        """Make a run, watched to its end or left after a few steps."""
        with opened_tab(
            self._url, prompt=PROMPT, model=model, max_new_tokens=str(NEW_TOKENS)
        ) as tab:
            run = tab.start()
            follow(self._url, run, until_step=3 if is_left else None)
            if not is_left:
                tab.draw()  # as the panel asks once it has drawn the end
        self._take_end(run, RunState.DONE)

    def _is_kill_due(self) -> bool:
        done = len(self.kills)
        if done < len(FIRST_KILLS):
            return self.minute >= FIRST_KILLS[done]
        return self.minute >= KILL_EVERY * (done - len(FIRST_KILLS) + 1)

    def _killed_run(self, *, is_idle: bool) -> None:
        """Kill the engine in a run, or after one, and see that every tab is told."""
        tokens = NEW_TOKENS if is_idle else MANY_TOKENS
        with (
            server_news(self._url) as news,
            opened_tab(self._url, prompt=PROMPT, max_new_tokens=str(tokens)) as tab,
        ):
            run = tab.start()
            follow(self._url, run, until_step=None if is_idle else 20)
            engine = self._engine()
            if engine is None:
                self.complaints.append(f"minute {self.minute:.1f}: there was no engine to kill")
                return
            self.kills.append(self.minute)
            engine.send_signal(signal.SIGKILL)
            end_s = time.monotonic() + PATIENCE_S
            while ENDED not in json.loads(news.recv(timeout=PATIENCE_S))["engine"]:
                if time.monotonic() > end_s:
                    self.complaints.append(f"minute {self.minute:.1f}: no tab was told of a kill")
                    break
        self._take_end(run, RunState.DONE if is_idle else RunState.FAILED)

    def _take_end(self, run: Followed, meant: RunState) -> None:
        """Wait until the run is kept, and remember whether it ended as it should."""
        end_s = time.monotonic() + PATIENCE_S
        entry = None
        while time.monotonic() < end_s:
            entry = self._store.entry(run.run_id)
            if entry is not None and entry.state.is_final and not entry.problem:
                break
            time.sleep(0.2)
        words = "not kept" if entry is None else f"{entry.state}: {entry.message or entry.problem}"
        is_as_meant = entry is not None and entry.state is meant and entry.steps > 0
        self.runs.append(RunEnd(minute=self.minute, is_as_meant=is_as_meant, words=words))

    def _engine(self) -> psutil.Process | None:
        """Return the engine process: the child that has loaded torch."""
        for child in self._app.children():
            try:
                maps = Path(f"/proc/{child.pid}/maps").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if "libtorch" in maps:
                return child
        return None

    def _sample(self, model: str) -> None:
        engine = self._engine()
        try:
            sample = Sample(
                minute=round(self.minute, 3),
                app=_reading(self._app),
                engine=None if engine is None else _reading(engine),
                model="tiny" if model != DEFAULT else DEFAULT,
                disk_bytes=bytes_below(self._data),
            )
        except psutil.NoSuchProcess:
            return  # an engine that was killed and is not yet back
        self.samples.append(sample)


def _reading(process: psutil.Process) -> Reading:
    with process.oneshot():
        times = process.cpu_times()
        return Reading(
            process_id=process.pid,
            memory_bytes=process.memory_info().rss,
            descriptors=process.num_fds(),
            threads=process.num_threads(),
            processor_s=times.user + times.system,
        )


@contextmanager
def running_server(folder: Path) -> Generator[tuple[str, psutil.Process]]:
    """Yield the address and the process of a server with its data and its log in a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "server.log").open("wb") as log:
        started = subprocess.Popen(
            (sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)),
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, DATA_VARIABLE: str(folder / "data"), ROOM_VARIABLE: str(ROOM_MB)},
        )
    url = f"http://127.0.0.1:{port}"
    try:
        end_s = time.monotonic() + PATIENCE_S
        while not is_healthy(url):
            if started.poll() is not None or time.monotonic() > end_s:
                msg = f"the server is not up; see {folder / 'server.log'}"
                raise RuntimeError(msg)
            time.sleep(0.2)
        yield url, psutil.Process(started.pid)
    finally:
        started.terminate()
        started.wait(timeout=60)


def report(soak: Soak, folder: Path) -> tuple[Finding, ...]:
    """Write samples, chart and verdict into a folder; return the findings."""
    log = (folder / "server.log").read_text(encoding="utf-8", errors="replace")
    complaints = soak.complaints + [
        f"{log.count(words)} times in the log: {words}" for words in BAD_WORDS if words in log
    ]
    findings = verdict(soak.samples, soak.runs, complaints, ROOM_MB * MEGABYTE)
    lines = [f"{'good' if one.is_good else 'BAD '}  {one.name}: {one.words}" for one in findings]
    lines += [f"      {_share(soak.samples)}", f"      {_where(soak.samples)}"]
    (folder / "verdict.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    kept = {
        "samples": [asdict(one) for one in soak.samples],
        "runs": [asdict(one) for one in soak.runs],
        "kills": soak.kills,
    }
    (folder / "soak.json").write_text(json.dumps(kept), encoding="utf-8")
    if soak.samples:
        soak_chart(soak.samples, soak.kills, _where(soak.samples)).save(folder / "soak.svg")
    sys.stdout.write("\n".join(lines) + "\n")
    return findings


def _share(samples: Sequence[Sample]) -> str:
    """Return how much of one core app and engine took, those killed left out."""
    if not samples:
        return "nothing was read"
    used_s = samples[-1].app.processor_s - samples[0].app.processor_s
    lives: dict[int, float] = {}
    for sample in samples:
        if sample.engine is not None:
            lives[sample.engine.process_id] = sample.engine.processor_s
    minutes = samples[-1].minute - samples[0].minute
    share = (used_s + sum(lives.values())) / max(minutes * 60, 1.0)
    return f"app and engine took {share:.0%} of one core"


def _where(samples: Sequence[Sample]) -> str:
    minutes = samples[-1].minute if samples else 0.0
    return (
        f"{minutes:.0f} minutes on {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}, {datetime.now(UTC):%Y-%m-%d}"
    )


def main() -> int:
    """Soak the server and return 0 where all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("soak"))
    args = parser.parse_args()
    folder: Path = args.out
    (folder / "data").mkdir(parents=True, exist_ok=True)
    tiny = save_tiny_model(folder / "tiny-model")
    with running_server(folder) as (url, app):
        soak = Soak(url, app, folder / "data", tiny)
        try:
            soak.work(args.minutes)
        except KeyboardInterrupt:
            sys.stderr.write("ended early; the verdict is of what there is\n")
    return 0 if all(one.is_good for one in report(soak, folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
