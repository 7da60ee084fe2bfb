"""The seams hold when modules are really loaded, re-exports and lazy imports included."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH = ("torch", "transformers")
DRAWING = ("streamlit", "altair", "pandas")

# Whole packages, and of the packages that hold both kinds the modules that the app process loads.
WITHOUT_TORCH = (
    "inference.records",
    "inference.storage",
    "inference.counting",
    "inference.figures",
    "inference.prompts",
    "inference.remote",
    "inference.runs",
    "inference.models.catalog",
    "inference.models.chat_templates",
    "inference.models.hf_hub",
    "inference.models.model_files",
    "inference.models.tokenization",
    "inference.engine.batch",
    "inference.engine.scheduler",
    "inference.engine.request_checks",
    "inference.models.memory_limit",
    "inference.models.process_memory",
    "inference.process.client",
    "inference.process.messages",
    "inference.process.nvml",
    "inference.process.nvml_counters",
    "inference.process.orders",
    "inference.process.telemetry",
    "visuals",
    "app",
)
MEASURING = ("inference",)
PROGRAMS = ("inference.__main__",)  # modules that run something when they are loaded


def modules_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modules named, and all that the packages among them hold, in order."""
    found: list[str] = []
    for name in names:
        found.append(name)
        folder = ROOT.joinpath(*name.split("."))
        if folder.is_dir():
            found += [each.name for each in pkgutil.walk_packages([str(folder)], f"{name}.")]
    return tuple(name for name in found if name not in PROGRAMS)


def first_that_loads(modules: tuple[str, ...], suspects: tuple[str, ...]) -> str:
    """Return the first module whose import, in order, brings in a suspect; empty when none does."""
    script = (
        "import importlib, sys\n"
        f"for module in {modules!r}:\n"
        "    importlib.import_module(module)\n"
        f"    found = [name for name in {suspects!r} if name in sys.modules]\n"
        "    if found:\n"
        "        print(module, 'loads', *found)\n"
        "        break\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_records_arithmetic_and_pages_load_no_torch() -> None:
    assert first_that_loads(modules_of(WITHOUT_TORCH), TORCH) == ""


def test_nothing_that_measures_loads_what_draws() -> None:
    assert first_that_loads(modules_of(MEASURING), DRAWING) == ""


def test_a_package_stands_for_all_its_modules() -> None:
    named = modules_of(("inference.records", "inference.engine.clock"))

    assert "inference.records.steps" in named
    assert named[-1] == "inference.engine.clock"


def test_a_module_that_loads_a_suspect_is_named() -> None:
    modules = ("inference.records.errors", "inference.records.run")

    found = first_that_loads(modules, ("inference.records.run",))

    assert found == "inference.records.run loads inference.records.run"


def test_every_package_says_what_it_holds() -> None:
    packages = [*ROOT.glob("inference/**/__init__.py"), *ROOT.glob("visuals/**/__init__.py")]

    assert len(packages) > 10
    assert [path for path in packages if not path.read_text().startswith('"""')] == []


def test_no_test_module_is_imported_by_another() -> None:
    """What several tests need is in a module that holds no test: doubles, builders, a conftest."""
    imported = re.compile(r"\b(?:from|import) tests\.(?:\w+\.)*test_\w+")
    found = {
        str(path.relative_to(ROOT)): imported.findall(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.glob("tests/**/*.py"))
    }

    assert len(found) > 100
    assert {path: names for path, names in found.items() if names} == {}


def test_warnings_are_errors_and_every_test_has_a_time_limit() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    options = tools["pytest"]["ini_options"]

    assert options["filterwarnings"] == ["error"]
    assert 0 < options["timeout"] <= 120


def test_a_missing_browser_fails_where_changes_are_checked() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    skips = [
        path.name
        for path in ROOT.glob("tests/browser/**/*.py")
        if "skip" in path.read_text(encoding="utf-8")
    ]

    assert "export CI=true" in script
    assert "make test" in script
    assert skips == []
