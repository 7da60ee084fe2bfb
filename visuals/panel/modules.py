"""The panel's scripts and styles: which files they are, and the version they have together.

The browser imports the modules from addresses that name their version, so that it may keep them
for good and never mixes those of two versions. No page.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

_FOLDER = Path(__file__).parent
_SCRIPTS = _FOLDER / "scripts"
_STYLES = _FOLDER / "styles"
_LOADER = "loader.js"
_STYLE_ORDER = (  # of two rules that weigh the same the later one holds
    "base",
    "head",
    "panels",
    "weight_reuse",
    "tokens",
    "tip",
    "windows",
    "batch",
    "attention",
    "cache_account",
    "next_token",
    "some",
    "present",
)
_DIGEST_LETTERS = 16


@cache
def modules() -> dict[str, bytes]:
    """Return every module that the browser imports, by its file name."""
    paths = sorted(_SCRIPTS.glob("*.js"))
    return {path.name: path.read_bytes() for path in paths if path.name != _LOADER}


@cache
def all_scripts() -> dict[str, bytes]:
    """Return every module by its path from the scripts' folder, those of a page by itself too."""
    return {
        path.relative_to(_SCRIPTS).as_posix(): path.read_bytes()
        for path in sorted(_SCRIPTS.rglob("*.js"))
    }


@cache
def panel_version() -> str:
    """Return the digest of all modules, by which their addresses change with any of them."""
    digest = sha256()
    for name, content in modules().items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGEST_LETTERS]


def vega_version() -> str:
    """Return the version of the chart library: that of the package which makes it."""
    return version("vl-convert-python")


def loader() -> str:
    """Return the script that Streamlit runs; it imports the modules."""
    return (_SCRIPTS / _LOADER).read_text(encoding="utf-8")


def player_styles() -> str:
    """Return the style sheet around the panel in a page that plays a run by itself."""
    return (_STYLES / "player.css").read_text(encoding="utf-8")


def loading_styles() -> str:
    """Return the style sheet of the loading line."""
    return (_STYLES / "loading.css").read_text(encoding="utf-8")


def badge_styles() -> str:
    """Return the style sheet of the badge beside the model's name."""
    return (_STYLES / "badge.css").read_text(encoding="utf-8")


def server_styles() -> str:
    """Return the style sheet of the line about a server that is gone."""
    return (_STYLES / "server.css").read_text(encoding="utf-8")


def term_styles() -> str:
    """Return the style sheet of the card that explains a term."""
    return (_STYLES / "terms.css").read_text(encoding="utf-8")


def styles() -> str:
    """Return all styles of the live panel as one sheet."""
    return "\n".join((_STYLES / f"{name}.css").read_text(encoding="utf-8") for name in _STYLE_ORDER)
