"""The files that the commands of benchmarks/transcripts.py are run on, made or copied into one folder."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import _models
import gguf
import numpy as np
from gguf import GGMLQuantizationType as Format

import argmaxable as am

OCR = "ch_PP-OCRv4_rec_infer.onnx"
HALF = "PP-OCRv4.fp16.npz"
_CAMPAIGN = f"""
[defaults]
domain = "box:100"

[[family]]
name = "PP-OCR"
task = "ocr"
model = [{{ name = "PP-OCRv3", file = "ppocrv3.onnx" }}, {{ name = "{OCR}", file = "{OCR}" }}]

[[family]]
name = "File types"
model = [{{ name = "magika", file = "magika.onnx" }}]
"""
_PUBLISHED = """model,label,status
their PP-OCRv4,刈,unargmaxable
their PP-OCRv4,椤,unargmaxable
their PP-OCRv4,寿,argmaxable
"""
# The formats of docs/runs.md, the largest file first.
_GGUF = (Format.F32, Format.F16, Format.Q8_0, Format.Q5_0, Format.Q4_0)
_NEW_TOKENS = [f"<new{number}>" for number in range(5)]


def ocr(folder: Path, _given: argparse.Namespace) -> None:
    shutil.copy(_models.onnx_file("ppocrv4_rec_ch"), folder / OCR)


def runs(folder: Path, given: argparse.Namespace) -> None:
    """Three models and a campaign over them, the first in float16, verdicts to import."""
    ocr(folder, given)
    shutil.copy(_models.onnx_file("ppocrv3_rec_ch"), folder / "ppocrv3.onnx")
    shutil.copy(_models.onnx_file("magika"), folder / "magika.onnx")
    head = am.load_head(folder / OCR)
    half = {"W": head.weight.astype(np.float16), "b": head.bias.astype(np.float16)}
    np.savez(folder / HALF, **half, labels=np.array(head.labels))
    (folder / "campaign.toml").write_text(_CAMPAIGN, encoding="utf-8")
    (folder / "published.csv").write_text(_PUBLISHED, encoding="utf-8")


def quantised(folder: Path, _given: argparse.Namespace) -> None:
    """The head of PP-OCRv3's recogniser as GGUF in five formats."""
    head = _models.head("ppocrv3_rec_ch")
    (folder / "ppocrv3").mkdir()
    for kind in _GGUF:
        writer = gguf.GGUFWriter(folder / "ppocrv3" / f"ppocrv3-{kind.name}.gguf", "llama")
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(list(head.labels))
        writer.add_token_types([gguf.TokenType.NORMAL] * len(head.labels))
        weight = gguf.quants.quantize(np.asarray(head.weight, np.float32), kind)
        writer.add_tensor("output.weight", weight, raw_dtype=kind)
        writer.add_tensor("output.bias", np.asarray(head.bias, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def small_heads(folder: Path, given: argparse.Namespace) -> None:
    """The compass of the tutorial, the pets of docs/theory.md, and the OCR model."""
    ocr(folder, given)
    compass = [[0.1, 1.0], [0.9, 0.1], [-0.1, -0.8], [-1.0, 0.0], [0.2, 0.1]]
    np.savez(folder / "compass.npz", W=compass, labels=["north", "east", "south", "west", "here"])
    pets = {"W": [[1.0, 0], [-1, 2], [0, 1], [0, -1]], "b": [0, 0, -0.25, 1]}
    np.savez(folder / "pets.npz", **pets, labels=["cat", "dog", "mid", "bat"])


def llama(folder: Path, given: argparse.Namespace) -> None:
    """A small Llama, a text, the Llama with five new tokens, and that one after a step of SGD."""
    if given.llama is None or given.text is None:
        raise SystemExit("the page of the small Llama needs --llama DIR and --text FILE")
    # Imported here: the other pages need neither.
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    shutil.copytree(given.llama, folder / "story-llama")
    shutil.copy(given.text, folder / "valid.txt")
    tokenizer = AutoTokenizer.from_pretrained(given.llama)
    model = AutoModelForCausalLM.from_pretrained(given.llama, dtype=torch.float32)
    tokenizer.add_tokens(_NEW_TOKENS)
    model.resize_token_embeddings(len(tokenizer))
    story = " ".join(f"Once upon a time {name} went to the park." for name in _NEW_TOKENS)
    tokens = tokenizer(story, return_tensors="pt").input_ids
    old = {name: weight.clone() for name, weight in model.state_dict().items()}
    for name, rate in (("my-llama", 0.0), ("my-llama-step", 0.1), ("my-llama-larger-step", 3.0)):
        model.load_state_dict(old)
        model.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        torch.optim.SGD(model.parameters(), lr=rate).step()
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
