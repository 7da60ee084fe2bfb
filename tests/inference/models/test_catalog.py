"""The catalogue names every model's licence, and pins what it can pin."""

from __future__ import annotations

import pytest

from inference.models.catalog import CATALOG, DEFAULT_MODEL, SMOLLM2_WHEEL, catalog_entry
from inference.models.hf_hub import is_hub_id


@pytest.mark.parametrize("name", ["default", "SmolLM2-135M-Instruct"])
def test_the_default_model_answers_to_both_names(name: str) -> None:
    assert catalog_entry(name) is DEFAULT_MODEL


def test_ids_are_unique_and_have_a_licence() -> None:
    assert len({entry.id for entry in CATALOG}) == len(CATALOG)
    assert all(entry.licence for entry in CATALOG)


def test_every_entry_without_a_wheel_is_a_hub_id() -> None:
    ids = [entry.id for entry in CATALOG if entry.wheel is None]

    assert ids
    assert [name for name in ids if not is_hub_id(name)] == []


def test_the_default_model_is_pinned_by_version_and_checksum() -> None:
    assert SMOLLM2_WHEEL.requirement.endswith(f"=={DEFAULT_MODEL.revision}")
    assert len(bytes.fromhex(SMOLLM2_WHEEL.sha256)) == 32
    assert len(bytes.fromhex(SMOLLM2_WHEEL.member_sha256)) == 32


def test_an_unknown_name_has_no_entry() -> None:
    assert catalog_entry("nobody/nothing") is None
