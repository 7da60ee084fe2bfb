"""Writes ``assets/shapes.json``: run ``python -m tests.golden.make_public_shapes``."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from inference.counting.public_configs import public_config, public_config_names
from inference.counting.public_shapes import SHAPES_FILE, STORED_DTYPES
from inference.models.config_shapes import shape_of_config
from inference.records.model import ModelShape


def content() -> dict[str, object]:
    """Return the file's content, made anew from every built-in config."""
    adapter = TypeAdapter(ModelShape)
    return {
        "made_by": "python -m tests.golden.make_public_shapes, from assets/configs",
        "shapes": {
            name: {
                dtype: adapter.dump_python(
                    shape_of_config(public_config(name), dtype), mode="json", exclude_defaults=True
                )
                for dtype in dict.fromkeys(STORED_DTYPES.values())
            }
            for name in public_config_names()
        },
    }


if __name__ == "__main__":
    text = json.dumps(content(), separators=(",", ":"), ensure_ascii=False)
    SHAPES_FILE.write_text(f"{text}\n", encoding="utf-8")
