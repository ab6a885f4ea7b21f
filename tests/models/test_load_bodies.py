"""Models without an output layer, in every kind of file: never is another layer taken for one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from argmaxable.core.errors import LoadError
from argmaxable.models import find_head, load_head

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # transformers deprecates things while it is imported
    import transformers

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXTS = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
}
IMAGES = {**TEXTS, "image_size": 8, "patch_size": 4}
SOUNDS = {
    **TEXTS,
    "conv_dim": (8, 8),
    "conv_stride": (2, 2),
    "conv_kernel": (3, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "num_codevectors_per_group": 4,
    "codevector_dim": 8,
    "proj_codevector_dim": 8,
}
TRANSLATOR = {
    "vocab_size": 40,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 32,
}
T5 = {"vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
GPT = {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
PAIR = {"text_config": TEXTS, "vision_config": IMAGES}

# Models, their configurations, and the input embeddings they have, if any.
BODIES: dict[str, tuple[str, Mapping[str, Any], str | None]] = {
    "AlbertModel": ("AlbertConfig", {**TEXTS, "embedding_size": 8}, "embeddings.word_embeddings"),
    "BartModel": ("BartConfig", TRANSLATOR, "shared"),
    "BertForNextSentencePrediction": ("BertConfig", TEXTS, "bert.embeddings.word_embeddings"),
    "BertForQuestionAnswering": ("BertConfig", TEXTS, None),
    "BertModel": ("BertConfig", TEXTS, "embeddings.word_embeddings"),
    "BloomModel": (
        "BloomConfig",
        {"vocab_size": 40, "hidden_size": 16, "n_layer": 1, "n_head": 2},
        "word_embeddings",
    ),
    "CLIPModel": ("CLIPConfig", PAIR, "text_model.embeddings.token_embedding"),
    "CLIPVisionModel": ("CLIPVisionConfig", IMAGES, None),
    "DPRQuestionEncoder": (
        "DPRConfig",
        {**TEXTS, "projection_dim": 5},
        "question_encoder.bert_model.embeddings.word_embeddings",
    ),
    "DistilBertModel": (
        "DistilBertConfig",
        {"vocab_size": 40, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 24},
        "embeddings.word_embeddings",
    ),
    "ElectraForPreTraining": ("ElectraConfig", TEXTS, "electra.embeddings.word_embeddings"),
    "EsmModel": (
        "EsmConfig",
        {**TEXTS, "position_embedding_type": "absolute"},
        "embeddings.word_embeddings",
    ),
    "FNetModel": ("FNetConfig", TEXTS, "embeddings.word_embeddings"),
    "GPT2Model": ("GPT2Config", GPT, "wte"),
    "LlamaModel": ("LlamaConfig", TEXTS, "embed_tokens"),
    "MPNetModel": ("MPNetConfig", TEXTS, "embeddings.word_embeddings"),
    "OPTModel": ("OPTConfig", {**TEXTS, "ffn_dim": 24, "word_embed_proj_dim": 16}, "decoder.embed_tokens"),
    "RobertaModel": ("RobertaConfig", TEXTS, "embeddings.word_embeddings"),
    "SiglipModel": ("SiglipConfig", PAIR, "text_model.embeddings.token_embedding"),
    "T5EncoderModel": ("T5Config", T5, "shared"),
    "T5Model": ("T5Config", T5, "shared"),
    "ViTModel": ("ViTConfig", IMAGES, None),
    "Wav2Vec2ForPreTraining": ("Wav2Vec2Config", SOUNDS, None),
    "Wav2Vec2Model": ("Wav2Vec2Config", SOUNDS, None),
    "XLNetForSequenceClassification": (
        "XLNetConfig",
        {"vocab_size": 40, "d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 24},
        "transformer.word_embedding",
    ),
}


@pytest.fixture(scope="session")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each model, as transformers saves it, and beside its state_dict."""
    root = tmp_path_factory.mktemp("bodies")
    for name, (config, settings, _) in BODIES.items():
        model = getattr(transformers, name)(getattr(transformers, config)(**settings))
        model.save_pretrained(root / name)
        torch.save(model.state_dict(), root / f"{name}.bin")
    return root


def stored(root: Path, name: str, folder: Path, kind: str) -> Path:
    """The model as a file of that kind; "+ config" when its configuration lies beside."""
    suffix = kind.split()[0]
    path = folder / ("pytorch_model.bin" if suffix == "bin" else "model.safetensors")
    source = root / f"{name}.bin" if suffix == "bin" else root / name / "model.safetensors"
    path.write_bytes(source.read_bytes())
    if "+" in kind:
        (folder / "config.json").write_bytes((root / name / "config.json").read_bytes())
    return path


@pytest.mark.parametrize("kind", ["bin", "bin + config", "safetensors", "safetensors + config"])
@pytest.mark.parametrize("name", BODIES)
def test_a_model_without_an_output_layer_is_refused_and_its_embeddings_offered(
    bodies: Path, tmp_path: Path, name: str, kind: str
) -> None:
    path = stored(bodies, name, tmp_path, kind)
    embeddings = BODIES[name][2]
    offer = "--tensor" if embeddings is None else rf"--tensor ({embeddings}|decoder\.embed_tokens)\.weight\)"
    with pytest.raises(LoadError, match=rf"(no output layer found|no tensor alone decides).*{offer}"):
        load_head(path)
    if embeddings is not None:
        assert load_head(path, tensor=f"{embeddings}.weight").classes == 40


def test_an_encoder_taken_from_a_t5_has_no_head_even_where_nothing_names_it(
    bodies: Path, tmp_path: Path
) -> None:
    path = stored(bodies, "T5EncoderModel", tmp_path, "safetensors + config")
    config = json.loads((tmp_path / "config.json").read_text())
    del config["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(LoadError, match="no output layer found"):
        load_head(path)


# ---------------------------------------------------------------------- tensors that only look like a head


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def saved(folder: Path, names: Mapping[str, tuple[int, ...]], config: object = None) -> Path:
    save_file({name: normal(*shape) for name, shape in names.items()}, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder / "model.safetensors"


@pytest.mark.parametrize(
    ("names", "config", "complaint"),
    [
        (
            {"linear.weight": (6, 4), "linear.bias": (6,)},
            {"in_features": 4, "out_features": 6, "bias": True, "activation_function": "Tanh"},
            "sentence-transformers dense makes a text's features",
        ),
        (
            {"head.weight": (6, 4), "head_dist.weight": (6, 4), "blocks.0.attn.qkv.weight": (12, 4)},
            None,
            "distilled deit takes the mean of two",
        ),
        (
            {
                "mobilebert.embeddings.word_embeddings.weight": (9, 2),
                "cls.predictions.bias": (9,),
                "cls.predictions.decoder.weight": (9, 2),
                "cls.predictions.dense.weight": (2, 9),
            },
            None,
            "mobilebert joins two matrices",
        ),
        (
            {"model.layers.0.self_attn.W_pack.weight": (12, 4), "lm_head.weight": (9, 4)},
            None,
            "baichuan normalises the rows",
        ),
        (
            {"model.embed_tokens.weight": (9, 4), "model.norm.weight": (4,), "lm_head.qweight": (1, 9)},
            {"model_type": "llama", "architectures": ["LlamaForCausalLM"]},
            r"output layer is quantised \(lm_head\.qweight\)",
        ),
        (
            {
                "model.embed_tokens.weight": (9, 4),
                "lm_head.weight_packed": (1, 9),
                "lm_head.weight_scale": (9, 1),
            },
            {"model_type": "novel", "architectures": ["NovelForCausalLM"], "tie_word_embeddings": True},
            r"output layer is quantised \(lm_head\.weight_packed, lm_head\.weight_scale\)",
        ),
        (
            {"model.embed_tokens.weight": (9, 4), "model.up.weight": (9, 4)},
            {"model_type": "novel", "tie_word_embeddings": True},
            "no output layer found",
        ),
    ],
    ids=["dense", "distilled", "mobilebert", "baichuan", "gptq", "packed", "not a language model"],
)
def test_what_only_looks_like_a_head_is_refused(
    tmp_path: Path, names: dict[str, tuple[int, ...]], config: object, complaint: str
) -> None:
    with pytest.raises(LoadError, match=complaint):
        load_head(saved(tmp_path, names, config))


def test_a_classifier_of_a_family_whose_head_for_tokens_is_refused_is_read(tmp_path: Path) -> None:
    config = {"model_type": "mobilebert", "architectures": ["MobileBertForSequenceClassification"]}
    names = {"mobilebert.embeddings.word_embeddings.weight": (9, 2), "classifier.weight": (3, 4)}
    assert load_head(saved(tmp_path, names, config)).classes == 3


@pytest.mark.parametrize(
    "state",
    [
        {"a.weight": normal(4, 3), "b.weight": normal(5, 5), "b.bias": normal(5)},
        {"a.weight": normal(4, 3), "layers.0.fc2.weight": normal(5, 4), "layers.0.fc2.bias": normal(5)},
        {"self_attn.in_proj_weight": normal(9, 3), "out.weight": normal(5, 3), "out.bias": normal(5)},
        {"a.weight": normal(4, 3), "pooler.weight": normal(5, 4), "pooler.bias": normal(5)},
    ],
    ids=["square", "the only block", "behind attention", "pooler"],
)
def test_the_last_layer_is_not_taken_where_it_may_be_a_hidden_one(
    tmp_path: Path, state: dict[str, np.ndarray[Any, Any]]
) -> None:
    path = tmp_path / "m.pt"
    torch.save({name: torch.from_numpy(value) for name, value in state.items()}, path)
    with pytest.raises(LoadError, match=r"no output layer found.*--tensor"):
        load_head(path)


# ---------------------------------------------------------------------- parts of models

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


def test_that_a_part_of_a_model_has_no_head_does_not_mean_that_it_is_tied(tmp_path: Path) -> None:
    path = saved(tmp_path, {"model.embed_tokens.weight": (9, 4), "model.norm.weight": (4,)}, LLAMA)
    assert load_head(path).classes == 9
    part = path.rename(tmp_path / "model-00001-of-00002.safetensors")
    with pytest.raises(LoadError, match=r"no output layer found.*one of several.*pass their directory"):
        load_head(part)


def test_a_part_of_a_model_that_has_the_head_is_enough(tmp_path: Path) -> None:
    path = saved(tmp_path, {"lm_head.weight": (9, 4), "model.norm.weight": (4,)}, LLAMA)
    finding = find_head(path.rename(tmp_path / "model-00002-of-00002.safetensors"))
    assert finding.classes == 9
    assert finding.inputs is not None
    assert finding.inputs.domain is not None


@pytest.mark.parametrize("name", ["consolidated.{}.pth", "mp_rank_{}_model_states.pt"])
def test_a_file_with_slices_of_all_tensors_is_refused_unless_it_is_the_only_one(
    tmp_path: Path, name: str
) -> None:
    state = {"output.weight": torch.ones(5, 4), "tok_embeddings.weight": torch.ones(5, 4)}
    path = tmp_path / name.format("00")
    torch.save(state, path)
    assert load_head(path).classes == 5
    torch.save(state, tmp_path / name.format("01"))
    with pytest.raises(LoadError, match="holds a slice of every tensor, as the 1 files like it"):
        load_head(path)


@pytest.mark.parametrize(
    "head", ["decoder.embed_out", "decoder.output_projection.weight", "encoder.lm_head.weight"]
)
def test_fairseqs_heads_are_known_by_name(tmp_path: Path, head: str) -> None:
    names = {"decoder.embed_tokens.weight": (9, 4), "decoder.layers.0.self_attn.k_proj.weight": (4, 4)}
    path = tmp_path / "checkpoint_best.pt"
    state = {name: torch.from_numpy(normal(*shape)) for name, shape in {**names, head: (9, 4)}.items()}
    torch.save({"model": state, "args": None}, path)
    assert find_head(path).weight.name == head


# ---------------------------------------------------------------------- biases and other doubts


@pytest.mark.parametrize(
    ("names", "bias"),
    [
        ({"lm_head.weight": (9, 4), "final_logits_bias": (1, 9)}, "final_logits_bias"),
        ({"lm_head.decoder.weight": (9, 4), "lm_head.bias": (9,)}, "lm_head.bias"),
        ({"cls.predictions.decoder.weight": (9, 4), "cls.predictions.bias": (9,)}, "cls.predictions.bias"),
        ({"lm_head.weight": (9, 4), "lm_head.bias": (9,), "final_logits_bias": (1, 9)}, "lm_head.bias"),
    ],
)
def test_a_bias_is_found_wherever_it_lies(tmp_path: Path, names: dict[str, Any], bias: str) -> None:
    finding = find_head(saved(tmp_path, {**names, "body.weight": (4, 4)}))
    assert finding.bias is not None
    assert finding.bias.name == bias


def test_the_bias_of_a_tied_head_is_found_for_unknown_models(tmp_path: Path) -> None:
    config = {"model_type": "novel", "architectures": ["NovelLMHeadModel"], "tie_word_embeddings": True}
    names = {"transformer.word_embedding.weight": (9, 4), "lm_loss.bias": (9,), "x.weight": (4, 4)}
    finding = find_head(saved(tmp_path, names, config))
    assert finding.weight.name == "transformer.word_embedding.weight"
    assert finding.bias is not None
    assert finding.bias.name == "lm_loss.bias"


def test_a_vector_as_long_as_the_classes_is_mentioned_where_no_bias_was_taken(tmp_path: Path) -> None:
    names = {"embeddings.word_embeddings.weight": (9, 4), "odd.output_bias": (9,), "x.weight": (4, 4)}
    (note,) = find_head(saved(tmp_path, names), tensor="embeddings.word_embeddings.weight").notes
    assert note.startswith("odd.output_bias has as many entries as there are classes")
    assert "--bias-tensor odd.output_bias" in note


def test_a_single_class_is_noted(tmp_path: Path) -> None:
    (note,) = find_head(saved(tmp_path, {"classifier.weight": (1, 4), "x.weight": (4, 4)})).notes
    assert note.startswith("one class only")
