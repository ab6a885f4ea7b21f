"""The life of a model with a replaced head: trained, resized, pickled, saved, loaded, generating."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers
from huggingface_models import CLASSES, FEATURES, MORE_MODELS, model_of, some_ids
from layer_references import NAMES, small_head
from torch import nn

import argmaxable as am
from argmaxable.core.errors import InputError
from argmaxable.layers import (
    SphericalLinear,
    VoronoiLinear,
    load_pretrained,
    replace_head,
)
from argmaxable.layers.norms import norm_of

GUARDED = ("SphericalLinear", "VoronoiLinear")
HEADS = (*NAMES, *GUARDED)
EACH_MODEL = pytest.mark.parametrize("kind", MORE_MODELS)
EVERY_PAIR = [(kind, head_name) for kind in MORE_MODELS for head_name in HEADS]
# T5's output layer is tied to its embedding, whatever its configuration says. Rows of a special kind are not.
REFUSED = [("seq2seq t5", head_name) for head_name in GUARDED]
TIED_OR_NOT = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
LIVES = [pair for pair in EVERY_PAIR if pair not in REFUSED]
TABLE = Path(__file__).parent.parent.parent / "docs" / "layers.md"


def with_head(kind: str, head_name: str) -> Any:
    """The model, tied; where the head can't be, untied as the error says."""
    model = model_of(kind, tied=True)
    if head_name in GUARDED:
        layer = model.get_output_embeddings()
        layer.weight = nn.Parameter(layer.weight.detach().clone())
        if layer.bias is not None:
            layer.bias = nn.Parameter(layer.bias.detach().clone())
        model.config.tie_word_embeddings = False
    replace_head(model, _head(model, head_name), keep_weights=head_name not in GUARDED)
    return model


def _head(model: Any, name: str) -> nn.Module:
    torch.manual_seed(1)
    if name in GUARDED:
        return {layer.__name__: layer for layer in (SphericalLinear, VoronoiLinear)}[name](
            FEATURES, CLASSES, radius=1.0
        )
    return small_head(name, FEATURES, CLASSES, bias=model.get_output_embeddings().bias is not None)


def without_dropout(model: Any) -> Any:
    """In training mode, but as sure of itself as in evaluation."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model.train()


def logits_of(model: Any) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model.eval()(input_ids=some_ids(), labels=some_ids()).logits
    return logits


@pytest.mark.parametrize(("kind", "head_name"), LIVES)
def test_a_head_lives_through_training_resizing_saving_and_generating(
    kind: str, head_name: str, tmp_path: Path
) -> None:
    model = with_head(kind, head_name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    without_dropout(model)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(input_ids=some_ids(), labels=some_ids()).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]
    del loss
    model.zero_grad()

    old = logits_of(model)
    model.resize_token_embeddings(CLASSES + 6, mean_resizing=False)
    new = logits_of(model)
    assert new.shape[-1] == CLASSES + 6
    if not head_name.startswith("mos"):  # a mixture's components are normalised one by one
        torch.testing.assert_close(new[..., :CLASSES], old)

    model.save_pretrained(tmp_path)
    again = load_pretrained(tmp_path)
    assert torch.equal(logits_of(again), new)
    if not kind.startswith("masked"):
        ids = again.generate(input_ids=some_ids(), max_new_tokens=3, do_sample=False)
        assert torch.equal(ids, model.generate(input_ids=some_ids(), max_new_tokens=3, do_sample=False))
    own_class = type(model)._own_class
    if head_name == "linear" and kind != "causal gemma2":  # whose soft cap is in the head now
        assert torch.equal(logits_of(own_class.from_pretrained(tmp_path)), new)
    else:
        with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
            own_class.from_pretrained(tmp_path)


@pytest.mark.parametrize(("kind", "head_name"), REFUSED)
@TIED_OR_NOT
def test_a_layer_with_rows_of_its_own_is_refused_where_the_model_ties_them(
    kind: str, head_name: str, tied: bool
) -> None:
    model = model_of(kind, tied)
    with pytest.raises(InputError, match=rf"shares its weight with another module .* this {head_name} can't"):
        replace_head(model, _head(model, head_name))


def test_the_page_says_which_models_and_heads_were_tried() -> None:
    kinds = [kind.partition(" ")[2] for kind in MORE_MODELS]
    rows = [
        [f"`{name}`", *("refused" if (kind, name) in REFUSED else "yes" for kind in MORE_MODELS)]
        for name in HEADS
    ]
    lines = [["head", *kinds], ["---"] * (1 + len(kinds)), *rows]
    assert "\n".join(f"| {' | '.join(line)} |" for line in lines) in TABLE.read_text(encoding="utf-8")


@TIED_OR_NOT
@pytest.mark.parametrize("head_name", [name for name in NAMES if name != "linear"])
def test_transformers_alone_refuses_the_files_of_a_model_with_such_a_head(
    head_name: str, tied: bool, tmp_path: Path
) -> None:
    model = model_of("causal llama", tied)
    replace_head(model, _head(model, head_name))
    model.save_pretrained(tmp_path)
    for loader in (transformers.LlamaForCausalLM, transformers.AutoModelForCausalLM):
        with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
            loader.from_pretrained(tmp_path)


def test_a_directory_of_an_earlier_version_loads(tmp_path: Path) -> None:
    model = model_of("causal llama", tied=False)
    replace_head(model, _head(model, "mos"))
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["softmax_head"]["module"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    safetensors.torch.save_file(model.state_dict(), tmp_path / "model.safetensors", {"format": "pt"})
    assert torch.equal(logits_of(load_pretrained(tmp_path)), logits_of(model))


@pytest.mark.parametrize(
    ("head_name", "tied"),
    [("sigsoftmax", True), ("sigsoftmax", False), ("mos-plif", True), ("SphericalLinear", False)],
)
def test_what_was_saved_can_be_loaded_into_a_model_as_the_trainer_does_to_resume(
    head_name: str, tied: bool, tmp_path: Path
) -> None:
    model = model_of("causal gpt2", tied)
    replace_head(model, _head(model, head_name))
    expected = logits_of(model)
    model.save_pretrained(tmp_path)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = model.load_state_dict(safetensors.torch.load_file(tmp_path / "model.safetensors"), False)
    assert not found.unexpected_keys
    assert torch.equal(logits_of(model), expected)


@EACH_MODEL
@pytest.mark.parametrize("head_name", ["linear", "mos-plif"])
def test_in_training_the_loss_and_its_gradients_are_those_of_the_logits_and_no_logits_are_made(
    kind: str, head_name: str
) -> None:
    model = without_dropout(with_head(kind, head_name))
    labels = some_ids()
    labels[0, 2] = labels[1, 5] = -100
    fused = model(input_ids=some_ids(), labels=labels)
    fused.loss.backward()
    gradients = {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}
    assert fused.logits is None
    model.zero_grad()
    plain = model(input_ids=some_ids(), labels=labels, return_dict=False)  # a tuple has its logits
    plain[0].backward()
    torch.testing.assert_close(fused.loss, plain[0])
    for name, each in model.named_parameters():
        if each.grad is not None:
            torch.testing.assert_close(gradients[name], each.grad, rtol=1e-4, atol=1e-6)


def test_gradient_accumulation_divides_by_all_tokens_of_the_batch() -> None:
    model = without_dropout(with_head("causal llama", "mos-plif"))
    one = model(input_ids=some_ids(), labels=some_ids(), num_items_in_batch=torch.tensor(24))
    plain = model.eval()(input_ids=some_ids(), labels=some_ids(), num_items_in_batch=torch.tensor(24))
    torch.testing.assert_close(one.loss, plain.loss)


def test_copies_and_pickles_keep_head_and_class() -> None:
    model = with_head("causal gpt2", "mos-plif")
    expected = logits_of(model)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(logits_of(again), expected)
        assert isinstance(again, transformers.GPT2LMHeadModel)
        assert type(again).__name__ == "GPT2LMHeadModel"
        assert again.train()(input_ids=some_ids(), labels=some_ids()).logits is None


@pytest.mark.parametrize("layer", [SphericalLinear, VoronoiLinear])
@pytest.mark.parametrize("kind", ["causal gpt2", "causal llama", "causal gemma2"])
def test_a_layer_behind_the_models_own_norm_comes_back_behind_it(
    kind: str, layer: type[SphericalLinear], tmp_path: Path
) -> None:
    model = model_of(kind, tied=False)
    norm = model.transformer.ln_f if "gpt2" in kind else model.model.norm
    nn.init.normal_(norm.weight)
    replace_head(model, layer(FEATURES, CLASSES, behind=norm))
    model.save_pretrained(tmp_path)
    again = load_pretrained(tmp_path)
    assert torch.equal(logits_of(again), logits_of(model))
    head: Any = again.get_output_embeddings()
    assert head.domain == model.get_output_embeddings().domain
    assert head.guarantees(head.domain)


def test_norms_of_other_libraries_tell_their_gain() -> None:
    gemma, t5 = (
        transformers.models.gemma2.modeling_gemma2.Gemma2RMSNorm(FEATURES),
        transformers.models.t5.modeling_t5.T5LayerNorm(FEATURES),
    )
    for module in (gemma, t5):
        nn.init.normal_(module.weight)
    assert norm_of(gemma, FEATURES).domain() == am.RMSNorm((gemma.weight.detach() + 1).double().numpy())
    assert norm_of(t5, FEATURES).domain() == am.RMSNorm(t5.weight.detach().double().numpy())
    with pytest.raises(InputError, match=r"`behind` is the norm .* found Bilinear"):
        norm_of(nn.Bilinear(2, 2, 2), FEATURES)
