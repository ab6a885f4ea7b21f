"""Trials of `real_runtimes` for quantised checkpoints: what each library's own layer computes on a CPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from checkpoint_writer import LLAMA
from real_trials import Trial

from argmaxable import load_head

ROWS, COLUMNS, INPUTS = 320, 128, 200


def _layer() -> Any:
    import torch

    torch.manual_seed(2)
    return torch.nn.Linear(COLUMNS, ROWS, bias=False)


def _inputs() -> Any:
    import torch

    return torch.randn(INPUTS, COLUMNS, generator=torch.Generator().manual_seed(3))


def _saved(folder: Path, config: dict[str, Any], state: dict[str, Any]) -> Path:
    """The layer as the head of a model of the hub, written by safetensors."""
    import torch
    from safetensors.torch import save_file

    tensors = {f"lm_head.{name}": value.contiguous() for name, value in state.items()}
    save_file({**tensors, "model.norm.weight": torch.ones(COLUMNS)}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**LLAMA, "quantization_config": config}))
    return folder


def _trial(folder: Path, config: dict[str, Any], state: dict[str, Any], maker: str, answer: Any) -> Trial:
    path = _saved(folder, config, state)
    return Trial(
        path / "model.safetensors", maker, load_head(path), answer.detach().float().numpy(), _inputs().numpy()
    )


def _own_module(package: str, path: str) -> Any:
    """One module of a package that doesn't import with newer versions of others, without the package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(name=package)
    file = Path(spec.submodule_search_locations[0]) / path
    own = spec_from_file_location(file.stem, file)
    assert own is not None
    assert own.loader is not None
    module = module_from_spec(own)
    own.loader.exec_module(module)
    return module


def _bitsandbytes(kind: str) -> Callable[[Path], Trial]:
    def trial(folder: Path) -> Trial:
        import bitsandbytes as library
        import torch

        plain, x = _layer(), _inputs()
        if kind == "int8":
            layer = library.nn.Linear8bitLt(COLUMNS, ROWS, bias=False, has_fp16_weights=False)
        else:
            layer = library.nn.Linear4bit(
                COLUMNS,
                ROWS,
                bias=False,
                compute_dtype=torch.float32,
                quant_type=kind,
                compress_statistics=True,
            )
        layer.load_state_dict(plain.state_dict())
        layer = layer.to("cpu")
        with torch.no_grad():
            answer = layer(x)
        state = {name: value for name, value in layer.state_dict().items() if isinstance(value, torch.Tensor)}
        maker = f"bitsandbytes {library.__version__}, logits of its layer on a CPU"
        return _trial(folder, {"quant_method": "bitsandbytes"}, state, maker, answer)

    return trial


def gptq(folder: Path) -> Trial:
    import torch

    module = _own_module("auto_gptq", "nn_modules/qlinear/qlinear_cuda_old.py")
    module._autogptq_cuda_available = False
    plain, group = _layer(), 32
    by_group = plain.weight.data.reshape(ROWS, -1, group)
    scales = (by_group.amax(2) - by_group.amin(2)) / 15
    zeros = torch.clamp(torch.round(-by_group.amin(2) / scales), 1, 15)
    layer = module.QuantLinear(4, group, COLUMNS, ROWS, False, weight_dtype=torch.float32)
    layer.pack(plain, scales, zeros, None)
    maker = f"AutoGPTQ {version('auto_gptq')}, logits of its layer on a CPU"
    config = {"quant_method": "gptq", "bits": 4, "group_size": group, "sym": False, "desc_act": False}
    return _trial(folder, config, dict(layer.state_dict()), maker, layer(_inputs()))


def awq(folder: Path) -> Trial:
    import torch

    module = _own_module("awq", "utils/packing_utils.py")
    generator = torch.Generator().manual_seed(4)
    words = [
        torch.randint(-(2**31), 2**31, shape, generator=generator).int()
        for shape in ((COLUMNS, ROWS // 8), (4, ROWS // 8))
    ]
    scales = (torch.rand(4, ROWS, generator=generator) / 50 + 0.001).half()
    weight = module.dequantize_gemm(*words, scales.float(), 4, 32)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
    state = {"qweight": words[0], "qzeros": words[1], "scales": scales}
    maker = f"random words, dequantised by AutoAWQ {version('autoawq')}'s own function"
    return _trial(folder, config, state, maker, _inputs() @ weight)


def fp8(folder: Path) -> Trial:
    import torch
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    side = 64
    blocks = _layer().weight.data.reshape(ROWS // side, side, COLUMNS // side, side)
    scales = blocks.abs().amax((1, 3)) / 448
    small = (blocks / scales[:, None, :, None]).reshape(ROWS, COLUMNS).to(torch.float8_e4m3fn)
    weight = Fp8Dequantize(None)._dequantize_one(small, scales)
    config = {"quant_method": "fp8", "weight_block_size": [side, side]}
    maker = f"random numbers, dequantised by transformers {version('transformers')}'s own function"
    state = {"weight": small, "weight_scale_inv": scales}
    return _trial(folder, config, state, maker, _inputs() @ weight.T)


def _mlx(bits: int) -> Callable[[Path], Trial]:
    def trial(folder: Path) -> Trial:
        import mlx.core as library
        import numpy as np

        weight = library.array(_layer().weight.detach().numpy()).astype(library.float16)
        state = dict(
            zip(
                ("weight", "scales", "biases"),
                library.quantize(weight, group_size=64, bits=bits),
                strict=True,
            )
        )
        tensors = {f"lm_head.{name}": value for name, value in state.items()}
        norm = {"model.norm.weight": library.ones(COLUMNS)}
        library.save_safetensors(str(folder / "model.safetensors"), {**tensors, **norm})
        config = {**LLAMA, "quantization": {"group_size": 64, "bits": bits}}
        (folder / "config.json").write_text(json.dumps(config))
        # With numbers of the same width as the inputs; rounding of the product aside, this changes none.
        wide = [state[name].astype(library.float32) for name in ("scales", "biases")]
        x = _inputs().numpy()
        answer = library.quantized_matmul(library.array(x), state["weight"], *wide, group_size=64, bits=bits)
        maker = f"MLX {version('mlx')}, its quantised product on a CPU"
        return Trial(folder / "model.safetensors", maker, load_head(folder), np.array(answer), x)

    return trial


def _compressed(kind: str) -> Callable[[Path], Trial]:
    def trial(folder: Path) -> Trial:
        import compressed_tensors as library
        import torch
        from compressed_tensors.compressors import BaseCompressor
        from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

        bits, group = (4, 32) if kind == "pack-quantized" else (8, None)
        number = "float" if kind == "float-quantized" else "int"
        arguments = QuantizationArgs(
            num_bits=bits,
            type=number,
            symmetric=True,
            strategy="group" if group else "channel",
            group_size=group,
        )
        scheme = QuantizationScheme(targets=["Linear"], weights=arguments)
        weight = _layer().weight.data
        by_group = weight.reshape(ROWS, -1, group or COLUMNS)
        scales = by_group.abs().amax(2) / (448 if number == "float" else 2 ** (bits - 1) - 1)
        own = BaseCompressor.get_value_from_registry(kind)
        state = own.compress({"weight": weight, "weight_scale": scales}, scheme)
        again = own.decompress(dict(state), scheme)["weight"].float()
        config = {
            "quant_method": "compressed-tensors",
            "format": kind,
            "config_groups": {"group_0": json.loads(scheme.model_dump_json())},
        }
        maker = f"compressed-tensors {library.__version__}, whose own function decompresses"
        kept = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
        return _trial(folder, config, kept, maker, _inputs() @ again.T)

    return trial


QUANTISED: dict[str, Callable[[Path], Trial]] = {
    "bitsandbytes int8": _bitsandbytes("int8"),
    "bitsandbytes nf4": _bitsandbytes("nf4"),
    "bitsandbytes fp4": _bitsandbytes("fp4"),
    "gptq": gptq,
    "awq": awq,
    "fp8": fp8,
    "mlx 4 bits": _mlx(4),
    "mlx 8 bits": _mlx(8),
    **{kind: _compressed(kind) for kind in ("pack-quantized", "int-quantized", "float-quantized")},
}
