"""What README and ARCHITECTURE say of files, commands, settings and kinds of file holds."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from inference.__main__ import COMMANDS
from inference.prompts.prompt_files import MAX_BYTES, MAX_PROMPTS, SUFFIXES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SHORT_FOR = ("inference", "visuals")  # a path may be named from inside either of them


def named_paths(text: str) -> list[str]:
    """Return the file and folder names between backticks, those with placeholders left out."""
    spans = re.findall(r"`([\w./-]+(?:\.(?:py|js|md|toml|json|txt|c|html)|/))`", text)
    return sorted(set(spans))


def options_of(command: str) -> set[str]:
    """Return the long options that a subcommand takes."""
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    for each in COMMANDS:
        each.add_parser(subparsers)
    return set(subparsers.choices[command]._option_string_actions)


def command_names() -> set[str]:
    """Return the names of the commands, which are those of their modules."""
    modules = (command.__name__.rpartition(".")[2] for command in COMMANDS)
    return {name.replace("_", "-") for name in modules}


def command_rows() -> list[tuple[str, str]]:
    """Return the name and the whole row of each command in README's table."""
    rows = re.findall(r"^\| `([\w-]+)((?: [^`]*)?)` \|(.*)\|$", README, re.MULTILINE)
    names = command_names()
    return [(name, usage + text) for name, usage, text in rows if name in names]


def test_every_path_that_the_architecture_names_exists() -> None:
    paths = named_paths(ARCHITECTURE)

    assert len(paths) > 40
    assert [path for path in paths if not exists(path)] == []


def exists(path: str) -> bool:
    """Return whether a path is there, from the root or from inside a package."""
    return any((ROOT / start / path).exists() for start in ("", *SHORT_FOR, "tests"))


def test_every_package_has_a_row_in_the_architecture() -> None:
    packages = [
        path.parent.relative_to(ROOT).as_posix()
        for side in SHORT_FOR
        for path in ROOT.glob(f"{side}/*/__init__.py")
    ]

    assert len(packages) > 15
    assert [name for name in packages if f"| `{name}/` |" not in ARCHITECTURE] == []


def test_every_make_target_that_readme_names_exists() -> None:
    targets = set(re.findall(r"`?make ([a-z]+)", README))

    assert {"run", "test", "check", "gpu"} <= targets
    assert [name for name in targets if f"\n{name}:" not in MAKEFILE] == []


def test_every_command_has_a_row_in_readme() -> None:
    assert {name for name, _row in command_rows()} == command_names()


@pytest.mark.parametrize(("name", "row"), command_rows(), ids=lambda value: value.split()[0])
def test_a_command_takes_every_option_that_readme_gives_it(name: str, row: str) -> None:
    options = set(re.findall(r"--[a-z][a-z-]*", row))

    assert options - options_of(name) == set()


def test_every_setting_that_readme_names_is_read_and_none_is_missing() -> None:
    named = set(re.findall(r"TOKEN_BY_TOKEN_[A-Z_]+", README))
    sources = [*ROOT.glob("inference/**/*.py"), *ROOT.glob("visuals/**/*.py")]
    read = {
        name
        for path in sources
        for name in re.findall(r"TOKEN_BY_TOKEN_[A-Z_]+", path.read_text(encoding="utf-8"))
    }

    assert named == read
    assert named


def test_the_kinds_of_prompt_file_and_their_limits_are_those_of_the_reader() -> None:
    kinds = set(re.findall(r"`\.([a-z]+)`", README))

    assert kinds & set(SUFFIXES) == set(SUFFIXES)
    assert f"{MAX_BYTES >> 20} MB" in README
    assert f"beyond {MAX_PROMPTS:,}" in README


def test_every_picture_and_document_that_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_readme_names_the_pins_it_rests_on() -> None:
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")

    for release in re.findall(r"torch (\d+\.\d+\.\d+)", README):
        assert f"torch=={release}" in pins
    assert "torch" in README
