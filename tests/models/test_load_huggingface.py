"""Heads in Hugging Face directories, judged by transformers itself: the same argmax, on features that lie
in the proposed domain. Every parameter of the small models is random, norms included, so that a gain or
shift taken from the wrong place is noticed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from norms import rounded
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box
from argmaxable.core.domain import Domain
from argmaxable.core.errors import LoadError
from argmaxable.models import load_head
from argmaxable.models.checkpoint.families import FAMILIES
from argmaxable.models.finding import Finding
from argmaxable.models.registry import ReadOptions, find_format

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # transformers deprecates things while it is imported
    import transformers

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

VOCABULARY, WIDTH = 40, 16
IDS = torch.arange(3, 9)[None]
PIXELS = torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8)
BOTH = {"input_ids": IDS, "decoder_input_ids": IDS}
# The last token of a text for T5 and BART is the end of the sentence.
SENTENCE = {"input_ids": torch.tensor([[3, 4, 5, 6, 1]])}

ENCODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
}
DECODER = {**ENCODER, "num_key_value_heads": 1}
WIDE = {**DECODER, "head_dim": 8}
GPT = {
    "vocab_size": VOCABULARY,
    "n_embd": WIDTH,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 32,
    "pad_token_id": 0,
}
TRANSLATOR = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 2,
}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 2,
    "decoder_start_token_id": 0,
}
DISTIL = {
    "vocab_size": VOCABULARY,
    "dim": WIDTH,
    "n_layers": 2,
    "n_heads": 2,
    "hidden_dim": 24,
    "max_position_embeddings": 32,
}
OPT = {**ENCODER, "ffn_dim": 24, "word_embed_proj_dim": WIDTH}
IMAGES = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 8,
    "patch_size": 4,
}
THREE = {"id2label": {0: "bad", 1: "so so", 2: "good"}}


@dataclass(frozen=True)
class Case:
    """A model of transformers, how to call it, and what should be found in its directory.

    The features are what the module `head` takes in or, with `behind`, what it puts out.
    """

    model: str
    config: str
    settings: Mapping[str, Any]
    weight: str
    bias: str | None = None
    domain: type[Domain] = LayerNorm
    inputs: Mapping[str, torch.Tensor] = field(default_factory=lambda: {"input_ids": IDS})
    head: str = "lm_head"
    behind: bool = False


def masked(model: str, weight: str, bias: str | None, head: str, **settings: Any) -> Case:
    config = f"{model.removesuffix('ForMaskedLM')}Config"
    return Case(model, config, settings or ENCODER, weight, bias, head=head)


def decoder(model: str, weight: str, domain: type[Domain] = RMSNorm, **settings: Any) -> Case:
    bias = "lm_head.bias" if settings.pop("biased", False) else None
    return Case(f"{model}ForCausalLM", f"{model}Config", settings or DECODER, weight, bias, domain)


def translator(model: str, weight: str, bias: str | None = "final_logits_bias", **settings: Any) -> Case:
    config = f"{model.removesuffix('MTModel').removesuffix('ForConditionalGeneration')}Config"
    return Case(model, config, {**TRANSLATOR, **settings}, weight, bias, inputs=BOTH)


def classifier(
    model: str,
    config: str,
    settings: Mapping[str, Any],
    domain: type[Domain],
    head: str = "classifier",
    **more: Any,
) -> Case:
    bias = None if head == "score" and "Sequence" in model else f"{head}.bias"
    return Case(model, config, {**settings, **THREE}, f"{head}.weight", bias, domain, head=head, **more)


EMBEDDINGS = "model.embed_tokens.weight"
CASES = (
    Case("GPT2LMHeadModel", "GPT2Config", GPT, "transformer.wte.weight"),
    decoder("GPTJ", "lm_head.weight", LayerNorm, biased=True, **GPT, rotary_dim=4),
    decoder("Llama", "lm_head.weight"),
    decoder("Llama", EMBEDDINGS, **DECODER, tie_word_embeddings=True),
    decoder("Mistral", "lm_head.weight"),
    decoder("Mixtral", "lm_head.weight", **DECODER, num_local_experts=2),
    decoder("Qwen2", "lm_head.weight"),
    decoder("Qwen3", EMBEDDINGS, **WIDE, tie_word_embeddings=True),
    decoder("Gemma", EMBEDDINGS, **WIDE),
    decoder("Gemma2", EMBEDDINGS, **WIDE),
    Case("Gemma3ForCausalLM", "Gemma3TextConfig", WIDE, EMBEDDINGS, domain=RMSNorm),
    decoder("Phi", "lm_head.weight", LayerNorm, biased=True, **DECODER),
    decoder("Phi3", "lm_head.weight"),
    decoder("OPT", "model.decoder.embed_tokens.weight", LayerNorm, **OPT),
    decoder("Falcon", "transformer.word_embeddings.weight", LayerNorm, **ENCODER),
    Case("GPTNeoXForCausalLM", "GPTNeoXConfig", ENCODER, "embed_out.weight"),
    decoder(
        "Bloom",
        "transformer.word_embeddings.weight",
        LayerNorm,
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        n_layer=2,
        n_head=2,
    ),
    decoder(
        "Mpt",
        "transformer.wte.weight",
        LayerNorm,
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        n_layers=2,
        n_heads=2,
        max_seq_len=32,
    ),
    decoder("Starcoder2", EMBEDDINGS, LayerNorm, **DECODER),
    decoder("Olmo", "lm_head.weight", LayerNorm, **DECODER),
    decoder("Olmo2", "lm_head.weight"),
    decoder("Cohere", EMBEDDINGS, LayerNorm, **DECODER),
    masked(
        "BertForMaskedLM",
        "bert.embeddings.word_embeddings.weight",
        "cls.predictions.bias",
        "cls.predictions.decoder",
    ),
    masked(
        "RobertaForMaskedLM", "roberta.embeddings.word_embeddings.weight", "lm_head.bias", "lm_head.decoder"
    ),
    masked(
        "XLMRobertaForMaskedLM",
        "roberta.embeddings.word_embeddings.weight",
        "lm_head.bias",
        "lm_head.decoder",
    ),
    masked(
        "DistilBertForMaskedLM",
        "distilbert.embeddings.word_embeddings.weight",
        "vocab_projector.bias",
        "vocab_projector",
        **DISTIL,
    ),
    masked(
        "AlbertForMaskedLM",
        "albert.embeddings.word_embeddings.weight",
        "predictions.bias",
        "predictions.decoder",
        **ENCODER,
        embedding_size=8,
    ),
    masked(
        "ElectraForMaskedLM",
        "electra.embeddings.word_embeddings.weight",
        "generator_lm_head.bias",
        "generator_lm_head",
        **ENCODER,
        embedding_size=8,
    ),
    masked("ModernBertForMaskedLM", "model.embeddings.tok_embeddings.weight", "decoder.bias", "decoder"),
    translator("MarianMTModel", "model.shared.weight"),
    translator("MarianMTModel", "model.decoder.embed_tokens.weight", share_encoder_decoder_embeddings=False),
    translator("BartForConditionalGeneration", "model.shared.weight"),
    translator("MBartForConditionalGeneration", "model.shared.weight"),
    translator("M2M100ForConditionalGeneration", "model.shared.weight", bias=None),
    Case(
        "FSMTForConditionalGeneration",
        "FSMTConfig",
        {
            **TRANSLATOR,
            "langs": ["en", "de"],
            "src_vocab_size": 42,
            "tgt_vocab_size": VOCABULARY,
            "tie_word_embeddings": True,
        },
        "model.decoder.embed_tokens.weight",
        inputs=BOTH,
        head="model.decoder.output_projection",
    ),
    Case("T5ForConditionalGeneration", "T5Config", T5, "shared.weight", domain=RMSNorm, inputs=BOTH),
    Case("MT5ForConditionalGeneration", "MT5Config", T5, "shared.weight", domain=RMSNorm, inputs=BOTH),
    Case(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **TRANSLATOR,
            "num_mel_bins": 4,
            "max_source_positions": 10,
            "max_target_positions": 12,
            "bos_token_id": 3,
        },
        "model.decoder.embed_tokens.weight",
        inputs={"input_features": torch.linspace(-1, 1, 80).reshape(1, 4, 20), "decoder_input_ids": IDS},
        head="proj_out",
    ),
    classifier("DistilBertForSequenceClassification", "DistilBertConfig", DISTIL, Box),
    classifier("BertForSequenceClassification", "BertConfig", ENCODER, Box),
    classifier("BertForTokenClassification", "BertConfig", ENCODER, LayerNorm),
    classifier("RobertaForSequenceClassification", "RobertaConfig", ENCODER, Box, "classifier.out_proj"),
    classifier("RobertaForTokenClassification", "RobertaConfig", ENCODER, LayerNorm),
    classifier("AlbertForTokenClassification", "AlbertConfig", ENCODER, LayerNorm),
    classifier("ElectraForSequenceClassification", "ElectraConfig", ENCODER, Box, "classifier.out_proj"),
    classifier("ModernBertForSequenceClassification", "ModernBertConfig", ENCODER, LayerNorm),
    classifier("GPT2ForTokenClassification", "GPT2Config", GPT, LayerNorm),
    classifier("LlamaForSequenceClassification", "LlamaConfig", DECODER, RMSNorm, "score"),
    classifier("LlamaForTokenClassification", "LlamaConfig", DECODER, RMSNorm, "score"),
    classifier(
        "BartForSequenceClassification",
        "BartConfig",
        TRANSLATOR,
        Box,
        "classification_head.out_proj",
        inputs=SENTENCE,
    ),
    classifier("T5ForTokenClassification", "T5Config", T5, RMSNorm, inputs=SENTENCE),
    classifier("ViTForImageClassification", "ViTConfig", IMAGES, LayerNorm, inputs={"pixel_values": PIXELS}),
    # A head of its own has a bias of its own beside the one that a tied head would use.
    *(
        masked(
            f"{model}ForMaskedLM",
            f"{head}.weight",
            f"{head}.bias",
            head,
            **ENCODER,
            tie_word_embeddings=False,
        )
        for model, head in (("Bert", "cls.predictions.decoder"), ("Roberta", "lm_head.decoder"))
    ),
    *(
        masked(
            f"{model}ForMaskedLM",
            f"{body}.embeddings.word_embeddings.weight",
            "cls.predictions.bias",
            "cls.predictions.decoder",
            **ENCODER,
            **settings,
        )
        for model, body, settings in (
            ("BigBird", "bert", {"attention_type": "original_full"}),
            ("Deberta", "deberta", {}),
            ("DebertaV2", "deberta", {}),
            ("Ernie", "ernie", {}),
            ("FNet", "fnet", {}),
            ("LayoutLM", "layoutlm", {}),
            ("MegatronBert", "bert", {}),
            ("Nystromformer", "nystromformer", {}),
            ("RoFormer", "roformer", {}),
        )
    ),
    *(
        masked(
            f"{model}ForMaskedLM",
            f"{body}.embeddings.word_embeddings.weight",
            "lm_head.bias",
            "lm_head.decoder",
            **ENCODER,
            **settings,
        )
        for model, body, settings in (
            ("Camembert", "roberta", {}),
            ("Data2VecText", "data2vec_text", {}),
            ("Esm", "esm", {"position_embedding_type": "absolute", "mask_token_id": 2}),
            ("Longformer", "longformer", {"attention_window": 4}),
            ("MPNet", "mpnet", {}),
            ("RobertaPreLayerNorm", "roberta_prelayernorm", {}),
            ("XLMRobertaXL", "roberta", {}),
            ("Xmod", "roberta", {"default_language": "en_XX"}),
        )
    ),
    *(
        Case(
            f"{model}ForMaskedLM",
            f"{model}Config",
            {**ENCODER, "legacy": False},
            "deberta.embeddings.word_embeddings.weight",
            "lm_predictions.lm_head.bias",
            head="lm_predictions.lm_head.LayerNorm",
            behind=True,
        )
        for model in ("Deberta", "DebertaV2")
    ),
    masked(
        "ModernBertForMaskedLM",
        "model.embeddings.tok_embeddings.weight",
        None,
        "decoder",
        **ENCODER,
        decoder_bias=False,
    ),
    decoder("Cohere2", EMBEDDINGS, LayerNorm, **WIDE, logit_scale=0.1),
    decoder("Granite", "lm_head.weight", **DECODER, logits_scaling=8.0),
    decoder("Gemma2", EMBEDDINGS, **WIDE, final_logit_softcapping=2.0),
    decoder("Nemotron", "lm_head.weight", LayerNorm, **DECODER),
    translator("PegasusForConditionalGeneration", "model.shared.weight"),
    translator(
        "MarianMTModel",
        "model.decoder.embed_tokens.weight",
        share_encoder_decoder_embeddings=False,
        decoder_vocab_size=36,
    ),
)


@dataclass(frozen=True, eq=False)
class Saved:
    """A small model, the directory it was saved in (and beside it the file of its state_dict), what was found
    there, and what reached its head."""

    folder: Path
    state_dict: Path
    finding: Finding
    features: NDArray[np.float64]
    logits: NDArray[np.float64]


def found(folder: Path, **options: Any) -> Finding:
    return find_format(folder).find(folder, ReadOptions(**options))


def make_model(case: Case) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some modules use what torch deprecates
        config = getattr(transformers, case.config)(**case.settings)
        model = getattr(transformers, case.model)(config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator))
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.copy_(torch.randn(buffer.shape, generator=generator))
    return model.eval()


def run(model: Any, case: Case) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the model itself feeds its head, and the logits it answers; one row for each position."""
    seen: list[torch.Tensor] = []
    module = model.get_submodule(case.head)
    if case.behind:
        hook = module.register_forward_hook(lambda _, inputs, output: seen.append(output))
    else:
        hook = module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        logits = model(**case.inputs).logits
    hook.remove()
    rows = logits.reshape(-1, logits.shape[-1]).double().numpy()
    features = seen[-1].reshape(-1, seen[-1].shape[-1]).double().numpy()
    return features[-len(rows) :], rows  # a classifier of texts keeps the last position only


class Zoo:
    """Small models, each made and saved when a test first asks for it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.saved: dict[int, Saved] = {}

    def __getitem__(self, case: Case) -> Saved:
        number = CASES.index(case)
        if number not in self.saved:
            folder = self.root / f"{number}-{case.model}"
            model = make_model(case)
            model.save_pretrained(folder)
            state_dict = folder.with_suffix(".bin")
            torch.save(model.state_dict(), state_dict)
            self.saved[number] = Saved(folder, state_dict, found(folder), *run(model, case))
        return self.saved[number]


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo(tmp_path_factory.mktemp("zoo"))


def case_of(model: str) -> Case:
    return next(case for case in CASES if case.model == model)


def own_logits(finding: Finding, features: NDArray[np.float64]) -> NDArray[np.float64]:
    head = finding.head("head")
    return features @ head.rows(slice(None)).T + head.biases()


def require_inside(domain: Domain | None, features: NDArray[np.float64]) -> None:
    """Assert that all features lie in the domain, and behind a norm near its surface, as ordinary ones do."""
    width = features.shape[1]
    if isinstance(domain, Box):
        low, high = domain.bounds(width)
        assert ((low - 1e-6 <= features) & (features <= high + 1e-6)).all()
        return
    assert isinstance(domain, LayerNorm | RMSNorm)
    z = (features - domain.shifts(width)) / domain.gains(width)
    lengths = np.linalg.norm(z, axis=1) / np.sqrt(width)
    # Epsilon keeps the small activations of an untrained model a little inside.
    assert 0.98 < lengths.max() < 1 + 1e-5
    if isinstance(domain, LayerNorm):
        assert np.abs(z.mean(axis=1)).max() < 1e-4


each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.model)


@each_case
def test_the_argmax_is_the_models_own(zoo: Zoo, case: Case) -> None:
    saved = zoo[case]
    logits = own_logits(saved.finding, saved.features)
    assert np.array_equal(logits.argmax(axis=1), saved.logits.argmax(axis=1))
    # Logits may be scaled or squashed on the way, but never reordered.
    assert np.array_equal(logits.argsort(axis=1), saved.logits.argsort(axis=1))


@each_case
def test_the_models_own_features_lie_in_the_domain(zoo: Zoo, case: Case) -> None:
    inputs = zoo[case].finding.inputs
    assert inputs is not None
    assert isinstance(inputs.domain, case.domain)
    require_inside(inputs.domain, zoo[case].features)


@each_case
def test_the_tensors_are_those_of_the_family(zoo: Zoo, case: Case) -> None:
    finding = zoo[case].finding
    assert finding.weight.name == case.weight
    assert (finding.bias and finding.bias.name) == case.bias


@each_case
def test_the_weight_comes_back_bit_for_bit(zoo: Zoo, case: Case) -> None:
    stored = load_file(zoo[case].folder / "model.safetensors")
    assert load_head(zoo[case].folder).weight.tobytes() == stored[case.weight].tobytes()


def bare_copy(saved: Saved, folder: Path, kind: str) -> Path:
    """The model with less around it than transformers saves."""
    folder.mkdir()
    if kind.endswith(".bin"):
        path = folder / "pytorch_model.bin"
        path.write_bytes(saved.state_dict.read_bytes())
    else:
        path = folder / "model.safetensors"
        path.write_bytes((saved.folder / "model.safetensors").read_bytes())
    config = json.loads((saved.folder / "config.json").read_text())
    if kind == "no architecture":
        del config["architectures"]
    if not kind.startswith("bare"):
        (folder / "config.json").write_text(json.dumps(config))
    return path


@each_case
def test_a_file_with_less_around_it_has_the_models_own_head_or_none(
    zoo: Zoo, tmp_path: Path, case: Case
) -> None:
    saved = zoo[case]
    for kind in ("bare.bin", "bare.safetensors", "beside config.json.bin", "no architecture"):
        try:
            finding = found(bare_copy(saved, tmp_path / kind, kind))
        except LoadError:
            # What is tied can't be told from names alone, and what a family is used for not from its type.
            assert kind != "beside config.json.bin"
            assert finding_is_tied(saved) or kind == "no architecture", kind
            continue
        logits = own_logits(finding, saved.features)
        assert np.array_equal(logits.argsort(axis=1), saved.logits.argsort(axis=1)), kind
        if finding.inputs is not None and finding.inputs.domain is not None:
            require_inside(finding.inputs.domain, saved.features)


def finding_is_tied(saved: Saved) -> bool:
    return "ties its output layer" in saved.finding.why


# ---------------------------------------------------------------------- tied, scaled, renamed


def write_model(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        {name: np.ascontiguousarray(value) for name, value in tensors.items()}, folder / "model.safetensors"
    )
    return folder


def normal(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def copied(saved: Saved, folder: Path, rename: Mapping[str, str], **config: Any) -> Path:
    """The saved model again, with parts of its tensors' names replaced and its configuration changed."""
    tensors = {}
    for name, value in load_file(saved.folder / "model.safetensors").items():
        for old, new in rename.items():
            name = name.replace(old, new)
        tensors[name] = value
    old_config = json.loads((saved.folder / "config.json").read_text())
    return write_model(folder, {**old_config, **config}, tensors)


def test_a_t5_with_a_head_of_its_own_does_not_scale(tmp_path: Path) -> None:
    case = case_of("T5ForConditionalGeneration")
    tensors = {name: value.numpy() for name, value in make_model(case).state_dict().items()}
    config = {
        **case.settings,
        "model_type": "t5",
        "architectures": [case.model],
        "tie_word_embeddings": False,
    }
    folder = write_model(tmp_path / "t5", config, {**tensors, "lm_head.weight": normal(VOCABULARY, WIDTH)})
    features, logits = run(transformers.T5ForConditionalGeneration.from_pretrained(folder).eval(), case)
    finding = found(folder)
    assert finding.weight.name == "lm_head.weight"
    assert finding.inputs is not None
    require_inside(finding.inputs.domain, features)
    assert np.array_equal(own_logits(finding, features).argmax(axis=1), logits.argmax(axis=1))


def test_the_factor_of_a_tied_t5_is_mentioned(zoo: Zoo) -> None:
    inputs = zoo[case_of("T5ForConditionalGeneration")].finding.inputs
    assert inputs is not None
    assert "d^-1/2" in inputs.description


def test_gemmas_gain_is_one_more_than_what_is_stored(zoo: Zoo) -> None:
    saved = zoo[case_of("GemmaForCausalLM")]
    stored = load_file(saved.folder / "model.safetensors")["model.norm.weight"]
    assert saved.finding.inputs is not None
    assert saved.finding.inputs.domain == rounded(RMSNorm, 1.0 + stored.astype(np.float64))


def test_weights_in_half_precision_say_in_which_arithmetic_their_domain_holds(
    zoo: Zoo, tmp_path: Path
) -> None:
    saved = zoo[case_of("LlamaForCausalLM")]
    assert saved.finding.inputs is not None
    assert "float32" not in saved.finding.inputs.description
    for path in saved.folder.iterdir():
        shutil.copy(path, tmp_path)
    tensors = load_file(saved.folder / "model.safetensors")
    halves = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    save_file(halves, tmp_path / "model.safetensors")
    inputs = found(tmp_path).inputs
    assert inputs is not None
    assert isinstance(inputs.domain, RMSNorm)
    assert inputs.description.endswith(", if computed in float32")


@pytest.mark.parametrize(
    ("model", "rename"),
    [
        ("GPT2LMHeadModel", {"transformer.": ""}),
        ("BertForMaskedLM", {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}),
        ("LlamaForCausalLM", {"model.": "language_model.model.", "lm_head": "language_model.lm_head"}),
        ("LlamaForCausalLM", {"model.": "model.language_model."}),
        ("MarianMTModel", {"model.shared": "lm_head"}),
        ("RobertaForMaskedLM", {"roberta.embeddings.word_embeddings": "lm_head.decoder"}),
    ],
    ids=[
        "no prefix",
        "gamma and beta",
        "inside a larger model",
        "inside a body",
        "stored as head",
        "stored as decoder",
    ],
)
def test_other_names_of_the_same_tensors_are_known(
    zoo: Zoo, tmp_path: Path, model: str, rename: dict[str, str]
) -> None:
    saved = zoo[case_of(model)]
    finding = found(copied(saved, tmp_path / "renamed", rename))
    assert np.array_equal(own_logits(finding, saved.features), own_logits(saved.finding, saved.features))
    assert finding.inputs is not None
    assert saved.finding.inputs is not None
    assert finding.inputs.domain == saved.finding.inputs.domain


def test_the_language_model_inside_a_larger_one_is_found(tmp_path: Path) -> None:
    vision = transformers.CLIPVisionConfig(**IMAGES)
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=transformers.LlamaConfig(**DECODER), image_token_index=39
    )
    model = transformers.LlavaForConditionalGeneration(config).eval()
    model.save_pretrained(tmp_path)
    features, logits = run(model, case_of("LlamaForCausalLM"))
    finding = found(tmp_path)
    assert finding.inputs is not None
    require_inside(finding.inputs.domain, features)
    assert np.array_equal(own_logits(finding, features).argmax(axis=1), logits.argmax(axis=1))


def test_a_head_stored_beside_the_embeddings_it_is_tied_to_is_taken_with_a_note(
    zoo: Zoo, tmp_path: Path
) -> None:
    folder = copied(zoo[case_of("LlamaForCausalLM")], tmp_path / "both", {}, tie_word_embeddings=True)
    finding = found(folder)
    assert finding.weight.name == "lm_head.weight"
    assert "ties the output layer to model.embed_tokens.weight" in finding.notes[0]


def test_embeddings_are_no_head_when_the_configuration_says_they_are_not(zoo: Zoo, tmp_path: Path) -> None:
    folder = copied(zoo[case_of("LlamaForCausalLM")], tmp_path / "untied", {"lm_head": "something.else"})
    with pytest.raises(LoadError, match=r"no output layer.*llama models keep theirs in lm_head\.weight"):
        load_head(folder)


# ---------------------------------------------------------------------- inputs without a domain


def test_a_linear_behind_the_last_norm_is_described(tmp_path: Path) -> None:
    case = Case("OPTForCausalLM", "OPTConfig", {**OPT, "word_embed_proj_dim": 8}, "")
    model = make_model(case)
    model.save_pretrained(tmp_path)
    features, logits = run(model, case)
    finding = found(tmp_path)
    assert finding.features == 8
    assert finding.inputs is not None
    assert finding.inputs.domain is None
    assert "decoder.project_out" in finding.inputs.description
    assert np.array_equal(own_logits(finding, features).argmax(axis=1), logits.argmax(axis=1))


LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


@pytest.mark.parametrize(
    ("tensors", "complaint"),
    [
        ({}, "not where models of this type keep it"),
        (
            {"model.norm.weight": normal(4)},
            r"model.norm.weight (4, float32) does not fit the head's 16 features",
        ),
        ({"model.norm.weight": np.full(16, np.nan, np.float32)}, "NaN"),
    ],
    ids=["missing", "of another length", "not finite"],
)
def test_a_norm_that_proves_nothing_is_described(
    tmp_path: Path, tensors: dict[str, NDArray[Any]], complaint: str
) -> None:
    folder = write_model(tmp_path / "odd", LLAMA, {"lm_head.weight": normal(VOCABULARY, WIDTH), **tensors})
    inputs = found(folder).inputs
    assert inputs is not None
    assert inputs.domain is None
    assert complaint in inputs.description


# ---------------------------------------------------------------------- models the table does not know


def test_an_unknown_model_type_is_found_by_its_usual_name(tmp_path: Path) -> None:
    config = {"model_type": "novel", "architectures": ["NovelForCausalLM"]}
    tensors = {"lm_head.weight": normal(5, 4), "lm_head.bias": normal(5), "model.norm.weight": normal(4)}
    finding = found(write_model(tmp_path / "novel", config, tensors))
    assert (finding.weight.name, finding.bias and finding.bias.name) == ("lm_head.weight", "lm_head.bias")
    assert "usual name (model type 'novel' is not known)" in finding.why
    assert finding.inputs is not None
    assert finding.inputs.domain is None


def test_an_unknown_model_that_says_it_is_tied_has_its_embeddings_for_a_head(tmp_path: Path) -> None:
    config = {"model_type": "novel", "architectures": ["NovelForCausalLM"], "tie_word_embeddings": True}
    tensors = {"model.embed_tokens.weight": normal(5, 4), "model.layers.0.weight": normal(9, 9)}
    finding = found(write_model(tmp_path / "novel", config, tensors))
    assert finding.weight.name == "model.embed_tokens.weight"
    assert "config.json ties the output layer" in finding.why


def test_an_unknown_model_that_does_not_say_it_is_tied_has_none(tmp_path: Path) -> None:
    tensors = {"model.embed_tokens.weight": normal(5, 4), "model.layers.0.weight": normal(9, 9)}
    with pytest.raises(LoadError, match=r"no output layer.*tensor='model\.embed_tokens\.weight'"):
        load_head(write_model(tmp_path / "novel", {"model_type": "novel"}, tensors))


def test_a_directory_without_configuration_is_read_by_names(tmp_path: Path) -> None:
    save_file({"score.weight": normal(5, 4), "body.weight": normal(4, 4)}, tmp_path / "model.safetensors")
    assert load_head(tmp_path).classes == 5


def test_a_single_file_heeds_the_configuration_beside_it(zoo: Zoo) -> None:
    saved = zoo[case_of("GemmaForCausalLM")]
    finding = found(saved.folder / "model.safetensors")
    assert finding.format == "safetensors"
    assert finding.inputs == saved.finding.inputs


# ---------------------------------------------------------------------- models without a head


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    transformers.BertModel(transformers.BertConfig(**ENCODER)).save_pretrained(folder)
    return folder


def test_a_model_without_a_head_says_so_and_offers_its_embeddings(bare: Path) -> None:
    expected = (
        r"BertModel is the body of a model, without a head \(bert models keep theirs in "
        r"cls\.predictions\.decoder\.weight\).*--tensor embeddings\.word_embeddings\.weight\).*"
        r"\(40 × 16, float32\)"
    )
    with pytest.raises(LoadError, match=expected):
        load_head(bare)


def test_any_tensor_is_taken_by_name(bare: Path) -> None:
    head = load_head(bare, tensor="embeddings.word_embeddings.weight")
    stored = load_file(bare / "model.safetensors")["embeddings.word_embeddings.weight"]
    assert head.weight.tobytes() == stored.tobytes()
    assert head.bias is None


def test_a_layer_taken_by_name_brings_its_bias(bare: Path) -> None:
    finding = found(bare, tensor="pooler.dense.weight")
    assert finding.bias is not None
    assert finding.bias.name == "pooler.dense.bias"


def test_the_models_own_head_taken_by_name_brings_all_that_belongs_to_it(zoo: Zoo) -> None:
    saved = zoo[case_of("BertForMaskedLM")]
    finding = found(saved.folder, tensor=saved.finding.weight.name)
    assert finding.bias == saved.finding.bias
    assert finding.inputs == saved.finding.inputs


@pytest.mark.parametrize(
    ("config", "tensors", "complaint"),
    [
        (
            {"model_type": "bert", "architectures": ["BertForQuestionAnswering"]},
            ["qa_outputs"],
            "scores positions",
        ),
        (
            {"model_type": "bert", "architectures": ["BertForMultipleChoice"]},
            ["classifier"],
            "scores each answer",
        ),
        ({"model_type": "mobilebert"}, ["cls.predictions.decoder"], "joins two matrices"),
        ({"model_type": "baichuan"}, ["lm_head"], "normalises the rows"),
        (
            {"model_type": "electra", "architectures": ["ElectraForPreTraining"]},
            ["electra.embeddings.word_embeddings", "discriminator_predictions.dense_prediction"],
            "no output layer",
        ),
        ({"model_type": "novel"}, ["lm_head", "classifier"], "several tensors could be the output layer"),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else "",
)
def test_a_last_layer_that_decides_among_no_classes_is_refused(
    tmp_path: Path, config: dict[str, Any], tensors: list[str], complaint: str
) -> None:
    folder = write_model(tmp_path / "odd", config, {f"{name}.weight": normal(2, 4) for name in tensors})
    with pytest.raises(LoadError, match=f"{complaint}.*--tensor"):
        load_head(folder)


# ---------------------------------------------------------------------- labels


def test_a_classifiers_labels_are_in_its_configuration(zoo: Zoo) -> None:
    head = load_head(zoo[case_of("BertForTokenClassification")].folder)
    assert head.labels == ("bad", "so so", "good")


def test_a_language_models_labels_are_its_vocabulary(zoo: Zoo, tmp_path: Path) -> None:
    folder = copied(zoo[case_of("BertForMaskedLM")], tmp_path / "labelled", {})
    (folder / "vocab.txt").write_text("".join(f"token{number}\n" for number in range(VOCABULARY)))
    assert load_head(folder).labels == tuple(f"token{number}" for number in range(VOCABULARY))


def test_a_classifier_never_takes_the_vocabulary_for_its_labels(zoo: Zoo, tmp_path: Path) -> None:
    folder = copied(zoo[case_of("BertForTokenClassification")], tmp_path / "odd", {}, id2label={"0": "alone"})
    (folder / "vocab.txt").write_text("a\nb\nc\n")
    finding = found(folder)
    assert finding.labels is None
    assert "id2label lists 1 labels; the head has 3 classes" in finding.notes[0]


def test_a_classifier_of_several_labels_at_once_is_noted(zoo: Zoo, tmp_path: Path) -> None:
    saved = zoo[case_of("BertForSequenceClassification")]
    folder = copied(saved, tmp_path / "multi", {}, problem_type="multi_label_classification")
    assert "several labels can hold at once" in found(folder).notes[0]


# ---------------------------------------------------------------------- several files


@pytest.fixture(scope="session")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sharded")
    make_model(case_of("LlamaForCausalLM")).save_pretrained(folder, max_shard_size="3KB")
    return folder


def shard_of(folder: Path, tensor: str) -> str:
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    return str(index["weight_map"][tensor])


def copy_of(folder: Path, target: Path) -> Path:
    target.mkdir()
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_a_model_in_several_files_is_read_like_one(zoo: Zoo, sharded: Path) -> None:
    assert len(list(sharded.glob("*.safetensors"))) > 2
    whole = zoo[case_of("LlamaForCausalLM")]
    assert load_head(sharded).weight.tobytes() == load_head(whole.folder).weight.tobytes()
    assert found(sharded).inputs == whole.finding.inputs


def test_files_that_do_not_hold_the_head_may_be_missing_or_damaged(sharded: Path, tmp_path: Path) -> None:
    folder = copy_of(sharded, tmp_path / "partial")
    needed = {shard_of(folder, "lm_head.weight"), shard_of(folder, "model.norm.weight")}
    for number, path in enumerate(each for each in folder.glob("*.safetensors") if each.name not in needed):
        if number % 2:
            path.unlink()
        else:
            path.write_bytes(b"damaged")
    assert found(folder).inputs == found(sharded).inputs
    assert load_head(folder).weight.tobytes() == load_head(sharded).weight.tobytes()


def test_the_missing_file_that_holds_the_head_is_named(sharded: Path, tmp_path: Path) -> None:
    folder = copy_of(sharded, tmp_path / "headless")
    file = shard_of(folder, "lm_head.weight")
    (folder / file).unlink()
    with pytest.raises(
        LoadError, match=rf"'lm_head\.weight' can't be read: its file {file} is not in the folder"
    ):
        load_head(folder)


def test_a_missing_norm_leaves_the_head_readable(sharded: Path, tmp_path: Path) -> None:
    folder = copy_of(sharded, tmp_path / "normless")
    file = shard_of(folder, "model.norm.weight")
    assert file != shard_of(folder, "lm_head.weight")
    (folder / file).unlink()
    inputs = found(folder).inputs
    assert inputs is not None
    assert inputs.domain is None
    assert f"its file {file} is not in the folder" in inputs.description


@pytest.mark.parametrize(
    ("index", "complaint"),
    [
        ("{", "index.json is not valid JSON"),
        ("[]", "expected an object"),
        ("{}", "no weight_map"),
        ('{"weight_map": {"lm_head.weight": 3}}', "no weight_map"),
        ('{"weight_map": {"lm_head.weight": "../model.safetensors"}}', "outside of the model's folder"),
        ('{"weight_map": {"lm_head.weight": "/model.safetensors"}}', "outside of the model's folder"),
        ('{"weight_map": {"lm_head.weight": "a.safetensors"}}', "but it is not"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, index: str, complaint: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index)
    save_file({"other.weight": normal(5, 4)}, tmp_path / "a.safetensors")
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path)


@pytest.mark.parametrize("in_two_files", [False, True])
def test_pytorch_files_are_read_where_there_are_no_safetensors(
    zoo: Zoo, tmp_path: Path, in_two_files: bool
) -> None:
    saved = zoo[case_of("BertForMaskedLM")]
    state = {
        name: torch.from_numpy(each) for name, each in load_file(saved.folder / "model.safetensors").items()
    }
    (tmp_path / "config.json").write_bytes((saved.folder / "config.json").read_bytes())
    if in_two_files:
        files = {name: f"pytorch_model-{1 + number % 2}.bin" for number, name in enumerate(state)}
        for file in set(files.values()):
            torch.save({name: state[name] for name in state if files[name] == file}, tmp_path / file)
        index = json.dumps({"metadata": {}, "weight_map": files})
        (tmp_path / "pytorch_model.bin.index.json").write_text(index)
    else:
        torch.save(state, tmp_path / "pytorch_model.bin")
    finding = found(tmp_path)
    assert finding.inputs == saved.finding.inputs
    assert np.array_equal(own_logits(finding, saved.features), own_logits(saved.finding, saved.features))


# ---------------------------------------------------------------------- directories that are no models


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"config.json": "{}"}, r"no weights under the usual names.*it holds config\.json"),
        ({"config.json": "{}", "notes.txt": ""}, r"it holds config\.json, notes\.txt\. Pass the file"),
        ({"a.safetensors": "", "b.safetensors": ""}, r"it holds a\.safetensors, b\.safetensors"),
        ({"adapter_config.json": "{}", "adapter_model.safetensors": ""}, "is an adapter.*merge_and_unload"),
    ],
)
def test_a_directory_without_a_model_says_what_it_holds(
    tmp_path: Path, files: dict[str, str], complaint: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (b"{", r"config\.json is not valid JSON"),
        (b"\xff\xfe\xfd", r"config\.json is not valid JSON"),
        (b"[" * 100_000, r"config\.json is not valid JSON"),
        (b"[]", "JSON list, expected an object"),
    ],
    ids=["cut", "no text", "deep", "list"],
)
def test_a_damaged_configuration_is_refused(tmp_path: Path, config: bytes, complaint: str) -> None:
    save_file({"lm_head.weight": normal(5, 4)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes(config)
    with pytest.raises(LoadError, match=complaint):
        load_head(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipes_are_never_waited_for(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "other.safetensors", "shard.safetensors"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(LoadError, match="no weights under the usual names"):
        load_head(tmp_path)
    index = {"weight_map": {"lm_head.weight": "shard.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(LoadError, match=r"its file shard\.safetensors is not in the folder"):
        load_head(tmp_path)


def test_values_of_the_wrong_type_in_a_configuration_count_as_not_given(tmp_path: Path) -> None:
    config = {
        "model_type": ["bert"],
        "architectures": [{}],
        "tie_word_embeddings": [],
        "text_config": 3,
        "scale_decoder_outputs": "no",
    }
    folder = write_model(tmp_path / "odd", config, {"lm_head.weight": normal(5, 4), "x.weight": normal(9, 9)})
    assert load_head(folder).classes == 5


def test_reading_a_directory_imports_neither_torch_nor_transformers(zoo: Zoo) -> None:
    program = (
        "import sys; from argmaxable.models import load_head; load_head(sys.argv[1]); "
        "assert not {'torch', 'transformers', 'huggingface_hub', 'onnx'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    folder = zoo[case_of("GPT2LMHeadModel")].folder
    subprocess.run([sys.executable, "-c", program, folder], check=True, env=environment)


# ---------------------------------------------------------------------- the table


def test_no_model_type_is_in_two_families() -> None:
    types = [model_type for family in FAMILIES for model_type in family.model_types]
    assert len(types) == len(set(types))


def test_names_in_the_table_have_no_other_gaps_than_body_and_last() -> None:
    names = [
        name
        for family in FAMILIES
        for place in family.places
        for name in (
            *place.weight,
            *place.bias,
            *place.tied,
            *(feed.layer or "" for feed in place.feeds if hasattr(feed, "layer")),
        )
    ]
    assert all("{" not in name.replace("{body}", "").replace("{last}", "") for name in names)
