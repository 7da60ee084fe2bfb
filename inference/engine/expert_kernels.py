"""Which kernels a mixture of experts computes with, as the library's own ``generate`` chooses them.

Off the CPU ``generate`` feeds the prompt with grouped products and decodes with batched ones, which
are faster for few tokens and ask the device for nothing on the way, so that a step can be recorded.
Source: transformers 5.24, generation/utils.py, ``_optimize_model_for_decode``.
"""

from __future__ import annotations

from transformers import PreTrainedModel

FOR_PROMPTS = "grouped_mm"
FOR_DECODE = "batched_mm"


class ExpertKernels:
    """Switches a model's experts between prompts and decode; does nothing for other models."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._given: dict[str, str | None] = {}
        self._is_decode = False
        # Releases before 5.24 have one implementation only.
        has_choice = hasattr(model, "get_experts_implementation")
        if has_choice and model.device.type != "cpu":
            self._given = model.get_experts_implementation()

    def use(self, *, is_decode: bool) -> None:
        """Compute the next passes as decode steps, or as prompts."""
        if FOR_PROMPTS not in self._given.values() or is_decode == self._is_decode:
            return
        chosen = {
            part: FOR_DECODE if is_decode and name == FOR_PROMPTS else name
            for part, name in self._given.items()
        }
        self._model.set_experts_implementation(chosen)
        self._is_decode = is_decode
