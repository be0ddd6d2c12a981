"""What the programs about language models share: a tokenizer and a model that need no download."""

from __future__ import annotations

from typing import Any

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "looked",
    "at",
    "another",
    "dog",
    "that",
    "ran",
    "over",
    "green",
    "hills",
    "today",
]


def tokenizer() -> Any:
    """A tokenizer that knows a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", *WORDS]
    words = Tokenizer(
        models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", bos_token="[BOS]", eos_token="[EOS]"
    )


def sentences(count: int) -> list[str]:
    """Sentences of those words, always the same ones."""
    return [" ".join(WORDS[(start * 3 + step) % len(WORDS)] for step in range(8)) for start in range(count)]


def llama() -> Any:
    """A Llama of two layers with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=64,
            bos_token_id=2,
            eos_token_id=3,
            pad_token_id=0,
        )
    )
