"""The file formats a head can be read from, and which of them fits a path.

Third parties name an object that satisfies `ModelFormat` in the entry-point group `argmaxable.formats`. They
are asked about paths that no built-in format reads, so that a file is read the same way whatever else is
installed.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from argmaxable.core.errors import LoadError
from argmaxable.models import unread

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from argmaxable.models.finding import Finding

ENTRY_POINT_GROUP = "argmaxable.formats"
_LONGEST_MAGIC = 64
# CTranslate2's model.bin: its version in four bytes, the length of a name in two, the name and a zero. In the
# first version the number of variables and the name of the first follow, which begins as in OpenNMT-tf.
_CTRANSLATE2 = rb"[\x02-\x20]\0\0\0.\0(\w+Spec|Transformer(Base|Big))\0|\x01\0\0\0.{5}\0transformer/"

# An index of vectors, and one with ids of its own around it; other kinds of faiss's are told what they are.
_FAISS = rb"Ix[A-Z][A-Za-z0-9]"
# An offset of 0, then whole numbers of eight bytes that are not large: the most elements, how many there are,
# and three sizes. People call such a file .bin, too.
_HNSWLIB = rb"\0{8}(?!\0{8})(.{5}\0{3}){5}"
# The numbers of words and of features, then the first word. Anybody's matrix may begin with two small
# numbers: with fewer than ten features a word must be followed by a decimal fraction.
_WORD2VEC = rb"[1-9]\d{0,9} ([1-9]\d{1,6}\r?\n\S|[1-9]\r?\n(?![\d.+-]+\s)\S+ [+-]?\d*\.\d)"
# Python's protocols 2 to 5. PyTorch's older files begin so as well: their suffixes count before that.
_PICKLE = rb"\x80[\x02-\x05]"
# A program of PaddlePaddle 3, in JSON.
_PADDLE_JSON = rb'\s*\{\s*"base_code"\s*:\s*\{\s*"magic"\s*:\s*"pir"'
_ZIP = rb"PK\x03\x04"
# Members that other archives of PyTorch's do not have, those of earlier versions included.
_TORCHSCRIPT = r"[^/]+/(constants\.pkl|model\.json)"
_TORCH_EXPORT = r"([^/]+/)?(archive_format|models/[^/]+\.json|serialized_exported_program\.json)"


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about the arrays to read; None leaves the choice to the format."""

    tensor: str | None = None
    bias_tensor: str | None = None
    transpose: bool = False


@runtime_checkable
class ModelFormat(Protocol):
    """A way to store heads. `recognises` must be cheap and import nothing; `find` raises LoadError."""

    @property
    def name(self) -> str: ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def recognises(self, path: Path) -> bool: ...

    def find(self, path: Path, options: ReadOptions) -> Finding: ...


@dataclass(frozen=True)
class FileFormat:
    """A format of single files, told by a suffix (in lower case) or by the file's first bytes.

    `finder` is "package.module:function". It is imported when the first such file is met, so that
    nobody waits for the libraries of formats they don't use. `magic` is a regular expression, and so is
    `member`: a zip archive has this format if a member's name matches that, whatever its suffix.
    """

    name: str
    suffixes: tuple[str, ...]
    finder: str
    magic: bytes | None = None
    member: str | None = None

    def recognises(self, path: Path) -> bool:
        if not path.is_file():
            return False
        if self.member is not None and _starts_with(_ZIP, path):
            # Late: only such archives need it.
            from argmaxable.models.zip_archive import member_names

            return any(re.fullmatch(self.member, name) for name in member_names(path))
        return has_suffix(path, self.suffixes) or (self.magic is not None and _starts_with(self.magic, path))

    def find(self, path: Path, options: ReadOptions) -> Finding:
        try:
            find = pkgutil.resolve_name(self.finder)
        except ModuleNotFoundError as error:
            raise LoadError(
                f"reading {self.name} files needs the Python module {error.name}, which is not installed. "
                "Install it, or convert the head to .npz."
            ) from error
        if not path.stat().st_size:
            raise LoadError("the file is empty, not a complete model. Fetch or export it again.")
        finding: Finding = find(path, options)
        return finding


def has_suffix(path: Path, suffixes: Iterable[str]) -> bool:
    """Whether a file's name ends in one of these, in lower case; it may be nothing else, as in `.index`."""
    return path.name.lower().endswith(tuple(suffixes))


def _starts_with(magic: bytes, path: Path) -> bool:
    with path.open("rb") as file:
        return re.match(magic, file.read(_LONGEST_MAGIC), re.DOTALL) is not None


@dataclass(frozen=True)
class FolderFormat:
    """A format of whole directories, told by files in it, any of these names or patterns, with another file
    beside it if `beside` names one."""

    name: str
    contents: tuple[str, ...]
    finder: str
    suffixes: tuple[str, ...] = ()
    beside: str = ""

    def recognises(self, path: Path) -> bool:
        found = (file for pattern in self.contents for file in path.glob(pattern))
        return path.is_dir() and any((file.parent / self.beside).exists() for file in found)

    def find(self, path: Path, options: ReadOptions) -> Finding:
        finding: Finding = pkgutil.resolve_name(self.finder)(path, options)
        return finding


# Weights of a Hugging Face model, in one file or several.
_FOLDER_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "pytorch_model.bin*")
# A SavedModel of TensorFlow's has more protobuf files beside its graph, Flax's weights a config.json.
_WHOLE_FOLDERS = (*_FOLDER_WEIGHTS, "saved_model.pb", "flax_model.msgpack")
_FILES_SHOWN = 8

UNREAD, _PICKLE_FORMAT = "not read", "pickle"

BUILT_IN: tuple[ModelFormat, ...] = (
    # Before all suffixes: pointers and web pages that were saved under a model's name.
    FileFormat(UNREAD, (), "argmaxable.models.unread:find", magic=unread.NOT_MODELS),
    # Before Hugging Face's: PaddleOCR's models on the hub have a config.json, too.
    FolderFormat("paddle", ("inference.json",), "argmaxable.models.paddle.reader:find_folder"),
    FolderFormat(
        "huggingface",
        ("config.json", "adapter_config.json", *_FOLDER_WEIGHTS),
        "argmaxable.models.huggingface.reader:find",
    ),
    FileFormat("safetensors", (".safetensors",), "argmaxable.models.huggingface.reader:find_file"),
    FileFormat("skops", (".skops",), "argmaxable.models.skops.reader:find"),
    # No magic for zip archives: .keras and PyTorch's files begin like .npz.
    FileFormat("npz", (".npz", ".npy"), "argmaxable.models.npz.reader:find", magic=b"\x93NUMPY"),
    # Protobuf has no magic bytes.
    FileFormat("onnx", (".onnx",), "argmaxable.models.onnx.reader:find"),
    FileFormat(
        "keras", (".h5", ".hdf5", ".keras"), "argmaxable.models.keras.reader:find", magic=b"\x89HDF\r\n\x1a\n"
    ),
    # Not .pdiparams: these weights can't be read without the program beside them.
    FileFormat("paddle", (".pdmodel",), "argmaxable.models.paddle.reader:find", magic=_PADDLE_JSON),
    # A frozen graph, or the saved_model.pb of a SavedModel; the index of a checkpoint.
    FileFormat("tensorflow", (".pb",), "argmaxable.models.tensorflow.reader:find"),
    FolderFormat("tensorflow", ("saved_model.pb",), "argmaxable.models.tensorflow.reader:find_folder"),
    # faiss's files are often called .index, as TensorFlow's are: first bytes count before that suffix.
    FileFormat("faiss", (".faiss",), "argmaxable.models.faiss.reader:find", magic=_FAISS),
    FileFormat("tensorflow", (".index",), "argmaxable.models.tensorflow.reader:find_checkpoint"),
    # Not .bin: these weights can't be read without the network beside them.
    FileFormat("openvino", (".xml",), "argmaxable.models.openvino.reader:find"),
    FolderFormat(
        "coreml", ("Data/com.apple.CoreML/*.mlmodel",), "argmaxable.models.coreml.reader:find_package"
    ),
    FileFormat("coreml", (".mlmodel",), "argmaxable.models.coreml.reader:find"),
    FileFormat("flax", (".msgpack",), "argmaxable.models.flax.reader:find"),
    FileFormat("ncnn", (".param",), "argmaxable.models.ncnn.reader:find", magic=rb"7767517\r?\n"),
    FileFormat("tesseract", (".traineddata",), "argmaxable.models.tesseract.reader:find"),
    FileFormat("tflite", (".tflite",), "argmaxable.models.tflite.reader:find"),
    FileFormat("gguf", (".gguf",), "argmaxable.models.gguf.reader:find", magic=b"GGUF"),
    # A program with an archive behind it; once it was run on some systems it begins otherwise.
    FileFormat("llamafile", (".llamafile",), "argmaxable.models.llamafile.reader:find", magic=rb"MZqFpD='"),
    # A .bin, which is mostly PyTorch's: first bytes count before that suffix.
    FileFormat("whisper.cpp", (), "argmaxable.models.whisper_cpp.reader:find", magic=b"lmgg"),
    FileFormat("nemo", (".nemo",), "argmaxable.models.nemo.reader:find"),
    # Refused, with advice.
    FileFormat(UNREAD, (), "argmaxable.models.unread:find", magic=unread.MAGIC),
    FolderFormat(UNREAD, ("manifest.ocdbt", "_CHECKPOINT_METADATA"), "argmaxable.models.unread:find_orbax"),
    # fastText and CTranslate2 also say .bin, which is mostly PyTorch's: first bytes count before that suffix.
    FileFormat("fasttext", (".ftz",), "argmaxable.models.fasttext.reader:find", magic=b"\xba\x16\x4f\x2f"),
    FileFormat("ctranslate2", (), "argmaxable.models.ctranslate2.reader:find", magic=_CTRANSLATE2),
    FileFormat("hnswlib", (".hnsw", ".hnswlib"), "argmaxable.models.hnswlib.reader:find", magic=_HNSWLIB),
    FileFormat("word2vec", (".vec", ".w2v"), "argmaxable.models.word2vec.reader:find", magic=_WORD2VEC),
    FileFormat("parquet", (".parquet",), "argmaxable.models.parquet.reader:find", magic=b"PAR1"),
    # Told from checkpoints by what is in the archive: all three are called .pt.
    FileFormat(
        "torchscript",
        (".jit", ".ptl", ".torchscript"),
        "argmaxable.models.torchscript.reader:find",
        member=_TORCHSCRIPT,
    ),
    FileFormat("torch.export", (".pt2",), "argmaxable.models.torch_export.reader:find", member=_TORCH_EXPORT),
    FileFormat("pytorch", (".bin", ".pt", ".pth", ".ckpt"), "argmaxable.models.pytorch.reader:find"),
    # A pipeline, or the folder of an installed package around it.
    FolderFormat(
        "spacy", ("config.cfg", "*/config.cfg"), "argmaxable.models.spacy.reader:find", beside="meta.json"
    ),
    # Refused, with advice.
    FileFormat(
        _PICKLE_FORMAT,
        (".kv", ".pkl", ".pickle", ".joblib"),
        "argmaxable.models.pickles.reader:find",
        _PICKLE,
    ),
)
# Asked after the plugins, which may read what is only refused here.
_REFUSED: tuple[ModelFormat, ...] = (
    FileFormat(UNREAD, unread.SUFFIXES, "argmaxable.models.unread:find", magic=unread.ZIP_MAGIC),
)
SUFFIXES = tuple(suffix for known in (*BUILT_IN, *_REFUSED) for suffix in known.suffixes)


def model_file(path: Path) -> Path:
    """The path itself; of a directory without weights of its own format, the one model file in it.

    Raises LoadError when there are several.
    """
    if not path.is_dir() or any(found for pattern in _WHOLE_FOLDERS for found in path.glob(pattern)):
        return path
    suffixes = {suffix for known in BUILT_IN if known.name != UNREAD for suffix in known.suffixes}
    files = sorted(each for each in path.iterdir() if each.is_file() and has_suffix(each, suffixes))
    if len(files) > 1:
        names = ", ".join(each.name for each in files[:_FILES_SHOWN])
        more = f" and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
        raise LoadError(f"is a directory with {len(files)} model files: {names}{more}. Pass one of them.")
    return files[0] if files else path


def find_format(path: Path) -> ModelFormat:
    """The first format that recognises the path; raises LoadError when there is none."""
    if not path.exists():
        raise LoadError(f"no such file (looked from {Path.cwd()}). Check the path.")
    for candidate in _formats():
        if candidate.recognises(path):
            return candidate
    raise LoadError(f"{_describe(path)}. Known formats: {_known_formats()}. {_advice(path)}")


def _formats() -> Iterator[ModelFormat]:
    yield from BUILT_IN
    # Late: a file of a built-in format never waits for the search through all installed packages, nor for, or
    # fails with, a third party's import.
    from importlib.metadata import entry_points

    yield from map(_load, entry_points(group=ENTRY_POINT_GROUP))
    yield from _REFUSED


def _load(entry_point: EntryPoint) -> ModelFormat:
    origin = f"the format plugin {entry_point.name!r} ({entry_point.value})"
    try:
        plugin = entry_point.load()
    except (ImportError, AttributeError) as error:
        raise LoadError(f"{origin} can't be loaded: {error}. Update or uninstall it.") from error
    if isinstance(plugin, type) or not isinstance(plugin, ModelFormat):
        raise LoadError(
            f"{origin} is {plugin!r}; expected an object with name, suffixes, recognises and find. "
            "Update or uninstall it."
        )
    return plugin


def _is_piece_of_gguf(path: Path) -> bool:
    return re.search(r"\.gguf([.-](part|split)?-?\w+)+$", path.name) is not None


def _describe(path: Path) -> str:
    if path.is_dir():
        return "is a directory, expected a model file or a Hugging Face model's directory"
    if not path.is_file():
        return "is neither a file nor a directory, expected a model file"
    with path.open("rb") as file:
        return f"has no known format (suffix {path.suffix!r}, first bytes {file.read(8)!r})"


def _known_formats() -> str:
    told: dict[str, list[str]] = {}
    for known in _formats():
        if known.name not in (UNREAD, _PICKLE_FORMAT):
            told.setdefault(known.name, []).extend(known.suffixes or [_told_by(known)])
    return "; ".join(f"{name} ({', '.join(how)})" for name, how in told.items())


def _told_by(known: ModelFormat) -> str:
    return "by its first bytes" if isinstance(known, FileFormat) else "a directory"


def _paddle_advice(path: Path) -> str | None:
    """What to do with PaddlePaddle's weights alone, or with a program of its newer kind."""
    folder = path if path.is_dir() else path.parent
    weights = sorted(folder.glob("*.pdiparams") if path.is_dir() else [path.with_suffix(".pdiparams")])
    if not (path.is_dir() or path.suffix in (".pdiparams", ".json")) or not any(map(Path.is_file, weights)):
        return None
    programs = [weights[0].with_suffix(suffix) for suffix in (".pdmodel", ".json")]
    program = next(filter(Path.is_file, programs), None)
    if program is not None and program != path:
        return f"The weights alone have no names: pass {program.name}, the program they belong to."
    return (
        "PaddlePaddle's weights alone have no names: pass the program they belong to, which lies beside them."
    )


def _advice(path: Path) -> str:
    if (advice := _paddle_advice(path)) is not None:
        return advice
    if path.is_dir():
        return "Pass the file inside it that holds the output layer."
    if _is_piece_of_gguf(path):
        return (
            "By its name it is a piece of a GGUF file that was cut into several: join them in their order, "
            "as in cat model.gguf.part* > model.gguf, and pass that."
        )
    return "Save the head with numpy.savez('head.npz', W=weight, b=bias), weight being classes × features."
