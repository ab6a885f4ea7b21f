"""How models number the pieces of a SentencePiece file and what they put before and behind them. A table.

Most use the file's own order. fairseq's models and Pegasus begin with tokens of their own, for which some of
the pieces are dropped, and end with languages and masks: taken as it is, the file would shift every label.
The numbers are those of the tokenizers in transformers, with which the tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argmaxable.models.labels.language_codes import M2M_100, MBART_25, MBART_50, NLLB, WMT_21

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")


@dataclass(frozen=True)
class Numbering:
    """Tokens `first`, then the pieces without the first few, then tokens `last`; all of those are special."""

    first: tuple[str, ...] = ()
    dropped: int = 0
    last: tuple[str, ...] = ()

    def tokens(self, pieces: Sequence[str]) -> list[str]:
        return [*self.first, *pieces[self.dropped :], *self.last]

    def special(self, pieces: Sequence[str]) -> frozenset[int]:
        """The numbers of the tokens that are not pieces."""
        behind = len(self.first) + len(pieces) - self.dropped
        return frozenset([*range(len(self.first)), *range(behind, behind + len(self.last))])


AS_STORED = Numbering()
# The class of the tokenizer, as tokenizer_config.json names it.
_NUMBERINGS = {
    **dict.fromkeys(
        (
            *("AlbertTokenizer", "BertGenerationTokenizer", "BigBirdTokenizer", "CodeLlamaTokenizer"),
            *("DebertaV2Tokenizer", "GPTSw3Tokenizer", "GemmaTokenizer", "LlamaTokenizer"),
            *("ReformerTokenizer", "RemBertTokenizer", "XLNetTokenizer"),
        ),
        AS_STORED,
    ),
    "CamembertTokenizer": Numbering(
        ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"), 1, ("<mask>",)
    ),
    "MBart50Tokenizer": Numbering(FAIRSEQ, 3, (*MBART_50.split(), "<mask>")),
    "MBartTokenizer": Numbering(FAIRSEQ, 3, (*MBART_25.split(), "<mask>")),
    "NllbTokenizer": Numbering(FAIRSEQ, 3, (*NLLB.split(), "<mask>")),
    "PegasusTokenizer": Numbering(
        ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, 103))), 2
    ),
    "XGLMTokenizer": Numbering(FAIRSEQ, 3, tuple(f"<madeupword{number}>" for number in range(7))),
    "XLMRobertaTokenizer": Numbering(FAIRSEQ, 3, ("<mask>",)),
}
# Classes that say nothing about the numbers.
_OF_ANY_MODEL = ("", "PreTrainedTokenizer", "TokenizersBackend")
# Which of them a type of model has, where no file says.
_OF_MODEL_TYPE = {
    **dict.fromkeys(
        (
            *("albert", "big_bird", "deberta-v2", "gemma", "gemma2", "gemma3", "gemma3_text", "llama"),
            *("mistral", "mixtral", "reformer", "rembert", "xlnet"),
        ),
        ("LlamaTokenizer",),
    ),
    **dict.fromkeys(("longt5", "mt5", "switch_transformers", "t5", "umt5"), ("T5Tokenizer",)),
    **dict.fromkeys(("bigbird_pegasus", "pegasus", "pegasus_x"), ("PegasusTokenizer",)),
    **dict.fromkeys(("xlm-roberta", "xlm-roberta-xl", "xmod"), ("XLMRobertaTokenizer",)),
    **dict.fromkeys(("m2m_100", "nllb-moe"), ("NllbTokenizer",)),
    "camembert": ("CamembertTokenizer",),
    "mbart": ("MBart50Tokenizer", "MBartTokenizer"),
    "xglm": ("XGLMTokenizer",),
}


def numberings(tokenizer_class: str, model_type: str, pieces: Sequence[str], extra: int) -> list[Numbering]:
    """How such a model may number these pieces; nothing when that is not known.

    `extra` is how many sentinels a T5 has behind the pieces, unless they are pieces themselves.
    """
    named = tokenizer_class.removesuffix("Fast")
    classes = _OF_MODEL_TYPE.get(model_type, ()) if named in _OF_ANY_MODEL else (named,)
    if classes == ("T5Tokenizer",):
        has_them = any(piece.endswith("<extra_id_0>") for piece in pieces)
        count = 0 if has_them else extra
        return [Numbering(last=tuple(f"<extra_id_{number}>" for number in reversed(range(count))))]
    return [_NUMBERINGS[each] for each in classes if each in _NUMBERINGS]


def languages_behind(tokenizer_class: str, model_type: str, codes: str) -> tuple[str, ...]:
    """The tokens that an M2M-100 has behind those of its vocab.json; nothing for other models.

    `codes` is what tokenizer_config.json calls their list, if it does.
    """
    if (tokenizer_class or model_type) not in ("M2M100Tokenizer", "m2m_100"):
        return ()
    languages = {"": M2M_100, "m2m100": M2M_100, "wmt21": WMT_21}.get(codes, "")
    return tuple(f"__{language}__" for language in languages.split())
