"""The format in which each module is stored, by a config's ``quantization_config``. No torch.

One format for all linear layers is usual; files of mixed precision name one for each module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from inference.counting.config_sizes import whole_number
from inference.counting.module_names import Names

HALF_BYTE = 4
KNOWN_BITS = (2, 3, 4, 8)
LONGEST_NUMBER = 6
LEFT_OUT = (
    "modules_to_not_convert",
    "ignore",
    "ignored_layers",
    "exclude_modules",
    "llm_int8_skip_modules",
)
HEAD = "lm_head"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFormat:
    """How a weight is stored.

    Attributes:
        name: What people call it.
        bits: Of one weight.
        group: Weights of one scale; None for one scale in all, which is not counted.
        scale_bits: Of a group's scale and zero point.
    """

    name: str
    bits: int
    group: int | None = None
    scale_bits: int = 0

    def stored_bits(self, weights: int) -> int:
        """Return the bits of so many weights, scales included."""
        groups = -(-weights // self.group) if self.group else 0
        return weights * self.bits + groups * self.scale_bits


MXFP4 = StoredFormat(name="MXFP4", bits=4, group=32, scale_bits=8)
NVFP4 = StoredFormat(name="NVFP4", bits=4, group=16, scale_bits=8)
MXFP8 = StoredFormat(name="MXFP8", bits=8, group=32, scale_bits=8)
FP8 = StoredFormat(name="FP8", bits=8)
INT8 = StoredFormat(name="INT8", bits=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFormats:
    """The format of every module of a model.

    Attributes:
        base: Of linear layers that nothing else is said of; None for 16 bits.
        skipped: Modules that stay in 16 bits.
        own: Modules with a format of their own.
    """

    base: StoredFormat | None
    skipped: Names
    own: tuple[tuple[Names, StoredFormat], ...] = ()

    @property
    def name(self) -> str:
        """What people call the formats."""
        names = [one.name for _, one in self.own] + ([self.base.name] if self.base else [])
        several = ", ".join(dict.fromkeys(names))
        return f"mixed: {several}" if len(set(names)) > 1 else several

    def of_layer(self, name: str, layer: int) -> StoredFormat | None:
        """Return the format of a decoder layer's linear module; None for 16 bits."""
        return self._of(f"layers.{layer}.{name}")

    def of_head(self) -> StoredFormat | None:
        """Return the format of the output head, which is stored in fewer bits only if named."""
        return next((stored for names, stored in self.own if names.has_exactly(HEAD)), None)

    def _of(self, full: str) -> StoredFormat | None:
        stored = next((stored for names, stored in self.own if names.has(full)), None)
        if stored is not None:
            return stored
        return None if self.skipped.has(full) else self.base


def module_formats(quantization: Mapping[str, object]) -> ModuleFormats | None:
    """Return the formats that a ``quantization_config`` states; None where they are not known."""
    skipped = Names(one for each in LEFT_OUT for one in _list(quantization.get(each)))
    own = tuple(_of_layers(quantization)) or tuple(_of_groups(quantization))
    base = _base(quantization)
    if base is None and not own:
        return None
    return ModuleFormats(base=base, skipped=skipped, own=own)


def _base(quantization: Mapping[str, object]) -> StoredFormat | None:
    method = str(quantization.get("quant_method", "")).lower()
    algorithm = str(quantization.get("quant_algo", "")).upper()
    by_algorithm = _of_algorithm(algorithm, quantization)
    if method in ("fp8", "fbgemm_fp8"):
        return _fp8(quantization)
    if method == "mxfp4":
        return MXFP4
    if by_algorithm is not None:
        return by_algorithm
    if method in ("awq", "gptq", "gptq_marlin", "awq_marlin"):
        return _grouped(method.removesuffix("_marlin").upper(), quantization)
    if method in ("compressed-tensors", "modelopt"):
        groups = [group for group, targets in _groups(quantization) if _is_for_all(targets)]
        return groups[0] if groups else None
    return _bitsandbytes(quantization)


def _of_algorithm(algorithm: str, fields: Mapping[str, object]) -> StoredFormat | None:
    """Return the format of an algorithm's name as NVIDIA's ModelOpt writes it."""
    if "NVFP4" in algorithm:
        return NVFP4
    if algorithm.startswith("MXFP4"):
        return MXFP4
    if algorithm.startswith("MXFP8"):
        return MXFP8
    if algorithm.startswith("FP8"):
        return _fp8(fields)
    if algorithm.startswith(("W4A16", "W4A8", "INT4")):
        group = _number(fields.get("group_size")) or 128
        return StoredFormat(name="INT4", bits=4, group=group, scale_bits=16)
    return INT8 if algorithm.startswith(("INT8", "W8A8", "W8A16")) else None


def _of_layers(quantization: Mapping[str, object]) -> Iterator[tuple[Names, StoredFormat]]:
    """Yield the modules of each format where a file lists them one by one."""
    listed = quantization.get("quantized_layers")
    named: dict[StoredFormat, list[object]] = {}
    for name, fields in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(fields, Mapping):
            stored = _of_algorithm(str(fields.get("quant_algo", "")).upper(), fields)
            if stored is not None:
                named.setdefault(stored, []).append(name)
    for stored, names in named.items():
        yield Names(names), stored


def _of_groups(quantization: Mapping[str, object]) -> Iterator[tuple[Names, StoredFormat]]:
    for stored, targets in _groups(quantization):
        if not _is_for_all(targets):
            yield Names(targets), stored


def _groups(quantization: Mapping[str, object]) -> Iterator[tuple[StoredFormat, list[object]]]:
    groups = quantization.get("config_groups")
    for part in groups.values() if isinstance(groups, Mapping) else ():
        weights = part.get("weights") if isinstance(part, Mapping) else None
        stored = _of_weights(weights) if isinstance(weights, Mapping) else None
        if stored is not None:
            yield stored, _list(part.get("targets")) or ["Linear"]


def _is_for_all(targets: list[object]) -> bool:
    return "Linear" in targets


def _of_weights(weights: Mapping[str, object]) -> StoredFormat | None:
    bits = _number(weights.get("num_bits"))
    if bits not in KNOWN_BITS:
        return None
    group = _number(weights.get("group_size"))
    kind = str(weights.get("type", "int"))
    if kind == "float" and bits == HALF_BYTE:
        return NVFP4 if group == NVFP4.group else replace(MXFP4, group=group or MXFP4.group)
    has_zero = weights.get("symmetric") is False
    return StoredFormat(
        name=f"{'FP' if kind == 'float' else 'INT'}{bits}",
        bits=bits,
        group=group if group and group > 0 else None,
        scale_bits=16 + (bits if has_zero else 0),
    )


def _fp8(quantization: Mapping[str, object]) -> StoredFormat:
    block = quantization.get("weight_block_size")
    sizes = [_number(one) or 0 for one in block] if isinstance(block, list) else []
    group = sizes[0] * sizes[1] if len(sizes) == 2 else None  # noqa: PLR2004  rows and columns
    return replace(FP8, group=group or None, scale_bits=32)


def _grouped(name: str, quantization: Mapping[str, object]) -> StoredFormat | None:
    bits = _number(quantization.get("bits", quantization.get("w_bit")))
    if bits not in KNOWN_BITS:
        return None
    group = _number(quantization.get("group_size", quantization.get("q_group_size")))
    is_grouped = group is not None and group > 0
    return StoredFormat(
        name=f"{name}, {bits} bits",
        bits=bits,
        group=group if is_grouped else None,
        scale_bits=16 + bits,
    )


def _bitsandbytes(quantization: Mapping[str, object]) -> StoredFormat | None:
    if quantization.get("load_in_4bit") is True:
        one = StoredFormat(name="bitsandbytes, 4 bits", bits=4, group=64, scale_bits=32)
        is_double = quantization.get("bnb_4bit_use_double_quant") is True
        return replace(one, group=64 * 256, scale_bits=8 * 256 + 32) if is_double else one
    if quantization.get("load_in_8bit") is True:
        return StoredFormat(name="bitsandbytes, 8 bits", bits=8)
    return None


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _number(value: object) -> int | None:
    """Return a whole number, which some of these files write as text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) <= LONGEST_NUMBER else None
    return whole_number(value)
