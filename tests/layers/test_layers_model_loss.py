"""The loss of a model with a replaced head is the one its own code would compute from the logits.

Models line up labels and tokens in different ways: some shift labels, some don't, some add a term of their
own. So each kind is compared with the same model computing its loss from logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from huggingface_models import CLASSES, FEATURES, HIDDEN, SPECIAL, gemma2, llama, some_ids
from layer_references import small_head
from torch import Tensor, nn

from argmaxable.core.errors import InputError
from argmaxable.layers import SoftmaxHead, replace_head
from argmaxable.layers.pending_logits import LogitsNeededError, PendingLogits

SIDES = {
    f"{side}_{part}": size
    for side in ("encoder", "decoder")
    for part, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
}
HEADS_OF_TWO = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}


def model_of(name: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    own_class = getattr(transformers, name)
    return own_class(own_class.config_class(**SPECIAL, **settings))


SEQ2SEQ = {**SIDES, "d_model": FEATURES, "max_position_embeddings": 32, "decoder_start_token_id": 2}
# Labels are not shifted by the "causal" decoders of translators, nor by XLNet and XLM.
KINDS: dict[str, Callable[[], Any]] = {
    "BartForCausalLM": lambda: model_of("BartForCausalLM", **SEQ2SEQ, is_decoder=True),
    "MarianForCausalLM": lambda: model_of("MarianForCausalLM", **SEQ2SEQ, is_decoder=True),
    "XLNetLMHeadModel": lambda: model_of(
        "XLNetLMHeadModel", d_model=FEATURES, n_layer=1, n_head=2, d_inner=16
    ),
    "XLMWithLMHeadModel": lambda: model_of("XLMWithLMHeadModel", emb_dim=FEATURES, n_layers=1, n_heads=2),
    "BlenderbotForConditionalGeneration": lambda: model_of("BlenderbotForConditionalGeneration", **SEQ2SEQ),
    "BertLMHeadModel": lambda: model_of("BertLMHeadModel", **HIDDEN, **HEADS_OF_TWO, is_decoder=True),
    "MixtralForCausalLM": lambda: model_of(
        "MixtralForCausalLM", **HIDDEN, **HEADS_OF_TWO, num_local_experts=3, output_router_logits=True
    ),
}  # fmt: skip


def replaced(model: Any, name: str = "linear") -> Any:
    """In training mode and without dropout, with that head in place."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for part in ("dropout", "attention_dropout", "activation_dropout"):
            if isinstance(getattr(module, part, None), float):
                setattr(module, part, 0.0)
    layer = model.get_output_embeddings()
    replace_head(model, small_head(name, FEATURES, CLASSES, bias=layer.bias is not None))
    return model.train()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head_name", ["linear", "mos-plif"])
def test_the_loss_without_logits_is_the_models_own(kind: str, head_name: str) -> None:
    model = replaced(KINDS[kind](), head_name)
    labels = some_ids()
    labels[0, 3] = -100
    fused = model(input_ids=some_ids(), labels=labels)
    fused.loss.backward()
    gradients = {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}
    assert fused.logits is None
    model.zero_grad()
    model.get_output_embeddings().fuses_loss = False
    plain = model(input_ids=some_ids(), labels=labels)
    plain.loss.backward()
    assert plain.logits.shape[-1] == CLASSES
    torch.testing.assert_close(fused.loss, plain.loss)
    for name, each in model.named_parameters():
        if each.grad is not None:
            torch.testing.assert_close(gradients[name], each.grad, rtol=1e-4, atol=1e-6)


def test_a_model_that_needs_its_logits_gets_them_and_says_so_once() -> None:
    """ProphetNet predicts several tokens at once, by a loss of its own."""
    sizes = {"hidden_size": FEATURES, "num_encoder_attention_heads": 2, "num_decoder_attention_heads": 2}
    model = replaced(model_of(
        "ProphetNetForConditionalGeneration", **sizes, encoder_ffn_dim=16, decoder_ffn_dim=16,
        num_encoder_layers=1, num_decoder_layers=1, decoder_start_token_id=2, dropout=0.0,
        attention_dropout=0.0, activation_dropout=0.0,
    ))  # fmt: skip
    with pytest.warns(UserWarning, match=r"ProphetNet\w+ needs its logits in training \(\w+\)"):
        first = model(input_ids=some_ids(), labels=some_ids())
    second = model(input_ids=some_ids(), labels=some_ids())
    assert first.logits is not None
    torch.testing.assert_close(first.loss, second.loss)


def test_a_bias_that_a_model_adds_counts() -> None:
    model = replaced(model_of("MarianMTModel", **SEQ2SEQ, forced_eos_token_id=None))
    without = model(input_ids=some_ids(), labels=some_ids())
    assert without.logits is None
    nn.init.normal_(model.final_logits_bias)
    with pytest.warns(UserWarning, match=r"needs its logits in training \(add\)"):
        found = model(input_ids=some_ids(), labels=some_ids())
    assert found.loss != without.loss
    expected = F.cross_entropy(found.logits.flatten(0, 1), some_ids().flatten())
    torch.testing.assert_close(found.loss, expected)


class _Scaled(transformers.LlamaForCausalLM):
    """Scales its logits, as no setting says."""

    def forward(self, input_ids: Tensor, labels: Tensor | None = None, **options: Any) -> Any:
        output = super().forward(input_ids=input_ids, **options)
        output.logits = output.logits * 0.5
        if labels is not None:
            output.loss = self.loss_function(output.logits, labels, self.config.vocab_size)
        return output


def test_a_scale_that_no_setting_tells_is_refused_for_a_mixture_and_obeyed_for_a_linear_head() -> None:
    for head_name in ("linear", "mos"):
        model = llama(False)
        model.__class__ = _Scaled
        replaced(model, head_name)
        if head_name == "linear":
            with pytest.warns(UserWarning, match="needs its logits"):
                found = model(input_ids=some_ids(), labels=some_ids())
            expected = model.eval()(input_ids=some_ids(), labels=some_ids()).loss
            torch.testing.assert_close(found.loss, expected)
        else:
            with pytest.raises(InputError, match=r"_Scaled changes the logits .* \(mul\)"):
                model(input_ids=some_ids(), labels=some_ids())


def test_a_model_that_never_calls_its_output_layer_is_named() -> None:
    sizes = {"hidden_size": 2 * FEATURES, "embedding_size": FEATURES, "intra_bottleneck_size": FEATURES}
    model = model_of("MobileBertForMaskedLM", **sizes, intermediate_size=16, num_hidden_layers=1,
                     num_attention_heads=2)  # fmt: skip
    replace_head(model, small_head("sigsoftmax", FEATURES, CLASSES))
    with pytest.raises(InputError, match="MobileBertForMaskedLM does not call its output layer"):
        model.train()(input_ids=some_ids(), labels=some_ids())


# ---------------------------------------------------------------------- logits that are not there


def pending(head: SoftmaxHead, h: Tensor) -> Tensor:
    with head.logits_pending():
        return head(h)


@pytest.mark.parametrize(
    "cut",
    [
        lambda logits: logits.view(-1, 20),
        lambda logits: logits.float()[..., :-1, :].contiguous().view(-1, 20),
        lambda logits: logits[:, 1:].reshape(-1, logits.size(-1)),
        lambda logits: logits[:, :-1].flatten(0, 1),
        lambda logits: logits.to(torch.float32)[torch.arange(3 * 4).view(3, 4) % 3 == 1].contiguous(),
        lambda logits: logits[0],
    ],
)
def test_views_of_pending_logits_are_those_tokens(cut: Callable[[Tensor], Tensor]) -> None:
    head, h = small_head("lms-plif", 5, 20), torch.randn(3, 4, 5)
    expected = cut(head(h))
    found = cut(pending(head, h))
    assert isinstance(found, PendingLogits)
    assert found.shape == expected.shape
    targets = torch.arange(len(expected))
    how: dict[str, Any] = {"label_smoothing": 0.1, "reduction": "none", "weight": torch.linspace(0, 1, 20)}
    torch.testing.assert_close(
        F.cross_entropy(found, targets, **how), F.cross_entropy(expected, targets, **how)
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda logits: logits * 2,
        lambda logits: logits.softmax(-1),
        lambda logits: logits.view(-1, 10),
        lambda logits: logits[..., 3],
        lambda logits: logits[..., :10],
        lambda logits: logits.to(torch.float64),
        lambda logits: logits.transpose(1, 2),
        lambda logits: F.cross_entropy(logits, torch.zeros(3, 20, dtype=torch.long)),
        lambda logits: torch.add(logits, torch.ones(20)),
    ],
)
def test_whatever_needs_the_numbers_says_so(use: Callable[[Tensor], Tensor]) -> None:
    head, h = small_head("linear", 5, 20), torch.randn(3, 4, 5)
    with pytest.raises(LogitsNeededError):
        use(pending(head, h))


def test_gemmas_cap_is_in_the_loss_without_logits() -> None:
    model = replaced(gemma2(False), "linear")
    found = model(input_ids=some_ids(), labels=some_ids())
    expected = model.eval()(input_ids=some_ids(), labels=some_ids()).loss
    assert found.logits is None
    torch.testing.assert_close(found.loss, expected)


@pytest.mark.parametrize("head_name", ["linear", "mos-plif"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole model", "body"])
def test_a_compiled_model_has_the_same_loss_and_gradients(head_name: str, whole: bool) -> None:
    model = replaced(llama(False), head_name)
    model(input_ids=some_ids(), labels=some_ids()).loss.backward()
    expected = {name: each.grad.clone() for name, each in model.named_parameters()}
    model.zero_grad()
    (model if whole else model.model).compile(backend="aot_eager")
    found = model(input_ids=some_ids(), labels=some_ids())
    found.loss.backward()
    assert (found.logits is None) == (not whole)  # compiled whole, a model has logits
    for name, each in model.named_parameters():
        torch.testing.assert_close(each.grad, expected[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["CohereForCausalLM", "GraniteForCausalLM"])
def test_a_scale_that_moved_into_the_head_leaves_the_loss_without_logits(kind: str) -> None:
    scale = {"logit_scale": 0.3} if "Cohere" in kind else {"logits_scaling": 4.0}
    model = replaced(model_of(kind, **HIDDEN, **HEADS_OF_TWO, **scale), "mos")
    found = model(input_ids=some_ids(), labels=some_ids())
    assert found.logits is None
    torch.testing.assert_close(found.loss, model.eval()(input_ids=some_ids(), labels=some_ids()).loss)
