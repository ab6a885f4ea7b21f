"""Tiny language models of transformers' own classes, with a tokenizer and a text, saved as their users
save them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers  # whose classes are loaded by those who name them
from tokenizers import Tokenizer, models, pre_tokenizers

from argmaxable.layers.language_model import LanguageModel, Text

CLASSES, FEATURES, TOKENS = 60, 12, 900


@dataclass(frozen=True)
class Saved:
    """A model's directory and a text to run it over."""

    directory: Path
    text: Path

    def run(self, dtype: Any = "float32") -> tuple[LanguageModel, np.ndarray, np.ndarray]:
        """The model, the inputs of its head and its outputs, over the whole text."""
        model = LanguageModel(self.directory, dtype=dtype)
        steps = list(model.steps(Text(self.text)))
        inputs = np.concatenate([step.features for step in steps])
        return model, inputs, np.concatenate([step.logits for step in steps])


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=CLASSES, hidden_size=FEATURES, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64, bos_token_id=1,
        eos_token_id=2, pad_token_id=0, initializer_range=0.5,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def gpt2() -> Any:
    config = transformers.GPT2Config(
        vocab_size=CLASSES, n_embd=FEATURES, n_layer=2, n_head=2, n_positions=64, bos_token_id=1,
        eos_token_id=2, pad_token_id=0, initializer_range=0.5,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def marian() -> Any:
    config = transformers.MarianConfig(
        vocab_size=CLASSES, decoder_vocab_size=CLASSES, d_model=FEATURES, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
        max_position_embeddings=64, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0,
        forced_eos_token_id=2, bos_token_id=1, scale_embedding=False,
    )  # fmt: skip
    return transformers.MarianMTModel(config)


def train(model: Any, steps: int = 10) -> Any:
    """A few steps on words that count upwards: enough that every parameter has moved."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    ids = (torch.arange(32)[None] + torch.arange(8)[:, None]) % CLASSES
    for _ in range(steps):
        optimizer.zero_grad()
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss.backward()
        optimizer.step()
    return model


def save(model: Any, folder: Path) -> Saved:
    directory, text = folder / "model", folder / "text.txt"
    model.save_pretrained(directory)
    _tokenizer().save_pretrained(directory)
    text.write_text(random_text(TOKENS), encoding="utf-8")
    return Saved(directory, text)


def random_text(words: int, *, a_line: int = 10, seed: int = 0) -> str:
    numbers = np.random.default_rng(seed).integers(3, CLASSES, words)
    lines = np.array_split(numbers, max(1, words // a_line))
    return "".join(" ".join(f"w{number}" for number in line) + "\n" for line in lines)


def _tokenizer() -> Any:
    names = ["<pad>", "<s>", "</s>", *(f"w{number}" for number in range(3, CLASSES))]
    tokenizer = Tokenizer(models.WordLevel({name: at for at, name in enumerate(names)}, unk_token="<s>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<s>"
    )
