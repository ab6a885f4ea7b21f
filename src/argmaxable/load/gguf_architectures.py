"""What llama.cpp does last in each architecture it knows (general.architecture of a GGUF file).

Compiled from llama.cpp's src/models: the norm applied with output_norm before the output layer. Whatever
the original checkpoint stores (Gemma's and Nemotron's gain minus 1), converters write the gain that is
multiplied. PhiMoE is left out: its authors and llama.cpp disagree on the norm.
"""

from __future__ import annotations

RMS_NORM = frozenset({
    "afmoe", "apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bailingmoe2", "bitnet", "chameleon",
    "chatglm", "deci", "deepseek", "deepseek2", "dots1", "dream", "ernie4_5", "ernie4_5-moe", "exaone",
    "exaone4", "falcon-h1", "gemma", "gemma2", "gemma3", "gemma3n", "glm4", "glm4moe", "gpt-oss", "granite",
    "granitehybrid", "granitemoe", "grok", "grovemoe", "hunyuan-dense", "hunyuan-moe", "internlm2", "jamba",
    "llada", "llada-moe", "llama", "llama4", "mamba", "mamba2", "minicpm", "minicpm3", "minimax-m2",
    "mistral3", "nemotron_h", "nemotron_h_moe", "olmo2", "olmoe", "openelm", "phi3", "plamo", "plamo2",
    "plm", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3next", "qwen3vl",
    "qwen3vlmoe", "refact", "seed_oss", "smallthinker", "smollm3", "xverse",
})  # fmt: skip

LAYER_NORM = frozenset({
    "bloom", "codeshell", "cohere2", "command-r", "dbrx", "falcon", "gpt2", "gptneox", "jais", "mpt",
    "nemotron", "orion", "phi2", "rwkv6", "rwkv7", "stablelm", "starcoder", "starcoder2",
})  # fmt: skip

# They end in embeddings of texts, images or sounds: their token_embd.weight is no output layer.
ENCODERS = frozenset({
    "bert", "clip", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llama-embed",
    "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "t5encoder", "wavtokenizer-dec",
})  # fmt: skip
