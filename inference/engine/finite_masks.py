"""A mask made for float64 that still masks, and nothing more, in a softmax computed in float32.

Some attention adds the least number of its weights' dtype where a key is not allowed, and forms the
softmax in float32 whatever that dtype is. The least float64 number is minus infinity there, and a
query without any allowed key, which padding on the left is, gives NaN, which spreads to the tokens.
Found with Gemma 2 and BLOOM; true of every model that runs the library's eager attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

SOFTMAXES: frozenset[Callable[..., Any]] = frozenset(
    {nn.functional.softmax, torch.softmax, Tensor.softmax}
)
LEAST = torch.finfo(torch.float32).min


class FiniteMasks(TorchFunctionMode):
    """Keeps float64 scores finite in a float32 softmax while it is entered, as they are in float32.

    A masked key's weight is an exact zero either way; only a query without any key changes.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  whatever torch returns
        """Run a call into torch."""
        named = kwargs or {}
        if func in SOFTMAXES and named.get("dtype") is torch.float32 and args:
            scores = args[0]
            if scores.dtype == torch.float64:
                args = (scores.clamp(min=LEAST), *args[1:])
        return func(*args, **named)
