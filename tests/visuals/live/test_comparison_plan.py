"""From choices to runs: their order, rounds, warm-ups and batches."""

from __future__ import annotations

from dataclasses import replace

from inference.process.messages import LoadModel
from inference.records.options import AttentionKind, CacheKind, DecodeMode, Sampling
from inference.records.prompts import UploadedPrompt
from tests.builders import order
from visuals.live.comparison_plan import (
    Choices,
    PlanSettings,
    planned_runs,
    prompt_orders,
    setting_orders,
)
from visuals.live.groups import PlannedRun

ORDERS = tuple(order(prompt) for prompt in "abc")
QUIET = PlanSettings(is_warmed=False)
ONE_CHOICE = Choices(
    models=("default",),
    dtypes=("auto",),
    samplings=(Sampling(),),
    caches=(CacheKind.DYNAMIC,),
    chunks=(None,),
    decodes=(DecodeMode.EAGER,),
)


def prompts_of(planned: tuple[PlannedRun, ...]) -> list[str]:
    return ["+".join(one.order.prompts) for one in planned]


def test_rounds_follow_each_other_so_that_a_drift_touches_all_alike() -> None:
    planned = planned_runs(ORDERS, replace(QUIET, repeats=2))

    assert prompts_of(planned) == ["a", "b", "c", "a", "b", "c"]
    assert planned[3].label == "a, round 2 of 2"


def test_a_shuffle_is_another_order_in_each_round_and_the_same_for_a_seed() -> None:
    settings = replace(QUIET, repeats=6, is_shuffled=True, seed=1)

    shuffled = prompts_of(planned_runs(ORDERS, settings))

    rounds = [tuple(shuffled[start : start + 3]) for start in range(0, 18, 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len(set(rounds)) > 1
    assert prompts_of(planned_runs(ORDERS, settings)) == shuffled


def test_a_batch_is_one_run_of_all_prompts_and_keeps_their_turns() -> None:
    chat = UploadedPrompt(source="f", place="1", text="t", turns=(("system", "s"), ("user", "u")))
    plain = UploadedPrompt(source="f", place="2", text="p")
    orders = prompt_orders(order(), [chat, plain])

    [batch] = planned_runs(orders, replace(QUIET, is_batch=True))

    assert batch.order.prompts == ("t", "p")
    assert batch.order.turns == (chat.turns, ())
    assert batch.label == "2 prompts as one batch"


def test_each_model_is_loaded_once_and_warmed_before_its_runs() -> None:
    other = LoadModel(model="other")
    mixed = (order("a"), order("b", load=other), order("c"))

    planned = planned_runs(mixed, PlanSettings(repeats=2))

    assert [(one.order.load.model, one.is_warm_up) for one in planned] == [
        ("default", True),
        *[("default", False)] * 4,
        ("other", True),
        *[("other", False)] * 2,
    ]
    assert planned[0].order.max_new_tokens == 3


def test_settings_are_combined() -> None:
    choices = replace(
        ONE_CHOICE,
        dtypes=("float32", "bfloat16"),
        samplings=(Sampling(), Sampling(temperature=0.7)),
        chunks=(None, 32),
    )

    orders = setting_orders(order("a"), choices)
    labels = [one.label for one in planned_runs(orders, QUIET)]

    assert len(orders) == 8
    assert labels[0] == "a, float32"
    assert labels[-1] == "a, bfloat16, chunks of 32, temperature 0.7"


def test_attention_is_a_setting_and_each_of_its_values_is_loaded_once() -> None:
    choices = replace(
        ONE_CHOICE, attentions=(AttentionKind.AUTO, AttentionKind.EAGER), chunks=(None, 32)
    )

    planned = planned_runs(setting_orders(order("a"), choices), PlanSettings())

    assert [(one.order.load.attention, one.is_warm_up) for one in planned] == [
        (AttentionKind.AUTO, True),
        *[(AttentionKind.AUTO, False)] * 2,
        (AttentionKind.EAGER, True),
        *[(AttentionKind.EAGER, False)] * 2,
    ]
    assert planned[-1].label == "a, eager attention, chunks of 32"


def test_a_prompt_alone_is_compared_with_a_batch_of_its_copies() -> None:
    orders = setting_orders(order("a"), replace(ONE_CHOICE, rows=(1, 4)))

    alone, batch = planned_runs(orders, QUIET)

    assert (alone.order.prompts, batch.order.prompts) == (("a",), ("a",) * 4)
    assert (alone.label, batch.label) == ("a", "a, batch of 4")


def test_nothing_chosen_is_no_run() -> None:
    assert planned_runs((), PlanSettings(is_batch=True)) == ()
