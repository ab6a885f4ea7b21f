"""A local Hugging Face model at work: what goes into its head and what comes out, over a text.

With layers/huggingface.py the only module that imports transformers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head

Dtype = Literal["float32", "float64"]
# Longer windows gain nothing here: every token is a context, whatever its length.
_LONGEST_WINDOW = 512
# Logits of a batch, so that they take 64 MB in float32.
_MOST_LOGITS = 2**24
# Characters of a text read at a time, whatever the length of its lines.
_PIECE = 2**18
_PAIRS_AT_A_TIME = 16
_IGNORED = -100  # what transformers' losses take for "no label here"


@dataclass(frozen=True)
class Text:
    """A UTF-8 text; for models that translate, `target` has a line for each of its lines."""

    path: Path
    target: Path | None = None


@dataclass(frozen=True, eq=False)
class ForwardStep:
    """Inputs (tokens × features) and outputs (tokens × classes) of the head, for some tokens of the text."""

    features: NDArray[np.floating]
    logits: NDArray[np.floating]


class _HeadReachedError(Exception):
    """Ends a run of the model where its head would begin."""

    def __init__(self, features: Any) -> None:
        super().__init__()
        self.features = features


class LanguageModel:
    """A model and its tokenizer, loaded for use."""

    def __init__(self, directory: str | Path, *, dtype: Dtype = "float32", device: str = "cpu") -> None:
        """Raises InputError when the directory does not hold a model, or when a package is missing."""
        self._torch, transformers = _libraries()
        if not Path(directory).is_dir():
            raise InputError(
                f"{directory} is not a directory. Pass a local model: config, weights and tokenizer."
            )
        try:
            with _quiet(transformers):
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True)
                model = _load(transformers, directory, getattr(self._torch, dtype))
        except InputError:
            raise
        except Exception as error:  # each reader of files has errors of its own, safetensors' among them
            raise InputError(f"{directory}: transformers can't load it ({_first_line(error)}).") from error
        self._model, self.device = _moved(model.eval(), device), device
        self._layer = self._model.get_output_embeddings()
        if self._layer is None:
            raise InputError(f"{directory}: {type(self._model).__name__} names no output layer.")
        self.dtype = dtype
        self.is_translator = bool(self._model.config.is_encoder_decoder)

    def head(self) -> Head | None:
        """The output layer as it computes, or None when it is more than one linear layer."""
        if not isinstance(self._layer, self._torch.nn.Linear):
            return None
        # Some models (BERT, Marian) add their bias outside of the layer.
        extra = getattr(self._model, "final_logits_bias", None)
        weight, bias = self._layer.weight, self._layer.bias
        if extra is not None:
            bias = extra.reshape(-1) if bias is None else bias + extra.reshape(-1)
        return Head(_array(weight), None if bias is None else _array(bias))

    @property
    def features(self) -> int:
        """How many features the output layer takes."""
        linear = getattr(self._layer, "in_features", None)
        return int(self._layer.features if linear is None else linear)

    @property
    def classes(self) -> int:
        linear = getattr(self._layer, "out_features", None)
        return int(self._layer.classes if linear is None else linear)

    @property
    def has_bias(self) -> bool:
        return getattr(self._layer, "bias", None) is not None or hasattr(self._model, "final_logits_bias")

    def steps(self, text: Text, *, tokens: int | None = None) -> Iterator[ForwardStep]:
        """Run over the text, or its first `tokens` tokens. Raises InputError if the text can't be used."""
        left = tokens
        for inputs, counts in self._batches(text):
            features, logits = self._run(inputs)
            step = ForwardStep(_array(features[counts])[:left], _array(logits[counts])[:left])
            yield step
            left = None if left is None else left - len(step.features)
            if left == 0:
                return

    def inputs(self, text: Text, *, tokens: int | None = None) -> Iterator[NDArray[np.floating]]:
        """The head's inputs alone (tokens × features), as `steps` has them: the head itself never runs."""
        left = tokens
        for inputs, counts in self._batches(text):
            features = _array(self._run_up_to_head(inputs)[counts])[:left]
            yield features
            left = None if left is None else left - len(features)
            if left == 0:
                return

    def _batches(self, text: Text) -> Iterator[tuple[dict[str, Any], Any]]:
        """What the model takes, and which positions of it are tokens of the text."""
        if self.is_translator != (text.target is not None):
            raise InputError(
                f"{type(self._model).__name__} translates: pass translations too, line by line (--target)."
                if self.is_translator
                else f"{type(self._model).__name__} does not translate: it has no use for a --target."
            )
        yield from self._pairs(text) if self.is_translator else self._windows(text.path)

    def _run(self, inputs: dict[str, Any]) -> tuple[Any, Any]:
        """What the head receives and what the model puts out."""
        caught: list[Any] = []
        hook = self._layer.register_forward_pre_hook(lambda _, arguments: caught.append(arguments[0]))
        try:
            with self._torch.inference_mode():
                logits = self._model(**inputs).logits
            return caught[-1], logits
        finally:
            hook.remove()

    def _run_up_to_head(self, inputs: dict[str, Any]) -> Any:
        def stop(_: Any, arguments: tuple[Any, ...]) -> None:
            raise _HeadReachedError(arguments[0])

        hook = self._layer.register_forward_pre_hook(stop)
        try:
            with self._torch.inference_mode():
                self._model(**inputs)
        except _HeadReachedError as reached:
            return reached.features
        finally:
            hook.remove()
        raise InputError(f"{type(self._model).__name__} never runs its output layer as a layer.")

    def _windows(self, path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
        """Windows of tokens without padding, several at a time; what is left over at the end comes alone."""
        length = min(
            _LONGEST_WINDOW, int(getattr(self._model.config, "max_position_embeddings", _LONGEST_WINDOW))
        )
        many = max(1, _MOST_LOGITS // (length * self.classes))
        waiting: list[int] = []
        for piece in _pieces(path):
            waiting += self._tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]
            while len(waiting) >= many * length:
                yield self._batch(np.array(waiting[: many * length]).reshape(many, length))
                waiting = waiting[many * length :]
        whole = len(waiting) // length * length
        for part in (np.array(waiting[:whole]).reshape(-1, length), np.array(waiting[whole:])[None]):
            if part.size:
                yield self._batch(part)

    def _batch(self, ids: NDArray[np.int_]) -> tuple[dict[str, Any], Any]:
        tensor = self._torch.tensor(ids, device=self.device)
        every = self._torch.ones_like(tensor)
        return {"input_ids": tensor, "attention_mask": every}, every.bool()

    def _pairs(self, text: Text) -> Iterator[tuple[dict[str, Any], Any]]:
        """Lines and their given translations, padded."""
        assert text.target is not None
        sources, targets = _lines(text.path, _PAIRS_AT_A_TIME), _lines(text.target, _PAIRS_AT_A_TIME)
        for lines in sources:
            translated = next(targets, [])
            if len(lines) != len(translated):
                raise InputError(
                    f"{text.path} has more lines than {text.target}: each needs its translation."
                )
            yield self._translation(lines, translated)
        if next(targets, []):
            raise InputError(f"{text.target} has more lines than {text.path}: each needs its source.")

    def _translation(self, lines: list[str], translated: list[str]) -> tuple[dict[str, Any], Any]:
        inputs = self._tokenizer(
            [line.rstrip("\n") for line in lines],
            text_target=[line.rstrip("\n") for line in translated],
            padding=True, truncation=True, max_length=_LONGEST_WINDOW, return_tensors="pt",
        )  # fmt: skip
        labels = inputs["labels"]
        counts = labels != self._tokenizer.pad_token_id
        inputs["labels"] = labels.masked_fill(~counts, _IGNORED)
        return dict(inputs.to(self.device)), counts.to(self.device)


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise InputError(
            f"running a model needs transformers: pip install 'argmaxable[hf]' ({error})."
        ) from error
    return torch, transformers


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without the progress bars of loading, which go to stderr even if that is not a terminal."""
    log = transformers.utils.logging
    was_enabled = log.is_progress_bar_enabled()
    log.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            log.enable_progress_bar()


def _load(transformers: Any, directory: str | Path, dtype: Any) -> Any:
    """The model, of the class that its configuration names."""
    config = transformers.AutoConfig.from_pretrained(directory, local_files_only=True)
    if hasattr(config, "softmax_head"):  # replaced by one of argmaxable.layers
        from argmaxable.layers import load_pretrained

        return load_pretrained(directory).to(dtype)
    name = (config.architectures or ["none"])[0]
    kind = getattr(transformers, name, None)
    if kind is None:
        raise InputError(f"{directory}: transformers knows no model of class '{name}'.")
    return kind.from_pretrained(directory, local_files_only=True, dtype=dtype)


def _moved(model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:  # the second where PyTorch was built without CUDA
        raise InputError(f"--device {device}: {_first_line(error)}.") from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(encoding="utf-8") as file:
            yield file
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no UTF-8 text could be read ({error}).") from error


def _lines(path: Path, many: int) -> Iterator[list[str]]:
    """So many whole lines at a time."""
    with _opened(path) as file:
        while lines := list(islice(file, many)):
            yield lines


def _pieces(path: Path) -> Iterator[str]:
    """The text in pieces that end where a line does, or else in front of a space."""
    carried = ""
    with _opened(path) as file:
        while read := file.read(_PIECE):
            text = carried + read
            cut = text.rfind("\n") + 1 or max(text.rfind(" "), 0) or len(text)
            yield text[:cut]
            carried = text[cut:]
        if carried:
            yield carried


def _array(tensor: Any) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
