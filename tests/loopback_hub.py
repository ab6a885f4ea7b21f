"""A hub that listens on the loopback address only and imitates the endpoints huggingface_hub uses."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
from safetensors.numpy import save

WEIGHT = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
NORM = np.random.default_rng(1).normal(size=4).astype(np.float32)
COMMITS = {"main": "1" * 40, "v2": "2" * 40}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


CONFIG = encoded({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False})
WHOLE = {
    "config.json": CONFIG,
    "vocab.json": encoded({f"token{number}": number for number in range(6)}),
    "model.safetensors": save({"lm_head.weight": WEIGHT, "model.norm.weight": NORM}),
    "README.md": b"# A model",
    "pytorch_model.bin": b"the same weights again",
    "onnx/vocab.json": b"{}",
    "onnx/model.onnx": b"and again",
}
SHARDS = {
    "one.safetensors": {"model.embed_tokens.weight": WEIGHT + 1},
    "two.safetensors": {"model.layers.0.weight": WEIGHT + 2},
    "three.safetensors": {"model.norm.weight": NORM},
    "four.safetensors": {"lm_head.weight": WEIGHT},
}
SHARDED = {
    "config.json": CONFIG,
    "model.safetensors.index.json": encoded(
        {"weight_map": {name: file for file, tensors in SHARDS.items() for name in tensors}}
    ),
    **{file: save(tensors) for file, tensors in SHARDS.items()},
}
REPOSITORIES = {
    "org/whole": WHOLE,
    "org/added": {
        **WHOLE,
        "vocab.json": encoded({f"token{number}": number for number in range(5)}),
        "added_tokens.json": encoded({"<added>": 5}),
        "special_tokens_map.json": encoded({"bos_token": "token0"}),
    },
    "org/sharded": SHARDED,
    "org/nested": {f"deep/er/{name}": data for name, data in WHOLE.items()},
    "org/gguf": {"config.json": CONFIG, "model.gguf": b"GGUF", "head.npy": b"\x93NUMPY"},
    "org/v2.5-tiny": {"config.json": CONFIG, "model.safetensors": WHOLE["model.safetensors"]},
    "org/translator": {"config.json": b"{}", "model.bin": b"of CTranslate2", "shared_vocabulary.json": b"[]"},
    "org/files": {"README.md": b"", "arrays/head.safetensors": save({"lm_head.weight": WEIGHT})},
}
# Status and error code of repositories that the hub does not hand out: with terms that were not accepted
# (to whom it knows and to whom it doesn't), private, forbidden by an administrator, and out of order.
REFUSED = {
    "org/gated": (403, "GatedRepo"),
    "org/gated-too": (401, "GatedRepo"),
    "org/private": (401, "RepoNotFound"),
    "org/forbidden": (403, ""),
    "org/broken": (500, ""),
}


@dataclass
class Hub:
    """A server that imitates the endpoints huggingface_hub uses, and remembers what it was asked for."""

    address: str
    files: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)


def answer_for(hub: Hub, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body for a path such as /api/models/org/name/tree/main."""
    parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
    parts = parts[2:] if parts[:2] == ["api", "models"] else parts
    repository, action, revision = "/".join(parts[:2]), *[*parts[2:4], "revision", "main"][:2]
    if repository in REFUSED:
        status, code = REFUSED[repository]
        return status, {"X-Error-Code": code}, b"{}"
    if repository not in REPOSITORIES:
        return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
    commit = COMMITS.get(revision, revision)
    if commit not in COMMITS.values():
        return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
    files = REPOSITORIES[repository]
    if action == "revision":
        siblings = [{"rfilename": name} for name in files]
        return 200, {}, encoded({"id": repository, "sha": commit, "siblings": siblings})
    if action == "tree":
        listing = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in files.items()
        ]
        return 200, {}, encoded(listing)
    file = "/".join(parts[4:])
    if file not in files:
        return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b"{}"
    hub.files.append(file)
    etag = hashlib.sha1(files[file]).hexdigest()
    return 200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"'}, files[file]


@contextmanager
def served_hub() -> Iterator[Hub]:
    """The server, on the loopback address and a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.tokens.add(self.headers.get("Authorization"))
            status, headers, body = answer_for(known, self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = Hub(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield known
    server.shutdown()
    thread.join()
    server.server_close()


def environment_for(hub: Hub, home: Path) -> dict[str, str]:
    """The environment of a process that knows this hub only; huggingface_hub reads it when imported."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
