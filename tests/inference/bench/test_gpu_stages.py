"""Whatever a stage of the GPU report ends in, the others stand, and what there is is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
import torch

from inference.__main__ import main
from inference.bench.gpu_checks import same_as_eager
from inference.bench.gpu_report import (
    DATA_FILE,
    REPORT_FILE,
    RUN_FILE,
    SWEEP_FILE,
    make_report,
    report_of,
    stages_of,
)
from inference.bench.gpu_report_text import Report, ReportRequest
from inference.bench.gpu_session import FLOAT32, USUAL, Session, Stage, Surroundings
from inference.bench.gpu_setup import Bench
from inference.bench.gpu_sizes import DRY, FULL, Sizes
from inference.engine.cuda_graphs import StepStore
from inference.engine.loop import GenerationOptions
from inference.engine.step_capture import PlainRecorder
from inference.models.loading import LoadedModel, OnStage, load_model
from inference.records.errors import BackendError, InputError, OutOfMemoryError
from inference.records.options import DecodeMode
from inference.records.run import Request, RunTrace
from inference.runs.run_file import read
from tests.inference.bench.scripted_card import CardTimes, ScriptedCard

DRY_SUBJECT = ReportRequest(model="tiny", device="cpu", is_dry=True)
STAGES = stages_of(DRY_SUBJECT)
FIRST, LOAD_FLOAT32 = STAGES[0].name, "the model in float32"
MPS_ERROR = RuntimeError("MPS backend out of memory (MPS allocated: 15.90 GB).")
CUDA_ERROR = RuntimeError("CUDA error: an illegal memory access was encountered\nmore of it")
ERRORS = (
    CUDA_ERROR,
    InputError("the rows do not fit."),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    BackendError("Llama failed on this step"),
    MPS_ERROR,
    OutOfMemoryError("there is no room"),
)
QUICK = CardTimes(step_s=0.01, graph_s=0.005, load_s=1.0)


@pytest.fixture(scope="module")
def loaded(tiny_model_folder: Path) -> LoadedModel:
    """Return the tiny model in float32, loaded once."""
    return load_model(
        str(tiny_model_folder),
        dtype="float32",
        device="cpu",
        on_stage=lambda _stage: None,
        is_plain=True,
    )


@pytest.fixture(scope="module")
def session(loaded: LoadedModel) -> Callable[[], Session]:
    """Return what begins a dry report on the tiny model."""

    def load(_model: str, _device: str, _dtype: str, sizes: Sizes, _told: OnStage) -> Bench:
        return Bench(loaded, sizes)

    return lambda: Session(DRY_SUBJECT, DRY, lambda _stage: None, Surroundings(load=load))


@pytest.fixture(scope="module")
def names_by_stage(
    session: Callable[[], Session], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, set[str]]:
    """Return the checks that each stage adds where nothing fails."""
    added: dict[str, set[str]] = {}

    def watched(stage: Stage) -> Stage:
        def run(state: Session) -> None:
            before = len(state.checks)
            stage.run(state)
            added[stage.name] = {check.name for check in state.checks[before:]}

        return replace(stage, run=run)

    report_of([watched(stage) for stage in STAGES], session(), tmp_path_factory.mktemp("good"))
    return added


def test_no_two_stages_have_a_check_of_one_name(names_by_stage: dict[str, set[str]]) -> None:
    """On a model in float32 two rows were called alike: its ids, and those without TF32."""
    names = [name for each in names_by_stage.values() for name in each]

    assert len(names) == len(set(names))


def failing(name: str, error: BaseException) -> list[Stage]:
    """Return all stages, of which one does nothing but raise."""

    def run(_session: Session) -> None:
        raise error

    return [replace(stage, run=run) if stage.name == name else stage for stage in STAGES]


def depends_on(name: str) -> set[str]:
    """Return the stages that cannot be done without one."""
    dtypes = {FIRST: USUAL, LOAD_FLOAT32: FLOAT32}
    return {stage.name for stage in STAGES if name in dtypes and stage.dtype == dtypes[name]}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (stage.name, CUDA_ERROR if stage.is_first else error)
        for stage, error in zip(STAGES, cycle(ERRORS), strict=False)
    ],
    ids=[stage.name for stage in STAGES],
)
def test_a_stage_that_fails_costs_its_own_part_of_the_report_only(
    name: str,
    error: Exception,
    session: Callable[[], Session],
    names_by_stage: dict[str, set[str]],
    tmp_path: Path,
) -> None:
    """One stage used to take all others with it, and nothing was written."""
    report = report_of(failing(name, error), session(), tmp_path)

    lost = {name} | depends_on(name)
    rows = {check.name: check for check in report.checks}
    kept = set().union(*(names for one, names in names_by_stage.items() if one not in lost))
    assert kept <= set(rows)
    assert lost <= set(rows)
    assert all(rows[one].is_left_out for one in lost - {name})
    is_unforeseen = error is CUDA_ERROR
    assert rows[name].is_broken is is_unforeseen
    assert rows[name].is_left_out is not is_unforeseen
    assert report.is_good is not is_unforeseen
    written = (tmp_path / REPORT_FILE).read_text()
    assert f"| {name} | {'ERROR' if is_unforeseen else 'left out'} | " in written
    assert "Not complete" not in written
    assert json.loads((tmp_path / DATA_FILE).read_text())["pending"] == []


def test_an_unforeseen_error_is_told_by_its_first_line(
    session: Callable[[], Session], tmp_path: Path
) -> None:
    report = report_of(failing("roofs", CUDA_ERROR), session(), tmp_path)

    [roofs] = [check for check in report.checks if check.name == "roofs"]
    assert roofs.finding == "CUDA error: an illegal memory access was encountered"


def test_what_was_measured_is_on_disk_when_the_program_is_ended(
    session: Callable[[], Session], tmp_path: Path
) -> None:
    """The report used to be written at the end of everything."""
    with pytest.raises(KeyboardInterrupt):
        report_of(failing("the cost of telemetry", KeyboardInterrupt()), session(), tmp_path)

    written = (tmp_path / REPORT_FILE).read_text()
    assert "**Not complete.** Still to come, or lost with the program: the cost of tele" in written
    assert "| eager, static cache |" in written
    assert len(read(tmp_path / RUN_FILE)) == 2
    assert len(read(tmp_path / SWEEP_FILE)) == len(DRY.batches)


def test_a_batch_that_raises_leaves_the_smaller_ones(tmp_path: Path) -> None:
    class Failing(ScriptedCard):
        def trace(self, requests: Sequence[Request], options: GenerationOptions) -> RunTrace:
            if len(requests) == 8:
                raise CUDA_ERROR
            return super().trace(requests, options)

    report = report_on(Failing(QUICK), tmp_path)

    assert [batch.rows for batch in report.batches] == [1, 2, 4]
    assert [check.name for check in report.checks if check.is_broken] == ["batches"]


def report_on(card: ScriptedCard, folder: Path) -> Report:
    return make_report(
        ReportRequest(model="scripted", device="cpu"),
        card.sizes,
        folder,
        lambda _stage: None,
        Surroundings(load=card.load, clock=card.clock),
    )


class SmallCard(ScriptedCard):
    """A card that has room for the model in 16 bits only."""

    def load(self, model: str, device: str, dtype: str, sizes: Sizes, on_stage: OnStage) -> Bench:
        """Load it, unless it is asked for in float32."""
        if dtype == "float32":
            msg = "scripted needs 32.0 GiB and 20.0 GiB of the GPU are free; choose a smaller one"
            raise OutOfMemoryError(msg)
        return super().load(model, device, dtype, sizes, on_stage)


def test_a_first_step_that_cannot_be_timed_makes_nothing_longer(tmp_path: Path) -> None:
    class Failing(ScriptedCard):
        def trace(self, requests: Sequence[Request], options: GenerationOptions) -> RunTrace:
            if not self.traces:
                self.traces.append(super().trace(requests, options))
                raise CUDA_ERROR
            return super().trace(requests, options)

    card = Failing(replace(QUICK, step_s=0.028, graph_s=0.009))

    report = report_on(card, tmp_path)

    assert [check.name for check in report.checks if check.is_broken] == ["the time of one step"]
    assert card.clock.time_s <= 240
    assert len(report.speeds) == 4


def test_float32_checks_without_room_are_left_out_with_the_reason(tmp_path: Path) -> None:
    """They came first and were obligatory."""
    report = report_on(SmallCard(QUICK), tmp_path)

    float32 = next(check for check in report.checks if check.name == LOAD_FLOAT32)
    assert float32.is_left_out
    assert float32.finding.startswith("scripted needs 32.0 GiB")
    assert report.is_good
    assert len(report.speeds) == 4


def test_float32_checks_are_not_made_with_the_model_of_another_dtype(tmp_path: Path) -> None:
    slow = replace(QUICK, step_s=0.03, load_s=60.0)

    report = report_on(ScriptedCard(slow), tmp_path)

    left_out = {check.name for check in report.checks if check.is_left_out}
    assert {LOAD_FLOAT32, *depends_on(LOAD_FLOAT32)} <= left_out


def test_the_memory_of_the_usual_dtype_is_given_back_before_float32_is_loaded(
    tmp_path: Path,
) -> None:
    order: list[str] = []

    class Watched(ScriptedCard):
        def load(
            self, model: str, device: str, dtype: str, sizes: Sizes, on_stage: OnStage
        ) -> Bench:
            order.append(f"load {dtype}")
            made = super().load(model, device, dtype, sizes, on_stage)
            made.close = lambda: order.append("close")
            return made

    report_on(Watched(QUICK), tmp_path)

    assert order[:3] == ["load auto", "close", "load float32"]
    assert order.count("close") == order.count("load auto") + order.count("load float32")


def test_a_model_that_is_not_there_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "nothing")

    code = main(
        ["gpu", "--dry", "--device", "cpu", "--model", model, "--out", str(tmp_path / "out")]
    )

    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    card = ScriptedCard(QUICK)

    with pytest.raises(InputError, match="cannot be made"):
        report_on(card, tmp_path / "file" / "out")

    assert not card.traces


class WatchedBench(Bench):
    """A bench that keeps its runs."""

    def trace(self, requests: Sequence[Request], options: GenerationOptions) -> RunTrace:
        """Return a recorded run."""
        made = super().trace(requests, options)
        self.kept = [*getattr(self, "kept", []), made]
        return made


def test_recorded_and_eager_steps_are_compared_in_the_same_room(loaded: LoadedModel) -> None:
    """Eager steps had a cache of just their own length, and so perhaps another kernel."""
    bench = WatchedBench(loaded, DRY)
    bench.backend._steps = StepStore(
        loaded.model, "cache", make=lambda *_: PlainRecorder(), obstacle=lambda *_: ""
    )
    before = bench.backend.is_watched

    check = same_as_eager(bench, DecodeMode.GRAPH, DRY)

    assert check.is_passed, check.finding
    recorded, eager, *_ = bench.kept
    assert {event.decode for event in recorded.events[1:]} == {DecodeMode.GRAPH}
    assert {event.decode for event in eager.events[1:]} == {DecodeMode.EAGER}
    rooms = [trace.events[-1].cache.allocated_bytes for trace in (recorded, eager)]
    assert rooms[0] == rooms[1]
    assert bench.backend.is_watched is before


class Flipping(ScriptedCard):
    """A card whose eager steps choose another token than the recorded ones, late in a run."""

    def selected(
        self, requests: Sequence[Request], options: GenerationOptions
    ) -> tuple[dict[str, list[int]], str]:
        """Return ids that differ from the hundredth on where steps are eager."""
        ids, note = super().selected(requests, options)
        if self._is_eager:
            ids = {name: [*one[:100], -1, *one[101:]] for name, one in ids.items()}
        return ids, note


@pytest.mark.parametrize(
    ("mode", "is_passed"), [(DecodeMode.GRAPH, False), (DecodeMode.COMPILED, True)]
)
def test_in_16_bits_every_id_of_a_graph_must_agree_and_the_first_of_compiled_steps(
    mode: DecodeMode, is_passed: bool
) -> None:
    """The first 24 of 256 were enough for graphs too."""
    card = Flipping(QUICK)
    bench = card.load("scripted", "cpu", "auto", FULL, lambda _stage: None)

    check = same_as_eager(bench, mode, FULL)

    assert check.is_passed is is_passed
    assert "at least the first 100 of 256 tokens agree" in check.finding


def test_links_in_the_place_of_folder_and_files_stay_links(
    session: Callable[[], Session], tmp_path: Path
) -> None:
    """A link in the place of a file used to be replaced, and one to no folder yet was refused."""
    folder, elsewhere = tmp_path / "report", tmp_path / "elsewhere"
    folder.symlink_to(tmp_path / "made", target_is_directory=True)
    (tmp_path / "made").mkdir()
    elsewhere.mkdir()
    files = (REPORT_FILE, DATA_FILE, RUN_FILE)
    for name in files:
        (folder / name).symlink_to(elsewhere / name)

    report_of(STAGES[:2], session(), folder)

    assert folder.is_symlink()
    assert all((folder / name).is_symlink() for name in files)
    assert (elsewhere / REPORT_FILE).read_text()
    assert json.loads((elsewhere / DATA_FILE).read_text())
    (tmp_path / "new").symlink_to(tmp_path / "not-there-yet")
    report_of(STAGES[:1], session(), tmp_path / "new")
    assert (tmp_path / "not-there-yet" / REPORT_FILE).read_text()


def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(
    session: Callable[[], Session], tmp_path: Path
) -> None:
    (tmp_path / DATA_FILE).mkdir()

    with pytest.raises(InputError, match="is a folder and cannot be written as a file"):
        report_of(STAGES, session(), tmp_path)
    assert not (tmp_path / REPORT_FILE).exists()
