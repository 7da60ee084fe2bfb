"""Work of an idle engine: in pieces, behind every command, and never the end of the process."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest

from inference.process.idle_work import IdleWork
from inference.process.messages import Command, Shutdown, StopMeasuring
from inference.process.worker import serve


@pytest.fixture
def pipe() -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = multiprocessing.Pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_a_job_is_done_to_its_end_and_the_next_one_after_it(
    pipe: tuple[Connection, Connection],
) -> None:
    done: list[str] = []

    def job(name: str) -> Iterator[None]:
        for piece in range(2):
            done.append(f"{name}{piece}")
            yield

    idle = IdleWork(pipe[1], quiet_s=0)
    idle.add("a", job("a"))
    idle.add("b", job("b"))

    idle.until_command()

    assert done == ["a0", "a1", "b0", "b1"]


def test_a_command_goes_first_and_the_job_goes_on_where_it_was(
    pipe: tuple[Connection, Connection],
) -> None:
    ours, theirs = pipe
    done: list[int] = []

    def job() -> Iterator[None]:
        for piece in range(4):
            done.append(piece)
            if piece == 1:
                ours.send(StopMeasuring())
            yield

    idle = IdleWork(theirs, quiet_s=0)
    idle.add("job", job())

    idle.until_command()
    assert (done, idle.is_called()) == ([0, 1], True)
    idle.until_command()
    assert done == [0, 1]
    assert theirs.recv() == StopMeasuring()
    idle.until_command()

    assert done == [0, 1, 2, 3]


def test_a_job_of_the_same_name_takes_the_place_of_the_one_before(
    pipe: tuple[Connection, Connection],
) -> None:
    done: list[str] = []

    def job(name: str) -> Iterator[None]:
        done.append(name)
        yield

    idle = IdleWork(pipe[1], quiet_s=0)
    idle.add("check", job("of the model before"))
    idle.add("check", job("of this model"))
    idle.drop("another")

    idle.until_command()

    assert done == ["of this model"]


def test_a_job_that_fails_is_dropped_and_the_others_go_on(
    pipe: tuple[Connection, Connection], caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def failing() -> Iterator[None]:
        done.append("failing")
        yield
        raise ZeroDivisionError

    def sound() -> Iterator[None]:
        done.append("sound")
        yield

    idle = IdleWork(pipe[1], quiet_s=0)
    idle.add("failing", failing())
    idle.add("sound", sound())

    with caplog.at_level(logging.CRITICAL):
        idle.until_command()

    assert done == ["failing", "sound"]


def test_the_engine_process_works_while_no_command_comes(
    pipe: tuple[Connection, Connection],
) -> None:
    ours, theirs = pipe
    obeyed: list[Command] = []
    ours.send(StopMeasuring())

    def job() -> Iterator[None]:
        assert obeyed == [StopMeasuring()]
        ours.send(Shutdown())
        yield

    class Host:
        """An engine's host that is given a job by its first command."""

        def __init__(self, connection: Connection) -> None:
            self.idle = IdleWork(connection, quiet_s=0)
            self.later: list[Command] = []

        def obey(self, command: Command) -> bool:
            obeyed.append(command)
            self.idle.add("job", job())
            return True

    serve(theirs, Host)

    assert obeyed == [StopMeasuring()]
