"""Replacing the head of real model classes: outputs, generation, losses, ties and files stay right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from huggingface_models import CLASSES, FEATURES, HIDDEN, MODELS, SPECIAL, model_of, some_ids
from torch import Tensor, nn

import argmaxable as am
from argmaxable.core.errors import InputError
from argmaxable.layers import (
    PLIF,
    SoftmaxHead,
    SphericalLinear,
    VoronoiLinear,
    load_pretrained,
    replace_head,
)

EACH_MODEL = pytest.mark.parametrize("kind", MODELS)
TIED_OR_NOT = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])


def head_for(model: Any, name: str) -> SoftmaxHead:
    bias = model.get_output_embeddings().bias is not None
    if name == "linear":
        return SoftmaxHead.from_name(name, FEATURES, CLASSES, bias=bias)
    torch.manual_seed(1)
    head = SoftmaxHead.from_name(name, FEATURES, CLASSES, mixtures=3, transform=PLIF(64, 5.0), bias=bias)
    nn.init.normal_(head.transform.raw)
    return head


# ---------------------------------------------------------------------- Hugging Face


@EACH_MODEL
@TIED_OR_NOT
def test_a_linear_head_gives_the_same_logits_to_the_last_bit(kind: str, tied: bool) -> None:
    model = model_of(kind, tied)
    before = model(input_ids=some_ids(), labels=some_ids())
    old = model.get_output_embeddings()
    head = head_for(model, "linear")
    assert replace_head(model, head) is old
    assert model.get_output_embeddings() is head
    after = model(input_ids=some_ids(), labels=some_ids())
    assert torch.equal(after.logits, before.logits)
    assert torch.equal(after.loss, before.loss)


@EACH_MODEL
@TIED_OR_NOT
def test_ties_to_the_embedding_stay_ties(kind: str, tied: bool) -> None:
    model = model_of(kind, tied)
    embedding = model.get_input_embeddings()
    was_tied = model.get_output_embeddings().weight is embedding.weight
    head = head_for(model, "mos-plif")
    replace_head(model, head)
    model.tie_weights()
    assert (head.weight is embedding.weight) == was_tied
    model(input_ids=some_ids(), labels=some_ids()).loss.backward()
    assert all(parameter.grad is not None for parameter in head.parameters())


@EACH_MODEL
def test_the_labels_loss_is_that_of_the_head(kind: str) -> None:
    model = model_of(kind, tied=True)
    head = head_for(model, "mos-plif")
    replace_head(model, head)
    seen: list[Tensor] = []
    head.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    output = model(input_ids=some_ids(), labels=some_ids())
    features, labels = seen[0], some_ids()
    if kind.startswith("causal"):
        features, labels = features[:, :-1], labels[:, 1:]
    torch.testing.assert_close(output.loss, head.loss(features, labels))


@pytest.mark.parametrize("kind", [kind for kind in MODELS if not kind.startswith("masked")])
@pytest.mark.parametrize("beams", [1, 2])
def test_generate_takes_the_heads_choices(kind: str, beams: int) -> None:
    model = model_of(kind, tied=True)
    head = head_for(model, "mos-plif")
    replace_head(model, head)
    ids = model.generate(
        input_ids=some_ids(), max_new_tokens=4, num_beams=beams, do_sample=False, use_cache=True
    )
    assert ids.shape[0] == 2
    if beams == 1 and kind.startswith("causal"):
        first = model(input_ids=some_ids()).logits[:, -1].argmax(-1)
        assert torch.equal(ids[:, 7], first)


@EACH_MODEL
@TIED_OR_NOT
@pytest.mark.parametrize("name", ["linear", "mos-plif"])
def test_a_saved_model_comes_back_with_its_head(kind: str, tied: bool, name: str, tmp_path: Path) -> None:
    model = model_of(kind, tied)
    replace_head(model, head_for(model, name))
    model.save_pretrained(tmp_path)
    again = load_pretrained(tmp_path).eval()
    expected = model(input_ids=some_ids(), labels=some_ids()).logits
    assert torch.equal(again(input_ids=some_ids(), labels=some_ids()).logits, expected)
    assert type(again).__name__ == type(model).__name__
    ties = [
        each.get_output_embeddings().weight is each.get_input_embeddings().weight for each in (model, again)
    ]
    assert ties[0] == ties[1]


def test_a_model_saved_twice_comes_back_too(tmp_path: Path) -> None:
    model = model_of("causal gpt2", tied=True)
    replace_head(model, head_for(model, "mos-plif"))
    model.save_pretrained(tmp_path / "one")
    load_pretrained(tmp_path / "one").save_pretrained(tmp_path / "two")
    again = load_pretrained(tmp_path / "two").eval()
    assert torch.equal(again(input_ids=some_ids()).logits, model(input_ids=some_ids()).logits)


def test_a_model_without_such_a_head_is_left_to_transformers(tmp_path: Path) -> None:
    model_of("causal gpt2", tied=True).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no softmax_head; use transformers itself"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("layer", [SphericalLinear, VoronoiLinear])
def test_a_prevention_layer_replaces_an_untied_head_and_loses_no_class(layer: type[nn.Linear]) -> None:
    model = model_of("causal gpt2", tied=False)
    head = layer(FEATURES, CLASSES, behind=model.transformer.ln_f)  # type: ignore[call-arg]
    replace_head(model, head)
    model(input_ids=some_ids(), labels=some_ids()).loss.backward()
    domain = head.domain  # type: ignore[attr-defined]
    assert not am.verify(am.Head.from_module(head), domain, engine=am.Engine(workers=1)).unargmaxable


def test_a_prevention_layer_can_not_share_the_embedding() -> None:
    model = model_of("causal gpt2", tied=True)
    with pytest.raises(InputError, match=r"shares its weight with another module .*SphericalLinear can't"):
        replace_head(model, SphericalLinear(FEATURES, CLASSES))


def changes_its_logits(kind: str) -> Any:
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, **HIDDEN, **SPECIAL}
    torch.manual_seed(0)
    if kind == "gemma2":
        config = transformers.Gemma2Config(**sizes, head_dim=8, final_logit_softcapping=0.3)
        return transformers.Gemma2ForCausalLM(config).eval()
    if kind == "cohere":
        return transformers.CohereForCausalLM(transformers.CohereConfig(**sizes, logit_scale=0.0625)).eval()
    return transformers.GraniteForCausalLM(transformers.GraniteConfig(**sizes, logits_scaling=8.0)).eval()


CHANGED_LOGITS = pytest.mark.parametrize("kind", ["gemma2", "cohere", "granite"])


@CHANGED_LOGITS
def test_what_a_model_does_to_its_logits_moves_into_the_head(kind: str) -> None:
    model = changes_its_logits(kind)
    before = model(input_ids=some_ids()).logits.log_softmax(-1)
    replace_head(model, SoftmaxHead(FEATURES, CLASSES, transform=PLIF(64, 5.0), bias=False))  # the identity
    torch.testing.assert_close(model(input_ids=some_ids()).logits.log_softmax(-1), before)


@CHANGED_LOGITS
def test_a_mixture_in_such_a_model_is_the_heads_own_distribution(kind: str, tmp_path: Path) -> None:
    model = changes_its_logits(kind)
    head = head_for(model, "mos-plif")
    replace_head(model, head)
    seen: list[Tensor] = []
    head.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    output = model(input_ids=some_ids(), labels=some_ids())
    torch.testing.assert_close(output.logits.exp().sum(-1), torch.ones(2, 7))
    torch.testing.assert_close(output.loss, head.loss(seen[0][:, :-1], some_ids()[:, 1:]))
    model.save_pretrained(tmp_path)
    assert torch.equal(load_pretrained(tmp_path).eval()(input_ids=some_ids()).logits, output.logits)


def test_a_change_of_logits_that_is_unknown_is_refused() -> None:
    model = model_of("causal gpt2", tied=True)
    model.config.output_multiplier = 0.5
    with pytest.raises(InputError, match=r"GPT2LMHeadModel seems to change .*output_multiplier = 0.5"):
        replace_head(model, head_for(model, "mos-plif"))


# ---------------------------------------------------------------------- any other module


class Plain(nn.Module):
    """A model of no library, with its output layer not at the end of its list of modules."""

    def __init__(self, *, tied: bool = False) -> None:
        super().__init__()
        self.decoder = nn.Linear(8, 30)
        self.embedding = nn.Embedding(30, 8)
        self.body = nn.Linear(8, 8)
        if tied:
            self.decoder.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Any:
        return self.decoder(torch.relu(self.body(self.embedding(ids))))


@pytest.mark.parametrize("name", [None, "decoder"])
@TIED_OR_NOT
def test_a_plain_model_keeps_its_outputs(name: str | None, tied: bool) -> None:
    model, ids = Plain(tied=tied), torch.arange(30)
    before = model(ids)
    replace_head(model, SoftmaxHead(8, 30), name=name)
    assert torch.equal(model(ids), before)
    assert (model.decoder.weight is model.embedding.weight) == tied


def test_fresh_weights_are_kept_when_asked() -> None:
    model, head = Plain(), SoftmaxHead(8, 30)
    fresh = head.weight.detach().clone()
    replace_head(model, head, keep_weights=False)
    assert torch.equal(model.decoder.weight, fresh)


def test_the_head_takes_over_the_precision() -> None:
    model = Plain().to(torch.bfloat16)
    replace_head(model, SoftmaxHead(8, 30, transform=PLIF(10, 2.0)))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert F.cross_entropy(model(torch.arange(30)), torch.arange(30)).isfinite()


@pytest.mark.parametrize(
    ("head", "name", "message"),
    [
        (SoftmaxHead(8, 31), None, "0 linear layers of Plain have 8 features and 31 classes; pass name="),
        (SoftmaxHead(8, 31), "decoder", "has 8 features and 30 classes, the new head 8 features and 31"),
        (SoftmaxHead(8, 30), "lm_head", r"no module 'lm_head'. Its last linear layers: decoder \(8 → 30\)"),
        (SoftmaxHead(8, 30), "", "Plain has no matrix of weights"),
        (SoftmaxHead(8, 30, bias=False), None, "has a bias and the new head none"),
        (nn.ReLU(), "decoder", "ReLU is not a head"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(head: nn.Module, name: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace_head(Plain(), head, name=name)


def test_two_layers_of_the_same_shape_need_a_name() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    with pytest.raises(InputError, match="2 linear layers of Sequential have 8 features and 8 classes"):
        replace_head(model, SoftmaxHead(8, 8))
    replace_head(model, SoftmaxHead(8, 8), name="1")
    assert isinstance(model[1], SoftmaxHead)
