"""The report of a 49,152-class head in a real browser: how soon it is painted, how fast it filters.

The verdicts are the tests' own made-up vocabulary (one token in twenty lost to a mixture of 300 others), the
weights are random: what a page costs depends on their number only. Each opening is a new browser context
without a cache. A keystroke is timed from its event until the table is laid out, and until the frame that
shows it. The limits are what people notice: a first paint after a second, a filter after 100 ms.

    python benchmarks/report_page.py [--classes 49152] [--openings 7]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _record
import numpy as np

import argmaxable as am
from argmaxable.report.page.content import content_of
from argmaxable.report.page.html import page as rendered
from argmaxable.report.page.weights import weights_of

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "report"))
from chromium import open_browser  # the tests' own browser
from subjects import vocabulary  # the tests' own vocabulary

FEATURES = 16
TYPED = "ization"
# From the event of a key until the table is laid out, and until a frame with it was painted.
KEYSTROKE = """(text) => new Promise((done) => {
    const search = document.getElementById('search');
    const start = performance.now();
    search.value = text;
    search.dispatchEvent(new Event('input', { bubbles: true }));
    document.body.getBoundingClientRect();
    const laidOut = performance.now() - start;
    requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => done([laidOut, performance.now() - start]);
        channel.port2.postMessage(null);
    });
})"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=int, default=49_152)
    parser.add_argument("--openings", type=int, default=7)
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    subject = vocabulary(options.classes)
    rng = np.random.default_rng(0)
    weights = weights_of(am.Head(rng.normal(size=(options.classes, FEATURES)).astype(np.float32)))
    started = time.perf_counter()
    text = rendered(content_of(subject), weights)
    written = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        path = Path(folder, "report.html")
        path.write_text(text, encoding="utf-8")
        opened = [measure(browser, path.as_uri()) for _ in range(options.openings)]
        version = browser.version
    paints = [paint for paint, _ in opened]
    keys = [key for _, keys in opened for key in keys]
    _record.write(
        "report_page",
        {
            "classes": options.classes,
            "browser": f"chromium {version}",
            "load_average_before": load,
            "openings": options.openings,
            "page_kB": round(len(text.encode()) / 1000),
            "written_s": round(written, 2),
            "first_paint_ms": spread(paints),
            "keystroke_laid_out_ms": spread([laid_out for laid_out, _ in keys]),
            "keystroke_painted_ms": spread([painted for _, painted in keys]),
            "limits": {"first_paint_ms": 1000, "keystroke_painted_ms": 100},
        },
    )


def measure(browser: Any, address: str) -> tuple[float, list[tuple[float, float]]]:
    """First paint, and the times of each keystroke while a search is typed over all classes."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("performance.getEntriesByType('paint').length > 0")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    page.locator("#by-status").select_option("")
    keys = [tuple(page.evaluate(KEYSTROKE, TYPED[:length])) for length in range(1, len(TYPED) + 1)]
    context.close()
    return paint, keys


def spread(times: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 1),
        "lowest": round(min(times), 1),
        "highest": round(max(times), 1),
    }


if __name__ == "__main__":
    main()
