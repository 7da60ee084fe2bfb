"""The default model in float32: every request of a batch gets the tokens it gets alone."""

from __future__ import annotations

import pytest

from inference.engine.clock import HostClock
from inference.engine.loop import Engine, GenerationLimits, GenerationOptions
from inference.engine.row_backend import TorchRowBackend
from inference.models.loading import LoadedModel
from inference.models.tokenization import TextCodec
from inference.process.messages import LoadModel
from inference.process.orders import RunOrder, build_requests
from inference.records.options import BatchPlan, Padding, Policy, Sampling
from inference.records.run import Request

pytestmark = pytest.mark.golden

NEW_TOKENS = 12
PROMPTS = (
    "Say hello in one short sentence.",
    "Why is the sky blue?",
    "List three prime numbers and say why each of them is prime.",
    "请用一句话解释什么是键值缓存。",
)
PLANS = [
    BatchPlan(),
    BatchPlan(padding=Padding.RIGHT),
    BatchPlan(policy=Policy.CONTINUOUS, slots=2),
]


@pytest.fixture(scope="module")
def requests(loaded: LoadedModel) -> tuple[Request, ...]:
    order = RunOrder(
        prompts=PROMPTS,
        max_new_tokens=NEW_TOKENS,
        sampling=Sampling(),
        seed=0,
        is_raw=False,
        load=LoadModel(model="default"),
        arrivals_s=(0.0, 0.0, 0.1, 0.2),
    )
    codec = TextCodec.from_files(loaded.tokenizer_files)
    return build_requests(order, codec, loaded.context_limit)


def tokens(
    loaded: LoadedModel, requests: tuple[Request, ...], plan: BatchPlan
) -> dict[str, list[int]]:
    limits = GenerationLimits(eos_ids=loaded.eos_ids, context_tokens=loaded.context_limit)
    engine = Engine(TorchRowBackend(loaded.model), HostClock(), limits)
    made: dict[str, list[int]] = {request.request_id: [] for request in requests}
    options = GenerationOptions(plan=plan)
    for event in engine.generate(requests, seed=0, zero_s=0.0, options=options):
        for row in event.rows:
            if row.token_id is not None:
                made[row.request_id].append(row.token_id)
    return made


@pytest.fixture(scope="module")
def alone(loaded: LoadedModel, requests: tuple[Request, ...]) -> dict[str, list[int]]:
    made: dict[str, list[int]] = {}
    for request in requests:
        made |= tokens(loaded, (request,), BatchPlan())
    return made


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.policy}-{plan.padding}")
def test_every_request_gets_the_tokens_it_gets_alone(
    loaded: LoadedModel,
    requests: tuple[Request, ...],
    alone: dict[str, list[int]],
    plan: BatchPlan,
) -> None:
    assert tokens(loaded, requests, plan) == alone
