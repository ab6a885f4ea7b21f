"""The fused loss where people train: Trainer, accelerate, Lightning. Whatever they do to batches and losses,
a model with a replaced linear head must end with the weights that the model's own head gives it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accelerate
import pytest
import torch
import transformers
from huggingface_models import CLASSES, FEATURES, model_of
from layer_references import small_head
from torch import Tensor, nn

import argmaxable as am
from argmaxable.core.errors import InputError
from argmaxable.layers import HeadMonitor, SoftmaxHead, lightning_callback, replace_head

ROWS, LENGTH = 12, 9


class Rows(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Random tokens; each row has another number of labels that count."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = torch.randint(3, CLASSES, (LENGTH,), generator=torch.Generator().manual_seed(index))
        labels = torch.where(torch.arange(LENGTH) < 1 + index % 7, -100, ids)
        return {"input_ids": ids, "labels": labels}


def two_models() -> tuple[Any, Any]:
    """The same weights with the model's own head, and with a linear head of ours."""
    own, replaced = (model_of("causal llama", tied=False).train() for _ in range(2))
    replace_head(replaced, SoftmaxHead(FEATURES, CLASSES, bias=False))
    return own, replaced


def require_same_weights(own: nn.Module, replaced: nn.Module) -> None:
    expected = own.state_dict()
    start = model_of("causal llama", tied=False).state_dict()
    for name, found in replaced.state_dict().items():
        torch.testing.assert_close(found, expected[name], rtol=1e-4, atol=1e-6)
        assert not torch.equal(found, start[name]), name


def arguments(folder: Path, **more: Any) -> transformers.TrainingArguments:
    return transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=2, num_train_epochs=1, learning_rate=0.05,
        optim="sgd", report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        dataloader_pin_memory=False, **more,
    )  # fmt: skip


@pytest.mark.parametrize("accumulated", [1, 3])
def test_the_trainer_ends_with_the_same_weights(accumulated: int, tmp_path: Path) -> None:
    models = two_models()
    for model in models:
        settings = arguments(tmp_path, gradient_accumulation_steps=accumulated)
        transformers.Trainer(model=model, args=settings, train_dataset=Rows()).train()
    require_same_weights(*models)


def test_the_trainer_never_has_logits_of_all_tokens(tmp_path: Path) -> None:
    _, replaced = two_models()
    seen = []
    replaced.register_forward_hook(lambda module, inputs, output: seen.append(output.logits))
    transformers.Trainer(model=replaced, args=arguments(tmp_path), train_dataset=Rows()).train()
    assert seen == [None] * (ROWS // 2)


def test_the_trainer_evaluates_with_logits(tmp_path: Path) -> None:
    own, replaced = two_models()
    losses = [
        transformers.Trainer(model=model, args=arguments(tmp_path), eval_dataset=Rows()).evaluate()[
            "eval_loss"
        ]
        for model in (own, replaced)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_a_trainer_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    weights = []
    for resume in (False, True):
        model = model_of("causal llama", tied=True).train()
        replace_head(model, small_head("mos-plif", FEATURES, CLASSES, bias=False))
        settings = arguments(tmp_path).to_dict() | {"save_strategy": "steps", "save_steps": 4}
        trainer = transformers.Trainer(
            model=model, args=transformers.TrainingArguments(**settings), train_dataset=Rows()
        )
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4") if resume else None)
        weights.append(model.state_dict())
    for name, each in weights[0].items():
        torch.testing.assert_close(weights[1][name], each)


def test_packed_sequences_have_the_same_loss_and_gradients() -> None:
    own, replaced = two_models()
    collator = transformers.DataCollatorWithFlattening(return_tensors="pt")
    rows = [{name: each.tolist() for name, each in Rows()[index].items()} for index in range(3)]
    batch = dict(collator(rows))
    assert batch["input_ids"].shape == (1, 3 * LENGTH)
    assert (batch["position_ids"] == 0).sum() == 3
    for model in (own, replaced):
        model(**batch).loss.backward()
    for (name, mine), theirs in zip(replaced.named_parameters(), own.parameters(), strict=True):
        assert theirs.grad is not None, name
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_accelerate_accumulates_to_the_same_weights() -> None:
    models = two_models()
    for model in models:
        accelerator = accelerate.Accelerator(gradient_accumulation_steps=3, cpu=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = torch.utils.data.DataLoader(Rows(), batch_size=2)
        prepared, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for batch in loader:
            with accelerator.accumulate(prepared):
                accelerator.backward(prepared(**batch).loss)
                optimizer.step()
                optimizer.zero_grad()
    require_same_weights(*models)


# ---------------------------------------------------------------------- Lightning


def batches(step: int) -> Iterator[tuple[Tensor, Tensor]]:
    for seed in range(step):
        generator = torch.Generator().manual_seed(seed)
        yield torch.randn(16, 4, generator=generator), torch.randint(30, (16,), generator=generator)


@pytest.mark.filterwarnings("ignore")  # Lightning's own, about parts of torch that it still uses
def test_lightning_logs_what_the_monitor_finds(tmp_path: Path) -> None:
    pl: Any = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    class Model(pl.LightningModule):  # type: ignore[misc]  # Lightning is optional, so its type is unknown
        def __init__(self) -> None:
            super().__init__()
            self.head = small_head("lms-plif", 4, 30)

        def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
            return self.head.loss(*batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    model, rows = Model(), []
    monitor = HeadMonitor(model.head, every=2, domain=am.Box(-10, 10), log=rows.append)
    trainer = pl.Trainer(
        max_steps=4, accumulate_grad_batches=2, callbacks=[lightning_callback(monitor)], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu", default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(model, torch.utils.data.DataLoader(list(batches(8)), batch_size=None))
    assert [row.step for row in rows] == [2, 4]
    logged = {name: float(each) for name, each in trainer.logged_metrics.items()}
    assert logged == pytest.approx(rows[-1].as_record())
    assert rows[-1].gradient_lost is not None


def test_without_lightning_the_callback_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(InputError, match="pip install lightning"):
        lightning_callback(HeadMonitor(nn.Linear(2, 3)))
