"""What the C source and its callers must agree on: structures, limits and functions. No torch.

Both sides write them down, so a library says what it was compiled with, and one that says something
else than this file is refused: a slip would otherwise overwrite memory.
"""

from __future__ import annotations

import ctypes

from inference.kernels.unavailable import UnavailableError
from inference.records.errors import first_line

Int = ctypes.c_int64
Pointer = ctypes.c_void_p

MOST_ROWS = 16
MOST_GROUP = 16
MOST_HEAD_DIM = 256
CHUNK_BYTES = 98_304
# What weights, keys and values are kept in: the numbers that kernels_kept.h gives the formats.
NUMBER_FORMATS = {"float32": 0, "float16": 1, "bfloat16": 2, "q8_0": 3, "q4_0": 4, "q4_1": 5}
BLOCKS = frozenset({"q8_0", "q4_0", "q4_1"})


class Layer(ctypes.Structure):
    """Sizes and weights of one decoder layer."""

    _fields_ = (
        *[(name, Int) for name in ("hidden", "heads", "kv_heads", "head_dim", "intermediate")],
        *[(name, ctypes.c_float) for name in ("eps", "scale")],
        *[(name, Pointer) for name in ("norm", "q", "k", "v", "q_bias", "k_bias", "v_bias")],
        *[(name, Pointer) for name in ("o", "o_bias", "mlp_norm", "gate", "up", "down")],
    )


class Stored(ctypes.Structure):
    """Where one layer's keys and values are."""

    _fields_ = (
        *[(name, Pointer) for name in ("keys", "values")],
        *[(name, Int) for name in ("key_row", "key_head", "value_row", "value_head", "tokens")],
        ("mask", Pointer),
        ("mask_row", Int),
    )


class Step(ctypes.Structure):
    """What one call is fed and where it puts the result."""

    _fields_ = (
        *[(name, Int) for name in ("rows", "layers")],
        *[(name, Pointer) for name in ("input", "output", "cosines", "sines")],
        ("angle_row", Int),
        *[(name, Pointer) for name in ("scratch", "counters", "part_s")],
    )


# By the name of the C constant that holds the same.
AGREED = {
    "layer_bytes": ctypes.sizeof(Layer),
    "stored_bytes": ctypes.sizeof(Stored),
    "step_bytes": ctypes.sizeof(Step),
    "most_rows": MOST_ROWS,
    "most_group": MOST_GROUP,
    "most_head_dim": MOST_HEAD_DIM,
    "chunk_bytes": CHUNK_BYTES,
}


def check_agreement(library: ctypes.CDLL, numbers: str) -> None:
    """Raise UnavailableError unless the library was compiled with what this file says.

    Args:
        library: As loaded.
        numbers: The format of ``NUMBER_FORMATS`` that its callers will give it.
    """
    for name, expected in (AGREED | {"number_format": NUMBER_FORMATS[numbers]}).items():
        try:
            compiled = Int.in_dll(library, name).value
        except ValueError as error:
            msg = f"the compiled kernels do not say their {name}"
            raise UnavailableError(msg) from error
        if compiled != expected:
            msg = f"the compiled kernels have {name} {compiled} where their callers have {expected}"
            raise UnavailableError(msg)


def declare(library: ctypes.CDLL, numbers: str) -> None:
    """Give the functions of a library for a format of numbers their types.

    Raises:
        UnavailableError: It lacks one.
    """
    try:
        for name in ("scratch_floats", "counter_bytes", "lane_count", "pool_threads"):
            getattr(library, name).restype = Int
        library.scratch_floats.argtypes = (Pointer, Int, Int)
        library.counter_bytes.argtypes = (Int,)
        library.set_pool_threads.argtypes = (Int,)
        library.decode_layers.argtypes = (Pointer, Pointer, Pointer)
        library.linear.argtypes = (*[Pointer] * 4, *[Int] * 3)
        library.read_streams.argtypes = (Pointer, Int)
        library.read_streams.restype = ctypes.c_float
        library.describe.argtypes = (Pointer, *[Int] * 3, *[Pointer] * 3)
        returns_nothing = ["set_pool_threads", "decode_layers", "linear", "describe"]
        if numbers in BLOCKS:
            library.widen.argtypes = (Pointer, Int, Int, Pointer)
            returns_nothing.append("widen")
        for name in returns_nothing:
            getattr(library, name).restype = None
    except AttributeError as error:
        msg = f"the compiled kernels lack a function ({first_line(error)})"
        raise UnavailableError(msg) from error
