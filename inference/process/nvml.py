"""A GPU's own counters through NVML; a counter that fails becomes a reason in plain words.

Used by telemetry only. ``pynvml`` (the distribution nvidia-ml-py) is imported when a GPU is first
asked for, so a machine without it, or without a driver, loses these readings and nothing else. One
thread at a time. No torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from inference.process.nvml_counters import COUNTERS, GPU_READINGS, Counter, Reading

NOT_SUPPORTED = 3
FUNCTION_NOT_FOUND = 13
LIBRARY_NOT_FOUND = 12
# Source: nvml.h of NVML 13, nvmlReturn_t, read in pynvml 13.615 on 2026-11-29.
REASONS = {
    1: "the NVIDIA driver closed the connection",
    NOT_SUPPORTED: "not supported by this GPU",
    4: "no permission to read it; ask the machine's administrator, or start the container with it",
    6: "the NVIDIA driver knows no such GPU",
    8: "the GPU's power cable is not connected",
    9: "the NVIDIA driver is not loaded",
    10: "the NVIDIA driver did not answer in time",
    LIBRARY_NOT_FOUND: "no NVIDIA driver on this machine",
    FUNCTION_NOT_FOUND: "this NVIDIA driver is too old to report it",
    15: "the GPU is lost: it does not answer the driver",
    16: "the GPU must be reset before it answers again",
    17: "the operating system or the container blocks it",
    18: "the NVIDIA driver and its library differ in version; restart the machine",
    28: "the NVIDIA driver knows no such GPU",
}
FINAL_FOR_ONE = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND})
FINAL_FOR_ALL = frozenset({1, 15, 16})


OF_WHOLE_GPU = "only known for the whole GPU, and this run has a part of it (MIG)"
OLD_PACKAGE = "the installed nvidia-ml-py is too old to ask for it; update the package"


def reason_for(code: int, *, is_mig: bool = False) -> str:
    """Return why NVML gave no answer, in plain words."""
    if code == NOT_SUPPORTED and is_mig:
        return "not reported for a GPU that is split into instances (MIG)"
    return REASONS.get(code, f"the NVIDIA driver answered with error {code}")


class GpuCounters:
    """One GPU's counters, asked until they fail for good.

    Attributes:
        reasons: Why a reading is missing, by its name; empty while all is well.
        is_found: True when there is a GPU to ask.
        is_memory_shared: True when the GPU has no memory of its own and uses the machine's.
    """

    def __init__(self, gpu: int | str) -> None:
        """Connect to the driver.

        Args:
            gpu: The GPU's UUID, with or without its prefix (CUDA's own number is another than
                NVML's when ``CUDA_VISIBLE_DEVICES`` is set), or its NVML index.
        """
        self.reasons: dict[str, str] = {}
        self.is_found = False
        self.is_memory_shared = False
        self._is_connected = False
        self._is_mig = False
        self._asked: tuple[Counter, ...] = ()
        self._samples = 0
        try:
            self._nvml = import_module("pynvml")
        except ImportError:
            self._give_up("the package nvidia-ml-py is not installed")
            return
        try:
            self._nvml.nvmlInit()
            self._is_connected = True
            self._device = self._find(gpu)
        except self._nvml.NVMLError as error:
            self._give_up(reason_for(error.value))
            return
        self.is_found = True
        is_part = self._is_part()
        self._is_mig = is_part or self._is_split()
        self._asked = COUNTERS
        if self._is_mig:
            self._leave_out_the_whole_gpus(is_part=is_part)

    def read(self) -> dict[str, Reading]:
        """Return the readings that the GPU gave, by name."""
        values: dict[str, Reading] = {}
        for counter in self._asked:
            if not self._asked:
                break  # the previous counter gave up on the GPU
            if self._samples % counter.every == 0:
                values.update(self._ask(counter))
        self._samples += 1
        return values

    def leave_alone(self, reason: str) -> None:
        """Stop reading a GPU that is there, for this reason; one that is not keeps its own."""
        if self.is_found:
            self._give_up(reason)

    def close(self) -> None:
        """Disconnect from the driver."""
        if not self._is_connected:
            return
        self._asked = ()
        self._is_connected = False
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return  # the driver is gone, and the connection with it

    def _ask(self, counter: Counter) -> dict[str, Reading]:
        """Return one counter's readings; note the reason for those that are missing."""
        try:
            values = dict(
                zip(counter.readings, counter.read(self._nvml, self._device), strict=True)
            )
        except self._nvml.NVMLError as error:
            self._note(counter, error.value)
            return {}
        except AttributeError:  # the package has no such function
            self._drop(counter, OLD_PACKAGE)
            return {}
        for reading, value in values.items():
            if value is None:
                self.reasons[reading] = counter.missing
            else:
                self.reasons.pop(reading, None)
        return values

    def _note(self, counter: Counter, code: int) -> None:
        """Keep why a counter failed, and stop reading it where that will not change."""
        if code in FINAL_FOR_ALL:
            self._give_up(reason_for(code))
            return
        for reading in counter.readings:
            self.reasons[reading] = reason_for(code, is_mig=self._is_mig)
        if code in FINAL_FOR_ONE:
            self._drop(counter, reason_for(code, is_mig=self._is_mig))
        if code == NOT_SUPPORTED and "memory_used_bytes" in counter.readings:
            self.is_memory_shared = not self._is_mig

    def _leave_out_the_whole_gpus(self, *, is_part: bool) -> None:
        """Ask nothing that would be answered for the whole GPU, of which this run has a part.

        CUDA sees the parts of a split GPU only. Where it names one by the GPU it belongs to, the
        handle is the whole GPU's.
        """
        for counter in COUNTERS:
            if counter.is_whole_gpus or (counter.is_handles and not is_part):
                self._drop(counter, OF_WHOLE_GPU)

    def _drop(self, counter: Counter, reason: str) -> None:
        """Stop reading one counter for this reason."""
        self._asked = tuple(kept for kept in self._asked if kept is not counter)
        self.reasons |= dict.fromkeys(counter.readings, reason)

    def _give_up(self, reason: str) -> None:
        """Stop reading anything: every reading is missing for this reason."""
        self._asked = ()
        self.reasons = dict.fromkeys(GPU_READINGS, reason)

    def _find(self, gpu: int | str) -> Any:  # noqa: ANN401  # an opaque handle
        """Return NVML's handle of the GPU."""
        nvml = self._nvml
        if isinstance(gpu, int):
            return nvml.nvmlDeviceGetHandleByIndex(gpu)
        if gpu.startswith(("GPU-", "MIG-")):
            return nvml.nvmlDeviceGetHandleByUUID(gpu)
        try:
            return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{gpu}")
        except nvml.NVMLError_NotFound:
            return nvml.nvmlDeviceGetHandleByUUID(f"MIG-{gpu}")

    def _is_part(self) -> bool:
        """Return whether the handle is a part of a split GPU (MIG)."""
        try:
            return bool(self._nvml.nvmlDeviceIsMigDeviceHandle(self._device).value)
        except (self._nvml.NVMLError, AttributeError):
            return False  # the driver or the package is older than split GPUs

    def _is_split(self) -> bool:
        """Return whether the handle is a GPU that is split into parts."""
        nvml = self._nvml
        try:
            return nvml.nvmlDeviceGetMigMode(self._device)[0] == nvml.NVML_DEVICE_MIG_ENABLE
        except (nvml.NVMLError, AttributeError):
            return False  # the error of a GPU that cannot be split, or as above
