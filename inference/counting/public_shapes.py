"""The shapes of the models whose configs are built in, so that a page can count them at once.

Made from the configs by ``tests/golden/make_public_shapes.py``, which needs torch; a test holds the
two together. No torch.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from inference.counting.public_configs import public_config_names
from inference.records.errors import InputError
from inference.records.model import ModelShape

SHAPES_FILE = Path(__file__).parents[2] / "assets" / "shapes.json"
# Shapes differ with the bytes of a number only, so float16 has those of bfloat16.
STORED_DTYPES = {"bfloat16": "bfloat16", "float16": "bfloat16", "float32": "float32"}


def public_shape(name: str, dtype: str) -> ModelShape:
    """Return the sizes of a built-in model with weights and K/V in this dtype.

    Raises:
        InputError: There is no such model or dtype.
    """
    if dtype not in STORED_DTYPES:
        msg = f"dtype {dtype} is not one of {', '.join(STORED_DTYPES)}"
        raise InputError(msg)
    shape = _shapes().get(name, {}).get(STORED_DTYPES[dtype])
    if shape is None:
        msg = f"there is no built-in model {name!r}; choose one of "
        msg += ", ".join(public_config_names())
        raise InputError(msg)
    return shape


@cache
def _shapes() -> dict[str, dict[str, ModelShape]]:
    content = json.loads(SHAPES_FILE.read_text(encoding="utf-8"))
    return TypeAdapter(dict[str, dict[str, ModelShape]]).validate_python(content["shapes"])
