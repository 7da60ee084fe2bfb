"""A two-layer Llama with random weights and a tokenizer of a few hundred tokens."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 320
CORPUS = [
    "the cache holds keys and values",
    "decode reads the weights again",
    "prefill 日本語 é 👩‍👩‍👧",
]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>"
    "{{ message['content'] }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tiny_config(**changes: object) -> LlamaConfig:
    """Return a config with four query heads on two key/value heads."""
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "dtype": "float64",
    }
    return LlamaConfig(**{**sizes, **changes})


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer that covers every byte and a few words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|start|>",
        eos_token="<|end|>",
        chat_template=CHAT_TEMPLATE,
    )


def save_tiny_model(folder: Path) -> Path:
    """Write the model, in float64, and its tokenizer into the folder, and return it."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(tiny_config()).to(torch.float64)
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
