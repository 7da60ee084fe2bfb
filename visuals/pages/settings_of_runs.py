"""The settings that a run was made with, as the page offers them. No Streamlit.

Of a run that was made in this process the order says all of it. Of one that is kept, its records
do: a file written before they said whether the chat template was used counts as one that used it,
and attention is the library's choice unless the run shows another.
"""

from __future__ import annotations

from dataclasses import fields, replace

from inference.models.catalog import DEFAULT_NAMES
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder
from inference.records.options import AttentionKind, DecodeMode
from inference.records.run import RunInfo, RunTrace
from visuals.pages.examples import example_prompts
from visuals.pages.run_settings import (
    DEFAULT_MODEL,
    MARK,
    BatchSource,
    Decoding,
    Pace,
    RunSettings,
    Split,
    pace_of,
)

KEPT_APART = ("prompt", "pace")  # what is typed, and how a run is watched, are no settings of it


def settings_of(order: RunOrder) -> RunSettings:
    """Return the settings that give this order; what it does not say is as by default."""
    usual, sampling = RunSettings(), order.sampling
    settings = RunSettings(
        prompt=order.prompts[0],
        max_new_tokens=order.max_new_tokens,
        decoding=Decoding.GREEDY if sampling.is_greedy else Decoding.SAMPLING,
        temperature=usual.temperature if sampling.is_greedy else sampling.temperature,
        top_k=sampling.top_k or 0,
        top_p=sampling.top_p or 1.0,
        seed=order.seed,
        has_template=not order.is_raw,
        model=DEFAULT_MODEL if order.load.model in DEFAULT_NAMES else order.load.model,
        dtype=order.load.dtype,
        device=order.load.device,
        attention=order.load.attention,
        decode=order.decode,
        split=Split.EVERY if order.split_every == 1 else Split.AUTOMATIC,
        chunk_tokens=order.chunk_tokens or 0,
        cache=order.cache,
        is_captured=order.is_captured or order.decode is not DecodeMode.EAGER,
        pace=pace_of(order.steps_per_s) or Pace.FREE,
    )
    return settings if len(order.prompts) == 1 else _of_batch(settings, order)


def settings_of_trace(trace: RunTrace) -> RunSettings:
    """Return the settings that make a run like this one again."""
    info, first = trace.info, trace.requests[0]
    order = RunOrder(
        prompts=tuple(request.prompt_text for request in trace.requests),
        max_new_tokens=first.max_new_tokens,
        sampling=first.sampling,
        seed=info.seed,
        is_raw=bool(first.is_raw),
        load=LoadModel(model=info.model_id, dtype=info.device.dtype, attention=_asked_of(info)),
        chunk_tokens=info.chunk_tokens,
        cache=info.cache,
        plan=info.plan,
        decode=info.decode,
        arrivals_s=tuple(request.arrival_s for request in trace.requests),
        is_captured=True,  # a run does not say so, and no token depends on it
    )
    return settings_of(order)


def changed_from_default(settings: RunSettings) -> tuple[str, ...]:
    """Return the fields of the settings that are not as by default, the prompt and pace aside."""
    usual = RunSettings()
    return tuple(
        field.name
        for field in fields(RunSettings)
        if field.name not in KEPT_APART
        and getattr(settings, field.name) != getattr(usual, field.name)
    )


def as_by_default(settings: RunSettings) -> RunSettings:
    """Return the settings with all but the prompt and the pace as by default."""
    return RunSettings(**{name: getattr(settings, name) for name in KEPT_APART})


def _of_batch(settings: RunSettings, order: RunOrder) -> RunSettings:
    """Return the settings with the batch of an order of several prompts."""
    prompts, arrivals_s = order.prompts, order.arrivals_s
    examples = [example.prompt for example in example_prompts()]
    of_examples = tuple(examples[index % len(examples)] for index in range(len(prompts)))
    if len(set(prompts)) == 1:
        source, prompt = BatchSource.SAME, prompts[0]
    elif prompts == of_examples:
        source, prompt = BatchSource.EXAMPLES, settings.prompt
    else:
        source, prompt = BatchSource.TYPED, f"\n{MARK}\n".join(prompts)
    arrivals = ", ".join(f"{arrival_s:g}" for arrival_s in arrivals_s) if any(arrivals_s) else ""
    return replace(
        settings,
        prompt=prompt,
        batch_source=source,
        batch_count=len(prompts),
        batch_policy=order.plan.policy,
        batch_slots=order.plan.slots or 0,
        batch_padding=order.plan.padding,
        batch_arrivals=arrivals,
    )


def _asked_of(info: RunInfo) -> AttentionKind:
    """Return the implementation of attention that a run like this one is asked for.

    With SDPA by choice the kernels of this program leave whole layers alone.
    """
    kinds = {kind.value: kind for kind in AttentionKind}
    resolved = kinds.get(info.attention, AttentionKind.AUTO)
    is_usual = "fused layers" in info.kernels or not info.kernels.startswith("own kernels")
    return AttentionKind.AUTO if resolved is AttentionKind.SDPA and is_usual else resolved
