"""Decode near the memory's own rate: kernels installed into a loaded model, and taken out again.

``install`` replaces the forward of decoder layers and of linear layers for small steps, from
outside; larger ones, and whatever the kernels do not fit, run the model's own code. A kernel is
used only after it has agreed with that code on this machine, see ``self_check``; one that has not
is left out, and the report says which and why. The kernels are in kernels.c.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from inference.kernels.abi import BLOCKS, MOST_ROWS
from inference.kernels.block_weights import (
    PLAIN,
    BlockLinear,
    Widen,
    block_product,
    model_block_format,
    weight_numbers,
)
from inference.kernels.build import kernel_library, number_format
from inference.kernels.description import description_obstacle, scores_library
from inference.kernels.fused_layers import (
    FusedLayers,
    address_of,
    is_counted,
    layer_obstacle,
)
from inference.kernels.model_layers import decoder_layers
from inference.kernels.self_check import fused_if_agreeing, linear_disagreement
from inference.kernels.unavailable import UnavailableError
from inference.kernels.wide_products import is_widened, wide_product

NOT_FUSED = "attention is the library's own, as asked"
SWITCHED_OFF = "the library's own: kernels are switched off"
INSTALLED = "_token_by_token_kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """What was installed.

    Attributes:
        layers: Decoder layers that run as one call.
        linears: Linear layers with a kernel of their own, used wherever no layer runs as one call.
        lanes: Floats in one vector of the processor.
        threads: Threads that share a step.
        numbers: What weights, keys and values are kept in.
        is_widened: Larger steps multiply in float32, as the library's 16-bit products are slow.
        reason: Why there is none, or what is left to the library and why; empty when nothing is.
    """

    layers: int = 0
    linears: int = 0
    lanes: int = 0
    threads: int = 0
    numbers: str = "float32"
    is_widened: bool = False
    reason: str = ""

    @property
    def is_used(self) -> bool:
        """True when anything was installed."""
        return self.layers + self.linears > 0

    @property
    def text(self) -> str:
        """What a run was computed with, in a few words."""
        if not self.is_used:
            return f"the library's own: {self.reason}"
        parts = [f"{self.layers} fused layers"] if self.layers else []
        parts += [f"{self.linears} linear layers"] if self.linears else []
        what = f"own kernels for steps of 1 to {MOST_ROWS} rows: {' and '.join(parts)}, "
        what += f"{self.lanes * 32}-bit vectors, {self.threads} threads"
        if self.numbers != "float32":
            kept = "weights" if self.numbers in BLOCKS else "weights and K/V"
            what += f"; {self.numbers} {kept}, float32 arithmetic"
        if self.is_widened:
            what += "; larger steps widen weights to float32 for the library's products"
        return f"{what}; {self.reason}" if self.reason else what


class _Installed:
    """What was put into one model."""

    def __init__(self) -> None:
        self.fused: FusedLayers | None = None
        self.linears: list[nn.Linear] = []

    def remove(self) -> None:
        for module in self._modules():
            module.__dict__.pop("forward", None)

    @property
    def is_used(self) -> bool:
        """True when any module has a kernel."""
        return bool(self._modules())

    def suspend(self) -> list[tuple[nn.Module, object]]:
        """Give the model its own code back and return what to put in place again."""
        taken = [(module, module.__dict__["forward"]) for module in self._modules()]
        self.remove()
        return taken

    def _modules(self) -> list[nn.Module]:
        fused = [] if self.fused is None else list(self.fused.modules)
        return [*fused, *self.linears]


def install(
    model: PreTrainedModel, library: ctypes.CDLL | None = None, *, is_fused: bool = True
) -> KernelReport:
    """Put the kernels into the model where they fit and are right, and say what was done.

    Args:
        model: Any; one that the kernels do not fit is left as it is.
        library: The kernels as compiled for the model's dtype; those for this processor by default.
        is_fused: Let whole layers, their attention included, run as one call.
    """
    remove(model)
    if model.device.type == "cpu":
        scores_library()  # may compile for seconds: here, and not between the steps of a run
    if model.device.type != "cpu":
        return KernelReport(reason=f"the kernels are for a CPU, not {model.device.type}")
    try:
        numbers = str(model_block_format(model) or number_format(model.dtype))
        library = library or kernel_library(numbers)
    except UnavailableError as error:
        return KernelReport(reason=str(error))
    installed = _Installed()
    setattr(model, INSTALLED, installed)
    layers = decoder_layers(model)
    kernels = (library, numbers)
    not_fused = _fuse(model, layers, kernels, installed) if is_fused else NOT_FUSED
    reasons = [not_fused, *_replace_linears(model, kernels, installed), description_obstacle()]
    return KernelReport(
        layers=0 if not_fused else len(layers),
        linears=len(installed.linears),
        lanes=library.lane_count(),
        threads=library.pool_threads(),
        numbers=numbers,
        is_widened=is_widened(model.dtype) and bool(installed.linears),
        reason="; ".join(filter(None, reasons)),
    )


def switched_off(model: PreTrainedModel) -> str:
    """Make ready what describes scores whatever the model runs on, and say that nothing else is."""
    if model.device.type == "cpu":
        scores_library()
    return SWITCHED_OFF


def remove(model: PreTrainedModel) -> None:
    """Give the model its own code back."""
    installed: _Installed | None = model.__dict__.pop(INSTALLED, None)
    if installed is not None:
        installed.remove()


@contextmanager
def library_code(model: PreTrainedModel) -> Generator[None]:
    """Let the model run its own code inside, and the kernels again after it."""
    installed: _Installed | None = model.__dict__.get(INSTALLED)
    suspended = [] if installed is None else installed.suspend()
    try:
        yield
    finally:
        for module, forward in suspended:
            setattr(module, "forward", forward)  # noqa: B010  not the class's


def is_installed(model: PreTrainedModel) -> bool:
    """Return whether any kernel is in the model."""
    installed: _Installed | None = model.__dict__.get(INSTALLED)
    return installed is not None and installed.is_used


def fused_layers(model: PreTrainedModel) -> FusedLayers | None:
    """Return the layers that run as one call; None where none do."""
    installed: _Installed | None = model.__dict__.get(INSTALLED)
    return None if installed is None else installed.fused


def _fuse(
    model: PreTrainedModel,
    layers: list[nn.Module],
    kernels: tuple[ctypes.CDLL, str],
    installed: _Installed,
) -> str:
    """Fuse the layers and return an empty string, or why they are left as they are."""
    if not layers:
        return "its layers are in no list"
    library, numbers = kernels
    lanes = library.lane_count()
    obstacles = (layer_obstacle(layer, lanes, numbers) for layer in layers)
    obstacle = next(filter(None, obstacles), "")
    if obstacle:
        return obstacle
    fused = fused_if_agreeing(model, layers, library)
    if isinstance(fused, str):
        return fused
    installed.fused = fused
    return ""


def _replace_linears(
    model: PreTrainedModel, kernels: tuple[ctypes.CDLL, str], installed: _Installed
) -> list[str]:
    """Give linear layers their kernels; return why those of some sizes are left as they are."""
    library, numbers = kernels
    lanes = library.lane_count()
    obstacles: dict[tuple[int, int, bool], str] = {}
    for module in model.modules():
        if not isinstance(module, nn.Linear) or not _fits(module, lanes, numbers):
            continue
        kernel = _linear_forward(module, library)
        size = (module.in_features, module.out_features, address_of(module.bias) is not None)
        if size not in obstacles:
            obstacles[size] = linear_disagreement(module, kernel, library)
        if not obstacles[size]:
            setattr(module, "forward", kernel)  # noqa: B010  not the class's
            installed.linears.append(module)
    return list(dict.fromkeys(obstacles.values()))


def _fits(linear: nn.Linear, lanes: int, numbers: str) -> bool:
    weight = linear.weight
    return (
        type(linear) in PLAIN
        and linear.in_features % lanes == 0
        and "forward" not in linear.__dict__  # somebody else's code would be left out
        and weight_numbers(weight) == numbers
        and weight.device.type == "cpu"
        and weight.is_contiguous()
    )


def _linear_forward(linear: nn.Linear, library: ctypes.CDLL) -> Callable[[Tensor], Tensor]:
    """Return a forward that gives small inputs to the kernel, no large ones to slow products."""
    own = linear.forward
    width, out_width = linear.in_features, linear.out_features
    dtype = linear.weight.dtype
    large = partial(_widened, linear) if is_widened(dtype) else own
    if isinstance(linear, BlockLinear):
        dtype = torch.float32
        large = partial(block_product, layer=linear, widen=_widen_by(library, width))
    kernel = library.linear

    def forward(input: Tensor) -> Tensor:
        if is_counted():
            return own(input)
        rows = input.numel() // width
        weight = linear.weight
        is_learning = torch.is_grad_enabled() and (input.requires_grad or weight.requires_grad)
        if rows == 0 or input.dtype is not dtype or is_learning:
            return own(input)
        if rows > MOST_ROWS:
            return large(input)
        given = input.to(torch.float32).contiguous()
        output = given.new_empty((*input.shape[:-1], out_width))
        kernel(
            weight.data_ptr(),
            address_of(linear.bias),
            given.data_ptr(),
            output.data_ptr(),
            rows,
            width,
            out_width,
        )
        return output.to(dtype)

    return forward


def _widen_by(library: ctypes.CDLL, width: int) -> Widen:
    """Return what makes rows of blocks float32."""

    def widen(blocks: Tensor) -> Tensor:
        numbers = torch.empty((len(blocks), width))
        library.widen(blocks.data_ptr(), len(blocks), width, numbers.data_ptr())
        return numbers

    return widen


def _widened(linear: nn.Linear, input: Tensor) -> Tensor:
    return wide_product(input, linear.weight, linear.bias).to(input.dtype)
