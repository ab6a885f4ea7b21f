"""Where each family of Hugging Face models keeps its output layer, and what feeds it.

A table. A row names model types and, for each task they are trained for, the tensors of the output
layer and the last operation before it. In a name, {body} stands for what the model without its head is
called in the file (nothing, when it was saved alone) and {last} for the number of the last layer.
Dropout, which is switched off when a model is used, softcapping and positive factors on the logits keep
the argmax and are not mentioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class HeadTask(Enum):
    """What the classes of a head are, told by how the names of architectures end."""

    LANGUAGE = (
        "ForCausalLM",
        "LMHeadModel",
        "ForMaskedLM",
        "ForPreTraining",
        "ForConditionalGeneration",
        "ForImageTextToText",
        "MTModel",
        "DoubleHeadsModel",
        "EncoderDecoderModel",
    )
    SEQUENCE = ("ForSequenceClassification", "ForImageClassification")
    TOKEN = ("ForTokenClassification",)


@dataclass(frozen=True)
class FamilyNorm:
    """A norm feeds the head: its layer's name (None when it stores nothing) and kind.

    The gain is `offset` plus what is stored.
    """

    layer: str | None
    kind: Literal["LayerNorm", "RMSNorm"]
    offset: float = 0.0


@dataclass(frozen=True)
class Activation:
    """An activation function feeds the head; `argmaxable.models.activations` knows which values it has."""

    name: str


@dataclass(frozen=True)
class Obstacle:
    """Something feeds the head that proves no domain; with `layer`, only where that layer is stored."""

    description: str
    layer: str | None = None


Feed = FamilyNorm | Activation | Obstacle


@dataclass(frozen=True)
class Place:
    """Where the head for one task is: names to try in turn, and what may feed it, the first that fits.

    `tied` are the embeddings that serve as weight when no other is stored, `proof` a layer that only
    models with this head have, `scaled` whether a tied head's features are multiplied by d^-1/2, and
    `architectures` endings of their names that are meant, where not all of the task are.
    """

    task: HeadTask
    weight: tuple[str, ...]
    bias: tuple[str, ...]
    feeds: tuple[Feed, ...]
    tied: tuple[str, ...] = ()
    proof: str | None = None
    scaled: bool = False
    architectures: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ModelFamily:
    """Model types that share a layout; `body` is the usual name of the model without its head."""

    model_types: tuple[str, ...]
    body: str
    places: tuple[Place, ...]


_TANH, _RELU, _GELU = Activation("tanh"), Activation("relu"), Activation("gelu")


def _layer_norm(layer: str | None, offset: float = 0.0) -> FamilyNorm:
    return FamilyNorm(layer, "LayerNorm", offset)


def _rms_norm(layer: str, offset: float = 0.0) -> FamilyNorm:
    return FamilyNorm(layer, "RMSNorm", offset)


def _linear(task: HeadTask, names: tuple[str, ...], *feeds: Feed) -> Place:
    """A head of its own, stored as NAME.weight and NAME.bias."""
    return Place(
        task, tuple(f"{name}.weight" for name in names), tuple(f"{name}.bias" for name in names), feeds
    )


def _decoder(
    model_types: str, body: str, embeddings: str, *feeds: Feed, head: str = "lm_head"
) -> ModelFamily:
    """Language models that only decode; as classifiers they put another matrix behind the same norm."""
    return ModelFamily(
        tuple(model_types.split()),
        body,
        (
            Place(
                HeadTask.LANGUAGE,
                (f"{head}.weight",),
                (f"{head}.bias",),
                feeds,
                tied=(f"{{body}}{embeddings}.weight",),
            ),
            _linear(HeadTask.SEQUENCE, ("score",), *feeds),
            _linear(HeadTask.TOKEN, ("score", "classifier"), *feeds),
        ),
    )


def _masked(
    head: str, norm: str, bias: str, embeddings: str, *architectures: str, proof: str | None = None
) -> Place:
    """An encoder's head for masked tokens: tied, behind a Linear and a LayerNorm of its own (or `proof`)."""
    return Place(
        HeadTask.LANGUAGE,
        (f"{head}.weight",),
        (f"{head}.bias", f"{bias}.bias"),
        (_layer_norm(norm),),
        tied=(f"{{body}}embeddings.{embeddings}.weight",),
        proof=proof or norm,
        architectures=architectures or None,
    )


def _encoder(
    model_types: str, body: str, masked: Place, sequence: tuple[str, Feed], token: tuple[str, Feed]
) -> ModelFamily:
    """Encoders: for masked tokens, and as classifiers of texts and of their tokens."""
    return ModelFamily(
        tuple(model_types.split()),
        body,
        (
            masked,
            _linear(HeadTask.SEQUENCE, (sequence[0],), sequence[1]),
            _linear(HeadTask.TOKEN, (token[0],), token[1]),
        ),
    )


def _translator(model_types: str, norm: str, *, head: str = "lm_head") -> ModelFamily:
    """Encoder-decoders in the style of BART. One table of embeddings may go by any of three names."""
    return ModelFamily(
        tuple(model_types.split()),
        "model.",
        (
            Place(
                HeadTask.LANGUAGE,
                (f"{head}.weight",),
                ("final_logits_bias",),
                (_layer_norm(f"{{body}}decoder.{norm}"),),
                tied=tuple(
                    f"{{body}}{name}.weight"
                    for name in ("decoder.embed_tokens", "shared", "encoder.embed_tokens")
                ),
            ),
            _linear(HeadTask.SEQUENCE, ("classification_head.out_proj",), _TANH),
        ),
    )


def _t5(model_types: str, *, scaled: bool) -> ModelFamily:
    return ModelFamily(
        tuple(model_types.split()),
        "transformer.",
        (
            Place(
                HeadTask.LANGUAGE,
                ("lm_head.weight",),
                (),
                (_rms_norm("{body}decoder.final_layer_norm"),),
                tied=("shared.weight", "decoder.embed_tokens.weight", "encoder.embed_tokens.weight"),
                scaled=scaled,
            ),
            _linear(HeadTask.SEQUENCE, ("classification_head.out_proj",), _TANH),
            _linear(HeadTask.TOKEN, ("classifier",), _rms_norm("{body}encoder.final_layer_norm")),
        ),
    )


def _images(model_types: str, body: str, feed: Feed) -> ModelFamily:
    return ModelFamily(tuple(model_types.split()), body, (_linear(HeadTask.SEQUENCE, ("classifier",), feed),))


_POST_NORM = _layer_norm("{body}encoder.layer.{last}.output.LayerNorm")
_BERT_HEAD = _masked(
    "cls.predictions.decoder", "cls.predictions.transform.LayerNorm", "cls.predictions", "word_embeddings"
)
_ROBERTA_HEAD = _masked("lm_head.decoder", "lm_head.layer_norm", "lm_head", "word_embeddings")

FAMILIES: tuple[ModelFamily, ...] = (
    # Decoders: model types, body, embeddings, what feeds the head.
    _decoder("gpt2 gpt_bigcode gpt_neo gptj codegen", "transformer.", "wte", _layer_norm("{body}ln_f")),
    _decoder("falcon bloom", "transformer.", "word_embeddings", _layer_norm("{body}ln_f")),
    _decoder("mpt", "transformer.", "wte", _layer_norm("{body}norm_f")),
    _decoder(
        "llama mistral mixtral ministral qwen2 qwen2_moe qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text "
        "qwen3 qwen3_moe phi3 olmo2 olmo3 olmoe granite granitemoe deepseek_v2 deepseek_v3 smollm3 exaone4 "
        "glm glm4 glm4_moe gpt_oss arcee seed_oss ernie4_5 helium gemma3n_text",
        "model.",
        "embed_tokens",
        _rms_norm("{body}norm"),
    ),
    _decoder(
        "gemma gemma2 gemma3_text vaultgemma qwen3_next",
        "model.",
        "embed_tokens",
        _rms_norm("{body}norm", offset=1.0),
    ),
    _decoder("starcoder2 stablelm cohere cohere2", "model.", "embed_tokens", _layer_norm("{body}norm")),
    _decoder("nemotron", "model.", "embed_tokens", _layer_norm("{body}norm", offset=1.0)),
    _decoder("phi persimmon", "model.", "embed_tokens", _layer_norm("{body}final_layernorm")),
    _decoder("olmo", "model.", "embed_tokens", _layer_norm(None)),
    _decoder("gpt_neox", "gpt_neox.", "embed_in", _layer_norm("{body}final_layer_norm"), head="embed_out"),
    _decoder(
        "opt",
        "model.",
        "decoder.embed_tokens",
        Obstacle("decoder.project_out, a Linear behind the last norm", "{body}decoder.project_out"),
        _layer_norm("{body}decoder.final_layer_norm"),
    ),
    _decoder("xglm", "model.", "embed_tokens", _layer_norm("{body}layer_norm")),
    _decoder("biogpt", "biogpt.", "embed_tokens", _layer_norm("{body}layer_norm"), head="output_projection"),
    _decoder("mamba mamba2 falcon_mamba", "backbone.", "embeddings", _rms_norm("{body}norm_f")),
    # A vector for each token, and nothing else: texts are compared with them, by their mean.
    ModelFamily(
        ("model2vec",),
        "",
        (Place(HeadTask.LANGUAGE, ("embeddings",), (), (Obstacle("the mean of the text's token vectors"),)),),
    ),
    # Encoders: model types, body, the head for masked tokens, and for texts and tokens what feeds it.
    _encoder(
        "bert",
        "bert.",
        _BERT_HEAD,
        ("classifier", _TANH),
        ("classifier", _POST_NORM),
    ),
    _encoder(
        "roberta xlm-roberta camembert",
        "roberta.",
        _ROBERTA_HEAD,
        ("classifier.out_proj", _TANH),
        ("classifier", _POST_NORM),
    ),
    _encoder(
        "mpnet",
        "mpnet.",
        _ROBERTA_HEAD,
        ("classifier.out_proj", _TANH),
        ("classifier", _POST_NORM),
    ),
    _encoder(
        "distilbert",
        "distilbert.",
        _masked("vocab_projector", "vocab_layer_norm", "vocab_projector", "word_embeddings"),
        ("classifier", _RELU),
        ("classifier", _layer_norm("{body}transformer.layer.{last}.output_layer_norm")),
    ),
    _encoder(
        "albert",
        "albert.",
        _masked("predictions.decoder", "predictions.LayerNorm", "predictions", "word_embeddings"),
        ("classifier", _TANH),
        (
            "classifier",
            _layer_norm(
                "{body}encoder.albert_layer_groups.{last}.albert_layers.{last}.full_layer_layer_norm"
            ),
        ),
    ),
    _encoder(
        "electra",
        "electra.",
        # Not ForPreTraining: that is the discriminator, which scores tokens as replaced or not.
        _masked(
            "generator_lm_head",
            "generator_predictions.LayerNorm",
            "generator_lm_head",
            "word_embeddings",
            "ForMaskedLM",
            "ForCausalLM",
        ),
        ("classifier.out_proj", _GELU),
        ("classifier", _POST_NORM),
    ),
    ModelFamily(
        ("deberta", "deberta-v2"),
        "deberta.",
        (
            _BERT_HEAD,
            # Since version 3, and in older ones that are not "legacy".
            _masked(
                "lm_predictions.lm_head.decoder",
                "lm_predictions.lm_head.LayerNorm",
                "lm_predictions.lm_head",
                "word_embeddings",
            ),
            _linear(
                HeadTask.SEQUENCE,
                ("classifier",),
                Obstacle("the pooler, whose activation function the configuration chooses"),
            ),
            _linear(HeadTask.TOKEN, ("classifier",), _POST_NORM),
        ),
    ),
    _encoder(
        "modernbert",
        "model.",
        # Its classifiers have the norm, too; of the head for tokens there remains the bias.
        _masked("decoder", "head.norm", "decoder", "tok_embeddings", proof="decoder"),
        ("classifier", _layer_norm("head.norm")),
        ("classifier", _layer_norm("head.norm")),
    ),
    # Encoders whose heads for masked tokens are those of others; as classifiers they differ.
    ModelFamily(("big_bird", "megatron-bert"), "bert.", (_BERT_HEAD,)),
    *(
        ModelFamily((name,), f"{name}.", (_BERT_HEAD,))
        for name in ("ernie", "fnet", "layoutlm", "nystromformer", "roformer")
    ),
    ModelFamily(("xlm-roberta-xl", "xmod"), "roberta.", (_ROBERTA_HEAD,)),
    ModelFamily(("roberta-prelayernorm",), "roberta_prelayernorm.", (_ROBERTA_HEAD,)),
    ModelFamily(("data2vec-text",), "data2vec_text.", (_ROBERTA_HEAD,)),
    *(ModelFamily((name,), f"{name}.", (_ROBERTA_HEAD,)) for name in ("esm", "longformer")),
    # Encoder-decoders: model types, the last norm of the decoder.
    _translator("marian bart plbart blenderbot-small mvp", "layers.{last}.final_layer_norm"),
    _translator("mbart m2m_100 nllb-moe pegasus blenderbot", "layer_norm"),
    _translator("bigbird_pegasus", "layernorm_embedding"),
    _translator("whisper", "layer_norm", head="proj_out"),
    _translator("fsmt", "layers.{last}.final_layer_norm", head="{body}decoder.output_projection"),
    _translator("trocr", "layers.{last}.final_layer_norm", head="output_projection"),
    _t5("t5 longt5 switch_transformers", scaled=True),
    # Whether umt5 scales changed between versions of transformers; without the factor the solid holds both.
    _t5("mt5 umt5", scaled=False),
    # Image classifiers: model types, body, what feeds the head. Averages of norms stay in the solid.
    _images("vit", "vit.", _layer_norm("{body}layernorm")),
    _images("deit", "deit.", _layer_norm("{body}layernorm")),
    _images("swin", "swin.", _layer_norm("{body}layernorm")),
    _images("convnext", "convnext.", _layer_norm("{body}layernorm")),
    _images("beit", "beit.", _layer_norm("{body}pooler.layernorm")),
    _images("dinov2", "dinov2.", Obstacle("a class token joined with an average of patches")),
)
