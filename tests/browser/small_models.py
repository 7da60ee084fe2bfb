"""Tiny random models of a family in a folder, and a run on one by way of the page's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from tests.browser.actions import finish, new_tokens
from tests.browser.conftest import Tab
from tests.families import FAMILIES
from tests.tiny_model import VOCABULARY, tiny_tokenizer


def saved(folder: Path, family: str, **changes: object) -> PreTrainedModel:
    """Write a tiny random model of a family and a tokenizer into a folder; return the model."""
    model_type, settings = FAMILIES[family]
    sizes: dict[str, Any] = {**settings, "vocab_size": VOCABULARY, "max_position_embeddings": 512}
    config = AutoConfig.for_model(model_type, **{**sizes, **changes})

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return model


def run_on(tab: Tab, folder: Path, prompt: str, *, chunk: int = 0, tokens: int = 8) -> None:
    """Run a prompt on the model in a folder, named in the page's settings."""
    # The recorded run stands: the server is up to following a run within its short grace time.
    tab.wait_for(lambda panel: panel.state == "done")
    tab.type_prompt(prompt)
    new_tokens(tab, tokens)
    tab.page.get_by_role("button", name="Settings").click()
    model = tab.page.get_by_role("combobox", name="Model").first
    model.fill(str(folder))
    tab.page.get_by_role("option", name=folder.name).click()
    if chunk:
        box = tab.page.get_by_role("spinbutton", name="Prefill chunk size")
        box.fill(str(chunk))
        box.press("Enter")
    tab.page.keyboard.press("Escape")
    tab.start()
    finish(tab)
