"""The browser's modules as one script, for a page that is opened from a file.

A browser imports no module from a file's address, so each becomes a function of its own, in the
order in which they need each other. Only the forms of ``import`` and ``export`` that the panel's
modules have are known; another one is an error, and no guess. No page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import dirname, join, normpath

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async function|function\*?|class|const) (\w+)\b)", re.MULTILINE
)
_UNKNOWN = re.compile(r"^\s*(?:import|export)\b(?!\().*$", re.MULTILINE)


def one_script(entry: str, scripts: Mapping[str, bytes]) -> str:
    """Return a module with everything that one needs, and nothing to be imported.

    Args:
        entry: The path of a module.
        scripts: All modules by their paths.

    Raises:
        ValueError: Modules need each other in a circle, or one has a form that is not known.
    """
    texts = {name: content.decode() for name, content in scripts.items()}
    order: list[str] = []
    _add(entry, texts, order, ())
    return "const modules = {};\n" + "".join(_function(name, texts[name]) for name in order)


def _add(name: str, texts: Mapping[str, str], order: list[str], within: tuple[str, ...]) -> None:
    """Append a module behind all that it needs."""
    if name in within:
        msg = f"modules need each other in a circle: {' -> '.join((*within, name))}"
        raise ValueError(msg)
    if name in order:
        return
    for _names, needed in _IMPORT.findall(texts[name]):
        _add(_path(name, needed), texts, order, (*within, name))
    order.append(name)


def _function(name: str, text: str) -> str:
    """Return a module as a function that is called at once and returns what it exports."""
    text = _IMPORT.sub(lambda found: _taken(name, found), text)
    exported = [found.group(1) for found in _EXPORT.finditer(text)]
    text = _EXPORT.sub("", text)
    unknown = _UNKNOWN.search(text)
    if unknown is not None:
        msg = f"{name}: this form of import or export is not known: {unknown.group().strip()}"
        raise ValueError(msg)
    body = f"{text}return {{ {', '.join(exported)} }};\n"
    return f'modules["{name}"] = (() => {{\n{body}}})();\n'


def _taken(name: str, found: re.Match[str]) -> str:
    """Return an import as what is taken from the module that was called before."""
    names = re.sub(r"(\w+) as (\w+)", r"\1: \2", " ".join(found.group(1).split()))
    return f'const {{ {names} }} = modules["{_path(name, found.group(2))}"];\n'


def _path(name: str, needed: str) -> str:
    return normpath(join(dirname(name), needed))
