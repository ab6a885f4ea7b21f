"""Models of Hugging Face's own classes, as small as they go, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor

CLASSES, FEATURES = 50, 16
SPECIAL: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": CLASSES}
HIDDEN = {"hidden_size": FEATURES, "intermediate_size": 16}


def gpt2(tied: bool) -> Any:
    sizes = {"n_embd": FEATURES, "n_layer": 1, "n_head": 2, "n_positions": 32}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**SPECIAL, **sizes, tie_word_embeddings=tied))


def llama(tied: bool) -> Any:
    sizes = {
        "hidden_size": FEATURES,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SPECIAL, **sizes, tie_word_embeddings=tied)
    )


def bert(tied: bool) -> Any:
    sizes = {
        "hidden_size": FEATURES,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    return transformers.BertForMaskedLM(
        transformers.BertConfig(**SPECIAL, **sizes, max_position_embeddings=32, tie_word_embeddings=tied)
    )


def t5(tied: bool) -> Any:
    sizes = {"d_model": FEATURES, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(**SPECIAL, **sizes, decoder_start_token_id=0, tie_word_embeddings=tied)
    )


def gemma2(tied: bool) -> Any:
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8}
    config = transformers.Gemma2Config(**SPECIAL, **HIDDEN, **sizes, tie_word_embeddings=tied)
    config.final_logit_softcapping = 0.3
    return transformers.Gemma2ForCausalLM(config)


def qwen2(tied: bool) -> Any:
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    return transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**SPECIAL, **HIDDEN, **sizes, tie_word_embeddings=tied)
    )


def mamba(tied: bool) -> Any:
    sizes = {"num_hidden_layers": 1, "hidden_size": FEATURES, "state_size": 4}
    return transformers.MambaForCausalLM(
        transformers.MambaConfig(**SPECIAL, **sizes, tie_word_embeddings=tied)
    )


def marian(tied: bool) -> Any:
    sides = {
        f"{side}_{part}": size
        for side in ("encoder", "decoder")
        for part, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    }
    sizes = {"d_model": FEATURES, "max_position_embeddings": 32, "decoder_start_token_id": 0}
    return transformers.MarianMTModel(
        transformers.MarianConfig(
            **SPECIAL, **sides, **sizes, forced_eos_token_id=None, tie_word_embeddings=tied
        )
    )


def bart(tied: bool) -> Any:
    sides = {
        f"{side}_{part}": size
        for side in ("encoder", "decoder")
        for part, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    }
    return transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            **SPECIAL,
            **sides,
            d_model=FEATURES,
            max_position_embeddings=32,
            decoder_start_token_id=2,
            forced_eos_token_id=None,
            tie_word_embeddings=tied,
        )
    )


MODELS: dict[str, Callable[[bool], Any]] = {
    "causal gpt2": gpt2,
    "causal llama": llama,
    "masked bert": bert,
    "seq2seq t5": t5,
    "seq2seq bart": bart,
}
MORE_MODELS: dict[str, Callable[[bool], Any]] = {
    **MODELS,
    "causal gemma2": gemma2,
    "causal qwen2": qwen2,
    "causal mamba": mamba,
    "seq2seq marian": marian,
}


def model_of(kind: str, tied: bool) -> Any:
    torch.manual_seed(0)
    return MORE_MODELS[kind](tied).eval()


def some_ids() -> Tensor:
    return torch.randint(3, CLASSES, (2, 7), generator=torch.Generator().manual_seed(0))
