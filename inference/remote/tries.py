"""Which extra fields a server takes, found with requests of two tokens.

An engine that does not know a field may refuse the whole request, so none is sent to it in a run
unless it was taken here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from time import perf_counter_ns

from inference.records.arrivals import ArrivalKind, RemoteAsk, RemoteRequest
from inference.records.endpoints import Answer, EndpointInfo, Extra, Offer
from inference.records.errors import EndpointError
from inference.records.options import Sampling
from inference.records.status import RunState
from inference.remote.asking import ask
from inference.remote.connection import Wire
from inference.remote.identify import offers_of
from inference.remote.messages import SILENCE_S, extra_fields, message_for
from inference.remote.recorder import RequestRecorder

TRY_PROMPT = "Hi"
TRY_TOKENS = 2
NOT_ABOUT_FIELDS = (None, 401, 403, 429, 503)  # answers that no other field would change
TAKEN = "taken, but it did not come"
EVIDENCE: Mapping[Extra, Callable[[RemoteRequest], bool]] = {
    Extra.USAGE: lambda request: request.usage is not None,
    Extra.COUNTS: lambda request: any(
        one.kind is ArrivalKind.TEXT and one.running_tokens for one in request.arrivals
    ),
    Extra.TOKEN_IDS: lambda request: any(one.token_ids for one in request.arrivals),
    Extra.PROBABILITIES: lambda request: any(
        token.logprob is not None for one in request.arrivals for token in one.tokens
    ),
    Extra.PROGRESS: lambda request: any(
        one.kind is ArrivalKind.PROGRESS for one in request.arrivals
    ),
    Extra.OWN_TIMES: lambda request: request.times is not None,
}


async def tried(
    wire: Wire, info: EndpointInfo, model_id: str, *, is_raw: bool, silence_s: float = SILENCE_S
) -> EndpointInfo:
    """Return what a server says of itself, with what came of each extra that was asked for.

    One request asks for all of them; where it is refused, one asks for none and one for each.

    Args:
        wire: The connections to it.
        info: What it said of itself.
        model_id: The model that is asked.
        is_raw: Whether prompts go without a chat template, which is another route.
        silence_s: Longest wait for the next byte.

    Raises:
        EndpointError: It does not answer even a request without extras.
    """
    hello = RemoteAsk(
        model_id=model_id,
        prompt_text=TRY_PROMPT,
        max_new_tokens=TRY_TOKENS,
        sampling=Sampling(),
        seed=0,
        is_raw=is_raw,
    )
    metrics = info.offer(Extra.METRICS)
    offers = {one.extra: one for one in offers_of(info.engine, metrics, is_raw=is_raw)}
    wanted = tuple(extra_fields(info.engine, is_raw=is_raw))
    whole, status = await _request(wire, info, hello, wanted, silence_s)
    came = dict.fromkeys(wanted, (whole, ""))
    if whole.state is not RunState.DONE and status not in NOT_ABOUT_FIELDS and wanted:
        whole, _ = await _request(wire, info, hello, (), silence_s)
        if whole.state is RunState.DONE:
            came = {one: await _alone(wire, info, hello, one, silence_s) for one in wanted}
    if whole.state is not RunState.DONE:
        raise EndpointError(whole.message)
    for extra, offer in offers.items():
        request, refusal = came.get(extra, (whole, ""))
        offers[extra] = _judged(offer, request, refusal, is_asked=extra in came)
    return replace(info, offers=tuple(offers.values()))


def taken_extras(info: EndpointInfo) -> tuple[Extra, ...]:
    """Return the extras whose fields the server took and answered."""
    return tuple(one.extra for one in info.offers if one.answer is Answer.CAME)


async def _alone(
    wire: Wire, info: EndpointInfo, hello: RemoteAsk, extra: Extra, silence_s: float
) -> tuple[RemoteRequest, str]:
    """Return a request with one extra, and why it was refused; empty where it was not."""
    request, _ = await _request(wire, info, hello, (extra,), silence_s)
    return request, "" if request.state is RunState.DONE else request.message


async def _request(
    wire: Wire, info: EndpointInfo, hello: RemoteAsk, extras: Collection[Extra], silence_s: float
) -> tuple[RemoteRequest, int | None]:
    recorder = RequestRecorder("try", hello, zero_ns=perf_counter_ns(), planned_s=0.0)
    await ask(wire, message_for(hello, info.engine, extras), recorder, silence_s=silence_s)
    return recorder.snapshot(), recorder.status


def _judged(offer: Offer, request: RemoteRequest, refusal: str, *, is_asked: bool) -> Offer:
    """Return an offer with what came of it."""
    evidence = EVIDENCE.get(offer.extra)
    if refusal:
        return replace(offer, answer=Answer.REFUSED, reason=refusal)
    if evidence is None:
        return offer
    if evidence(request):
        return replace(offer, answer=Answer.CAME, reason="seen in a request of two tokens")
    if not is_asked:
        return offer
    return replace(offer, answer=Answer.NOT_SENT, reason=TAKEN)
