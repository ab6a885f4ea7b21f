"""Which tensor of a GGUF file is its output layer, and why there is none in some files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argmaxable.models.gguf.architectures import (
    BORROWED_OUTPUT,
    CHANGED_LOGITS,
    EITHER_NORM,
    LAYER_NORM,
    NO_KNOWN_NORM,
    RMS_NORM,
    WITH_DECODER,
    WITHOUT_OUTPUT,
)

if TYPE_CHECKING:
    from argmaxable.models.gguf.header import GGUFHeader

HEAD, EMBEDDING, CLASSIFIER = "output.weight", "token_embd.weight", "cls.output.weight"
# A draft's tensor with the token of the model it drafts for that each row of its output layer stands for.
DRAFT_TOKENS = "d2t"
_MODELS_OF_TOKENS = RMS_NORM | LAYER_NORM | EITHER_NORM | NO_KNOWN_NORM
# A layer that only embeddings go through, and llama.cpp's pooling_type: mean, first and last token make
# embeddings, rank puts the classifier on top.
_DENSE_OF_EMBEDDINGS, _EMBEDS, _RANKS = "dense_2.weight", (1, 2, 3), 4


def choose_head(header: GGUFHeader) -> tuple[str | None, str]:
    """The name of the output layer and why it is the one; or None and what the file is instead."""
    tensors, architecture = header.tensors, header.architecture
    kind = header.metadata.get("general.type")
    if kind in ("adapter", "mmproj"):
        return None, f"has no output layer: it is a GGUF {kind} of architecture {architecture!r}."
    if CLASSIFIER in tensors and (architecture in WITHOUT_OUTPUT or _pooling(header) == _RANKS):
        return CLASSIFIER, "the output layer of the classifier"
    if architecture in WITHOUT_OUTPUT:
        return None, f"has no output layer: models of architecture {architecture!r} end in embeddings."
    if architecture in CHANGED_LOGITS:
        return None, f"has no plain output layer: for {architecture!r}, {CHANGED_LOGITS[architecture]}."
    if HEAD in tensors:
        return HEAD, "the output layer"
    return _tied_embedding(header)


def _tied_embedding(header: GGUFHeader) -> tuple[str | None, str]:
    """The embedding, if the architecture is known to use it as its output layer where it has no other."""
    if EMBEDDING not in header.tensors:
        return None, f"neither {HEAD} nor {EMBEDDING} found ({len(header.tensors)} tensors)."
    if header.architecture in BORROWED_OUTPUT:
        return None, f"no {HEAD}: it uses the one of the model that it drafts for. Read that model."
    if makes_embeddings(header):
        return None, f"no {HEAD}: it is a model for embeddings of texts."
    if header.architecture not in _MODELS_OF_TOKENS:
        return None, (
            f"no {HEAD}, and whether models of architecture {header.architecture!r} use {EMBEDDING} for it "
            "is unknown."
        )
    if header.architecture in WITH_DECODER and not any(name.startswith("dec.") for name in header.tensors):
        return None, f"neither {HEAD} nor a decoder found: it is only the encoder of a model."
    return EMBEDDING, f"the embedding, which is the output layer too: no {HEAD}"


def makes_embeddings(header: GGUFHeader) -> bool:
    """Whether the model is meant to give one embedding of a whole text, rather than tokens."""
    return _pooling(header) in _EMBEDS or _DENSE_OF_EMBEDDINGS in header.tensors


def _pooling(header: GGUFHeader) -> object:
    return header.metadata.get(f"{header.architecture}.pooling_type")
