"""Models named by their hub id (org/name) or address: fetched by huggingface_hub, and of them only what a
head needs: configuration, vocabulary and the files that hold the output layer.

This is the only module that imports huggingface_hub, which heeds HF_HOME, HF_HUB_OFFLINE, HF_TOKEN and
HF_ENDPOINT by itself. No code from the hub is ever run.
"""

from __future__ import annotations

import glob
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from argmaxable.core.errors import LoadError
from argmaxable.models.checkpoint.locate import Architecture, choose, choose_named
from argmaxable.models.huggingface.quantised.packed import weights_named
from argmaxable.models.huggingface.quantised.undo import tensors_beside
from argmaxable.models.huggingface.reader import WEIGHTS, files_by_tensor, read_config
from argmaxable.models.registry import SUFFIXES

# Small files: the configuration, vocabularies and labels, and the list of which tensor is where.
_SMALL_FILES = (
    "config*.json",
    "tokenizer*.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "*vocab*.json",
    "*vocab*.txt",
    "*vocab*.y*ml",
    "*.spm",
    "*.model",
    "*dict*.txt",
    "*labels.txt",
    "*.index.json",
)
# The weights of a model of CTranslate2, whose repositories look like those of Hugging Face otherwise.
_TRANSLATOR = "model.bin"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")


@dataclass(frozen=True)
class HubModel:
    """A model on the hub, or a single file of it; paths inside the repository have no slash at either end."""

    repository: str
    revision: str | None = None
    subfolder: str = ""
    file: str | None = None

    def __str__(self) -> str:
        return self.repository if self.revision is None else f"{self.repository} (revision {self.revision})"


def resolve(
    model: str,
    *,
    revision: str | None = None,
    subfolder: str | None = None,
    cache_dir: str | Path | None = None,
    tensor: str | None = None,
    bias_tensor: str | None = None,
) -> Path:
    """The local file or directory a user means by MODEL; a model on the hub is fetched first.

    A path that exists is never looked up on the hub. `tensor` and `bias_tensor` are the arrays the user
    chose, as in `load_head`: of a model in several files, theirs are fetched.
    Raises LoadError when there is no such model, or it can't be fetched.
    """
    if os.path.exists(model):
        return _local(Path(model), revision, subfolder)
    wanted = parse(model)
    if revision is not None:
        wanted = replace(wanted, revision=revision)
    if subfolder is not None:
        wanted = replace(wanted, subfolder=subfolder.strip("/"))
    snapshot = _fetch(wanted, cache_dir, _SMALL_FILES)
    if wanted.file is None:
        _fetch_head(snapshot, tensor, bias_tensor)
        return snapshot.folder
    if not snapshot.has(wanted.file):
        raise LoadError(f"{wanted} has no file {wanted.file} in {wanted.subfolder or 'its main folder'}.")
    return snapshot.folder / wanted.file


def parse(model: str) -> HubModel:
    """The model meant by a hub id or address; raises LoadError when it is neither."""
    if model.startswith(("https://", "http://")):
        return _from_address(model)
    is_file_name = model.lower().endswith(SUFFIXES)
    if _HUB_ID.fullmatch(model) and not is_file_name:
        return HubModel(model)
    raise LoadError(
        f"{model}: no such file or directory (looked from {Path.cwd()}), and no hub id either, which is "
        "written org/name. Check the path."
    )


def _local(path: Path, revision: str | None, subfolder: str | None) -> Path:
    if revision is not None:
        raise LoadError(f"{path} is a local path, which has no revisions. Leave out --revision.")
    return path if subfolder is None else path / subfolder


def _from_address(address: str) -> HubModel:
    parts = urlsplit(address)
    segments = [unquote(segment) for segment in parts.path.strip("/").split("/")]
    if parts.netloc not in (*_HOSTS, urlsplit(_endpoint()).netloc) or len(segments) < 2:
        raise LoadError(
            f"{address} is not the address of a model on the hub, such as https://huggingface.co/org/name. "
            "Download other files yourself and pass the path."
        )
    repository = "/".join(segments[:2])
    match segments[2:]:
        case []:
            return HubModel(repository)
        case ["tree", revision, *folders]:
            return HubModel(repository, revision, "/".join(folders))
        case ["blob" | "resolve", revision, *folders, file]:
            return HubModel(repository, revision, "/".join(folders), file)
    raise LoadError(
        f"{address} is not the address of a model, of a folder of it (…/tree/main/folder) or of a file "
        "(…/blob/main/file)."
    )


def _endpoint() -> str:
    with _needs_the_package():
        from huggingface_hub import constants

    return constants.ENDPOINT


@contextmanager
def _needs_the_package() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise LoadError(
            "models on the hub need the package huggingface_hub: pip install 'argmaxable[hub]'. Or "
            "download the model yourself and pass its directory."
        ) from error


@dataclass(frozen=True)
class _Snapshot:
    """A model's files as of one commit, as far as they were fetched."""

    model: HubModel
    cache_dir: str | Path | None
    path: Path

    @property
    def folder(self) -> Path:
        return self.path / self.model.subfolder

    def has(self, file: str) -> bool:
        """Whether the folder has this file, after an attempt to fetch it."""
        if not (self.folder / file).exists():
            _fetch(self.model, self.cache_dir, [glob.escape(file)])
        return (self.folder / file).exists()


def _fetch(model: HubModel, cache_dir: str | Path | None, patterns: Iterable[str]) -> _Snapshot:
    """The model's files that match a pattern; patterns that match none are not an error."""
    with _needs_the_package():
        from huggingface_hub import snapshot_download

    prefix = f"{glob.escape(model.subfolder)}/" if model.subfolder else ""
    with _in_plain_words(model), _quietly():
        path = snapshot_download(
            model.repository,
            revision=model.revision,
            cache_dir=cache_dir,
            allow_patterns=[prefix + pattern for pattern in patterns],
            # A star also matches slashes: without this, copies in other folders would come along.
            ignore_patterns=[f"{prefix}*/*"],
        )
    # From here on the commit is meant, whatever its branch comes to point to meanwhile.
    return _Snapshot(replace(model, revision=Path(path).name), cache_dir, Path(path))


def _fetch_head(snapshot: _Snapshot, tensor: str | None, bias_tensor: str | None) -> None:
    """Fetch the weights: the only file, or those of several files that hold the head."""
    for single, index in WEIGHTS:
        if (snapshot.folder / index).exists():
            for file in _files_with_head(snapshot.folder / index, tensor, bias_tensor):
                snapshot.has(file)
            return
        if snapshot.has(single):
            return
    if snapshot.has(_TRANSLATOR):
        return
    raise LoadError(
        f"{snapshot.model} has no {' and no '.join(single for single, _ in WEIGHTS)}. For another file pass "
        "its address, https://huggingface.co/org/name/blob/main/file; for a folder inside, --subfolder."
    )


def _files_with_head(index: Path, tensor: str | None, bias_tensor: str | None) -> list[str]:
    files = weights_named(files_by_tensor(index))
    architecture = Architecture.from_config(read_config(index.parent))
    choice = choose(files, architecture) if tensor is None else choose_named(files, architecture, tensor)
    # Without a head there is nothing to fetch: whoever reads the folder then says what it lacks.
    names = [] if choice is None else [*choice.names, *tensors_beside(choice.weight, files), bias_tensor]
    return sorted({files[name] for name in names if name in files})


@contextmanager
def _quietly() -> Iterator[None]:
    """Patterns that match no file are not worth a warning, and a progress bar is for a terminal."""
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    logger = logging.getLogger("huggingface_hub")
    level, hide = logger.level, not (sys.stderr.isatty() or are_progress_bars_disabled())
    logger.setLevel(logging.ERROR)
    if hide:
        disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if hide:
            enable_progress_bars()


@contextmanager
def _in_plain_words(model: HubModel) -> Iterator[None]:
    """Errors of huggingface_hub, of the HTTP library it happens to use and of its storage, as LoadError."""
    from huggingface_hub import errors

    address = f"{_endpoint()}/{model.repository}"
    log_in = "log in (hf auth login, or HF_TOKEN)"
    words: dict[type[Exception], str] = {
        errors.GatedRepoError: f"is gated. Accept its terms at {address} and {log_in}.",
        errors.RepositoryNotFoundError: (
            f"is not at {address}, or is private. Check the spelling; for a private model {log_in}."
        ),
        errors.RevisionNotFoundError: "does not exist: the model has no such revision. Check --revision.",
        errors.LocalEntryNotFoundError: (
            "is not (or not completely) in the local cache, and could not be had from the hub. "
            "Check the network and HF_HUB_OFFLINE. huggingface_hub says: {}"
        ),
    }
    try:
        yield
    except Exception as error:  # which libraries are below huggingface_hub changes between its versions
        plain = next(
            (text for kind, text in words.items() if isinstance(error, kind)), "can't be fetched: {}"
        )
        raise LoadError(f"{model} {plain.replace('{}', ' '.join(str(error).split()))}") from error
