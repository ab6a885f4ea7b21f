"""What llama.cpp does last in each architecture it knows (general.architecture of a GGUF file).

Read off its graphs (src/models) at commit 0c1e57098, which llama-cpp-python 0.3.36 brings. Its norms multiply
by the gain as it is stored: converters add the 1 that the checkpoints of Gemma, Nemotron and others leave
out. After the norms below comes the output layer, with at most a positive factor in between (MiniCPM3), and
then only what gguf.py looks for: a bias, a factor, a soft cap.

Left without a norm: PhiMoE and Gemma 4's assistant, which their authors run differently, and qwen4exp, whose
last layer is not a plain norm.
"""

from __future__ import annotations

RMS_NORM = frozenset({
    "afmoe", "apertus", "arcee", "arctic", "arwkv7", "baichuan", "bailingmoe", "bailingmoe2", "bailingmoe3",
    "bitnet", "chatglm", "cogvlm", "deci", "deepseek", "deepseek2", "deepseek2-ocr", "deepseek32",
    "deepseek4", "dots1", "dots3note", "dream", "eagle3", "ernie4_5", "ernie4_5-moe", "exaone", "exaone-moe",
    "exaone4", "falcon-h1", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "glm-dsa", "glm4", "glm4moe",
    "glm5-next", "gpt-oss", "granite", "granite_swa", "granitehybrid", "granitemoe", "graniteswitch", "grok",
    "grovemoe", "hrm_text", "hunyuan-dense", "hunyuan-moe", "hunyuan_vl", "hy_v3", "hy_v4", "internlm2",
    "jamba", "kimi-k3", "kimi-linear", "laguna", "lfm2", "lfm2moe", "llada", "llada-moe", "llama", "llama4",
    "maincoder", "mamba", "mamba2", "maple", "mellum", "mimo2", "minicpm", "minicpm3", "minimax-01",
    "minimax-m2", "minimax-m3", "mistral3", "mistral4", "muse-glimmer", "nanbeige", "nemotron_h",
    "nemotron_h_moe", "olmo2", "olmoe", "openelm", "paddleocr", "pangu-embedded", "phi3", "plamo", "plamo2",
    "plamo3", "plm", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen35", "qwen35moe", "qwen3moe",
    "qwen3next", "qwen3tts", "qwen3vl", "qwen3vlmoe", "refact", "rnd1", "rwkv6qwen2", "seed_oss",
    "smallthinker", "smollm3", "spark2_5", "step35", "t5", "talkie", "xverse",
})  # fmt: skip

LAYER_NORM = frozenset({
    "bloom", "codeshell", "cohere2", "command-r", "dbrx", "falcon", "gpt2", "gptneox", "jais", "jais2", "mpt",
    "nemotron", "olmo", "orion", "phi2", "rwkv6", "rwkv7", "stablelm", "starcoder", "starcoder2",
})  # fmt: skip

# RMSNorm where the file has an attention.layer_norm_rms_epsilon that is not 0, LayerNorm where it has none.
EITHER_NORM = frozenset({"cohere2moe"})

# Their norm has neither gain nor shift, and so no tensor.
WITHOUT_GAIN = frozenset({"hrm_text", "olmo", "talkie"})

# The norm's name where it is not output_norm. LFM2's is a slip that llama.cpp keeps.
NORM_NAMES = {"lfm2": "token_embd_norm", "lfm2moe": "token_embd_norm", "t5": "dec.output_norm"}

# Models of tokens of which no norm is known here. Their output layer may be their embedding all the same.
NO_KNOWN_NORM = frozenset({"gemma4-assistant", "phimoe", "qwen4exp"})

# They end in embeddings of texts, images or sounds: neither token_embd.weight nor output.weight chooses
# a token.
WITHOUT_OUTPUT = frozenset({
    "bert", "clip", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llama-embed",
    "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "pockettts", "t5encoder", "wavtokenizer-dec",
})  # fmt: skip

# What llama.cpp does to the logits of an architecture, where it decides who wins.
CHANGED_LOGITS = {
    "chameleon": "the logits of image tokens are taken out before they are compared",
    "dflash": "what depends on the token before may be added to the logits",
}

# An encoder and a decoder (dec.*), of which files for image generators hold the encoder only.
WITH_DECODER = frozenset({"t5"})

# Drafts for another model, whose output layer they use when they have none.
BORROWED_OUTPUT = frozenset({"eagle3"})
