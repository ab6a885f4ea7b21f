"""Heads that follow other heads, and files of models that say what their head is."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers
from huggingface_models import CLASSES, FEATURES, model_of, some_ids
from layer_references import small_head
from torch import Tensor, nn

from argmaxable.core.errors import InputError
from argmaxable.layers import Kernel, SoftmaxHead, Transform, load_pretrained, replace_head


def test_a_second_head_takes_over_the_cap_of_the_first() -> None:
    model = model_of("causal gemma2", tied=False)
    expected = model(some_ids()).logits
    for _ in range(2):
        replace_head(model, SoftmaxHead(FEATURES, CLASSES, bias=False))
    torch.testing.assert_close(model(some_ids()).logits, expected)
    with pytest.raises(InputError, match=r"scales its logits \(cap 0.3, scale 1.0\), which Linear can't"):
        replace_head(model, nn.Linear(FEATURES, CLASSES, bias=False))


def test_a_linear_layer_after_another_head_is_saved_as_one(tmp_path: Path) -> None:
    model = model_of("causal llama", tied=False)
    replace_head(model, small_head("sigsoftmax", FEATURES, CLASSES, bias=False))
    replace_head(model, nn.Linear(FEATURES, CLASSES, bias=False))
    model.save_pretrained(tmp_path)
    again = type(model)._own_class.from_pretrained(tmp_path)
    assert torch.equal(again(some_ids()).logits, model(some_ids()).logits)


class _Doubled(Transform):
    """2z: a transform that a configuration can't describe."""

    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        return 2 * z

    def slopes(self, z: Tensor) -> Tensor:
        return torch.full_like(z, 2)

    def inverse(self, y: Tensor) -> Tensor:
        return y / 2

    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        return _DoubledKernel(tables, learn=learn)


class _DoubledKernel(Kernel):
    def values(self, z: Tensor) -> Tensor:
        return 2 * z

    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        torch.mul(gradient, 2, out=out)


def test_a_model_whose_head_has_a_transform_of_its_own_loads_nowhere_in_silence(tmp_path: Path) -> None:
    model = model_of("causal llama", tied=False)
    replace_head(model, SoftmaxHead(FEATURES, CLASSES, transform=_Doubled(), bias=False))
    expected = model(some_ids()).logits
    model.save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        type(model)._own_class.from_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"_Doubled\. Build the model, give it the head with replace_head"):
        load_pretrained(tmp_path)
    again = model_of("causal llama", tied=False)
    replace_head(again, SoftmaxHead(FEATURES, CLASSES, transform=_Doubled(), bias=False))
    again.load_state_dict(safetensors.torch.load_file(tmp_path / "model.safetensors"))
    assert torch.equal(again(some_ids()).logits, expected)


def test_a_scale_that_can_not_be_changed_is_refused() -> None:
    model = model_of("causal llama", tied=False)
    fixed = {"logits_scaling": property(lambda self: 2.0)}
    model.config.__class__ = type("Fixed", (type(model.config),), fixed)
    head = SoftmaxHead(FEATURES, CLASSES, bias=False)
    with pytest.raises(InputError, match=r"LlamaForCausalLM scales its logits .* \(logits_scaling\)"):
        replace_head(model, head)


def test_the_configuration_comes_from_where_the_weights_come_from(tmp_path: Path) -> None:
    model = model_of("causal llama", tied=False)
    replace_head(model, small_head("mos", FEATURES, CLASSES, bias=False))
    model.save_pretrained(tmp_path / "inner")
    again = load_pretrained(tmp_path, subfolder="inner")
    assert torch.equal(again(some_ids()).logits, model(some_ids()).logits)


def test_a_model_in_several_files_comes_back(tmp_path: Path) -> None:
    model = model_of("causal gpt2", tied=True)
    replace_head(model, small_head("mos-plif", FEATURES, CLASSES, bias=False))
    model.save_pretrained(tmp_path, max_shard_size="4KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert torch.equal(load_pretrained(tmp_path)(some_ids()).logits, model(some_ids()).logits)
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        transformers.GPT2LMHeadModel.from_pretrained(tmp_path)
