"""What is said of the recordings: one sentence each, of those that there are and no others."""

from __future__ import annotations

from inference.process.recording_plans import recording_plans
from inference.runs.recordings import numbered_runs, recording_names
from visuals.words.panels import PANEL_TITLES
from visuals.words.teaching import TEACHING, teaching_run

LONGEST_SENTENCE = 230


def test_every_recording_is_made_by_a_plan_and_has_its_sentence() -> None:
    names = [shown.name for shown in TEACHING]

    assert len(set(names)) == len(names) >= 8
    assert set(names) == set(recording_plans()) == set(recording_names())


def test_each_has_one_short_sentence_and_a_panel_that_there_is() -> None:
    for shown in TEACHING:
        assert shown.look_at.endswith(".")
        assert ". " not in shown.look_at
        assert len(shown.look_at) <= LONGEST_SENTENCE
        assert shown.panel in PANEL_TITLES


def test_what_runs_on_random_weights_is_what_says_so() -> None:
    plans = recording_plans()

    for shown in TEACHING:
        assert shown.is_random is (plans[shown.name].miniature is not None)
        assert bool(shown.no_again) is bool(shown.is_random or plans[shown.name].samplings)


def test_each_run_of_a_recording_is_found_by_its_name() -> None:
    found = {name: teaching_run(name) for name in numbered_runs()}

    assert all(found.values())
    assert found["three-prompts-2"] == found["three-prompts"]
    assert teaching_run("none of them") is None
