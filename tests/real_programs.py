"""Trials of `real_runtimes` with programs that TensorFlow and PyTorch write and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from real_trials import Array, Trial, rows

from argmaxable import load_head

RNG = np.random.default_rng(0)


def _keras_model() -> tuple[Any, Any, Array]:
    """A small Keras model, its layers before the head, and inputs."""
    import tensorflow as library

    layers = library.keras.layers
    library.keras.utils.set_random_seed(1)
    body = library.keras.Sequential(
        [layers.Input((24,)), layers.Dense(40, "gelu"), layers.LayerNormalization()]
    )
    model = library.keras.Sequential([body, layers.Dense(90)])
    return model, body, RNG.normal(size=(200, 24)).astype(np.float32)


def tensorflow(folder: Path) -> Trial:
    import tensorflow as library

    model, body, x = _keras_model()
    model.export(str(folder / "saved"), verbose=False)
    serve = library.saved_model.load(str(folder / "saved")).signatures["serving_default"]
    answer = next(iter(serve(library.constant(x)).values())).numpy()
    path = folder / "saved"
    return Trial(path, f"Keras in TensorFlow {library.__version__}", load_head(path), answer, body(x).numpy())


def tensorflow_frozen(folder: Path) -> Trial:
    import tensorflow as library
    from tensorflow.python.framework import convert_to_constants

    model, body, x = _keras_model()
    function = library.function(model).get_concrete_function(library.TensorSpec([None, 24], library.float32))
    frozen = convert_to_constants.convert_variables_to_constants_v2(function)
    graph = frozen.graph.as_graph_def()
    library.io.write_graph(graph, str(folder), "graph.pb", as_text=False)
    read = library.compat.v1.GraphDef.FromString((folder / "graph.pb").read_bytes())
    again = library.compat.v1.wrap_function(lambda: library.graph_util.import_graph_def(read, name=""), [])
    ends = [again.graph.get_tensor_by_name(each[0].name) for each in (frozen.inputs, frozen.outputs)]
    answer = again.prune(*ends)(library.constant(x)).numpy()
    path = folder / "graph.pb"
    maker = f"convert_variables_to_constants_v2, TensorFlow {library.__version__}"
    return Trial(path, maker, load_head(path), answer, body(x).numpy())


def tensorflow_checkpoint(folder: Path) -> Trial:
    import tensorflow as library

    one = library.compat.v1
    x = RNG.normal(size=(200, 24)).astype(np.float32)
    with library.Graph().as_default(), one.Session() as session:
        given = one.placeholder(library.float32, (None, 24))
        hidden = library.nn.tanh(given @ one.get_variable("hidden/kernel", (24, 40)))
        logits = hidden @ one.get_variable("logits/kernel", (40, 90)) + one.get_variable("logits/bias", 90)
        session.run(one.global_variables_initializer())
        saver = one.train.Saver()
        saver.save(session, str(folder / "model.ckpt"))
        session.run(one.global_variables_initializer())  # other numbers, before those of the file
        saver.restore(session, str(folder / "model.ckpt"))
        features, answer = session.run([hidden, logits], {given: x})
    path = folder / "model.ckpt.index"
    return Trial(path, f"Saver of TensorFlow {library.__version__}", load_head(path), answer, features)


# ---------------------------------------------------------------------- PyTorch's programs


def _model(kind: str) -> Any:
    """A small model of transformers' with random weights."""
    import transformers

    common = {"vocab_size": 200, "attn_implementation": "eager"}
    if kind == "BERT":
        config: Any = transformers.BertConfig(
            hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=90,
            **common,
        )  # fmt: skip
        return transformers.BertForSequenceClassification(config)
    if kind == "GPT-2":
        config = transformers.GPT2Config(n_embd=48, n_layer=2, n_head=2, use_cache=False, **common)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        intermediate_size=64, use_cache=False, **common,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def _program(kind: str, *, exported: bool) -> Callable[[Path], Trial]:
    """A model as TorchScript or torch.export stores it, and what its head is given."""

    def trial(folder: Path) -> Trial:
        import torch
        import transformers

        class Logits(torch.nn.Module):
            def __init__(self, model: Any) -> None:
                super().__init__()
                self.model = model

            def forward(self, ids: Any, mask: Any) -> Any:
                return self.model(input_ids=ids, attention_mask=mask).logits

        torch.manual_seed(1)
        model = Logits(_model(kind)).eval()
        ids = torch.randint(0, 200, (40, 9))
        both = (ids, torch.ones_like(ids))
        given: list[Any] = []
        head = model.model.classifier if kind == "BERT" else model.model.lm_head
        hook = head.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
        with torch.no_grad():
            model(*both)
            hook.remove()
            if exported:
                path = folder / "model.pt2"
                torch.export.save(torch.export.export(model, both), path)
                answer = torch.export.load(path).module()(*both)
            else:
                path = folder / "model.pt"
                torch.jit.trace(model, both, check_trace=False).save(str(path))
                answer = torch.jit.load(str(path))(*both)
        how = "torch.export" if exported else "torch.jit.trace"
        maker = f"{how} of {kind}, transformers {transformers.__version__}"
        return Trial(path, maker, load_head(path), rows(answer), rows(given[0]))

    return trial


def flair(folder: Path) -> Trial:
    """A tagger with a CRF. flair 0.15 imports with transformers before 5 only."""
    import flair as library
    import torch
    from flair.data import Dictionary, Sentence
    from flair.embeddings import OneHotEmbeddings
    from flair.models import SequenceTagger

    torch.manual_seed(1)
    tags, words = Dictionary(add_unk=False), Dictionary()
    for number in range(25):
        tags.add_item(f"T{number}")
    lines = ("the cat sat on a mat in oslo", "rain fell on the mat all night")
    for word in " ".join(lines).split():
        words.add_item(word)
    embeddings = OneHotEmbeddings(vocab_dictionary=words, embedding_length=12)
    path = folder / "model.pt"
    SequenceTagger(embeddings, tags, "pos", hidden_size=16, use_crf=True).save(path)
    again = SequenceTagger.load(path).eval()
    seen: list[Any] = []
    again.linear.register_forward_hook(lambda _, given, answer: seen.extend((given[0], answer)))
    again.predict([Sentence(line) for line in lines])
    given, answer = (rows(each.detach()) for each in seen[:2])
    return Trial(path, f"flair {library.__version__}, a tagger", load_head(path), answer, given)


PROGRAMS: dict[str, Callable[[Path], Trial]] = {
    "tensorflow": tensorflow,
    "tensorflow (frozen)": tensorflow_frozen,
    "tensorflow (checkpoint)": tensorflow_checkpoint,
    **{
        f"{'torch.export' if exported else 'torchscript'} ({kind})": _program(kind, exported=exported)
        for exported in (False, True)
        for kind in ("BERT", "GPT-2", "Llama")
    },
    "flair": flair,
}
