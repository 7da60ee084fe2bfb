"""Keeps every run of the hub on disk while it grows: a line a second, the run file at its end.

One thread does it, so no step time and no page waits for a disk. A disk that takes no more costs
one sentence, and the run goes on. No torch.
"""

from __future__ import annotations

import logging
import threading

from inference.records.errors import InputError
from inference.records.run import RunTrace
from inference.runs.journals import Journal
from inference.runs.store import RunStore
from visuals.live.hub import Hub
from visuals.live.live_run import LiveRun

log = logging.getLogger(__name__)

INTERVAL_S = 1.0  # what a crash may cost
RETRIED_ROUNDS = 10  # a run that found no room when it ended is tried again in one round of ten
TRIED_AGAIN = "It is tried again until there is room; the run stays in memory until then."


class RunSaver:
    """Follows a hub's runs; each is kept once it has a step.

    The hub is given ``recall`` and ``wake`` when it is made.

    Attributes:
        problem: Why the newest write failed; empty when it did not.
    """

    def __init__(self, store: RunStore) -> None:
        self.problem = ""
        self._store = store
        self._journals: dict[str, Journal] = {}
        self._settled: set[str] = set()
        self._wake = threading.Event()
        self._lock = threading.Lock()  # of the writes; never taken under the hub's

    def keep(self, hub: Hub, stop: threading.Event) -> None:
        """Keep runs until ``stop`` is set, those that were cut off first; run on a thread."""
        try:
            self._store.recover()
        except InputError as error:
            self._complain(str(error))
        rounds = 0
        while not stop.is_set():
            self._wake.wait(INTERVAL_S)
            self._wake.clear()
            rounds += 1
            self.keep_once(hub, is_retried=rounds % RETRIED_ROUNDS == 0)
        self.keep_once(hub)
        for journal in self._journals.values():
            journal.release()

    def keep_once(self, hub: Hub, *, is_retried: bool = True) -> None:
        """Write what the runs have gained, and the files of those that have ended.

        Args:
            hub: Whose runs.
            is_retried: Try those again too that ended without room for them.
        """
        with self._lock:
            for run in hub.runs():
                is_ours = run.recorded is None and run.replay is None and run.is_kept
                is_due = is_retried or not run.is_unwritten
                if is_ours and is_due and run.run_id not in self._settled:
                    self._keep_run(hub, run)

    def recall(self, run_id: str) -> RunTrace | None:
        """Return a run that is kept; None when there is none under this id."""
        try:
            return self._store.open(run_id)
        except InputError:
            return None

    def wake(self, _run: LiveRun) -> None:
        """Write at once, because a run has ended."""
        self._wake.set()

    def _keep_run(self, hub: Hub, run: LiveRun) -> None:
        is_final = run.state.is_final  # asked first: what comes later is in the next round
        trace = hub.whole(run) if is_final else hub.snapshot(run)
        try:
            if trace is not None and trace.events:
                self._write(run.run_id, trace, is_final=is_final)
        except InputError as error:
            sentence = f"{error}. {TRIED_AGAIN}" if is_final else str(error)
            self._complain(sentence)
            hub.not_saved(run, sentence, is_whole=is_final)
            return
        hub.saved(run, is_whole=is_final)
        if is_final:
            self._settled.add(run.run_id)

    def _write(self, run_id: str, trace: RunTrace, *, is_final: bool) -> None:
        if not is_final:
            if run_id not in self._journals:
                self._journals[run_id] = self._store.journal(run_id)
            self._journals[run_id].append(trace)
        else:
            self._store.save(trace)
            journal = self._journals.pop(run_id, None)
            if journal is not None:
                journal.remove()
        self.problem = ""

    def _complain(self, sentence: str) -> None:
        if self.problem != sentence:
            log.warning("%s", sentence)
        self.problem = sentence
