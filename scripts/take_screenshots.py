"""Photograph the report and the explorer for the documentation, from a real run that is made for it.

    python -m scripts.take_screenshots [MODEL]

MODEL is the demonstration model of `make verify` unless named, fetched when it is not there. Its labels need
a font with Chinese characters. The pictures go to docs/screenshots; look at them before they are committed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.fetch_demo_model import fetch, is_demo_model
from scripts.site_pages import playground

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from chromium import open_browser  # the tests' own browser

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "screenshots"
DEMO_MODEL = ROOT / ".cache" / "models" / "ch_PP-OCRv4_rec_infer.onnx"
PROGRAM = [sys.executable, "-c", "from argmaxable.cli import main; main()"]
DESK, PHONE = {"width": 1200, "height": 1000}, {"width": 390, "height": 844}
# Pages of the documentation should load quickly.
MOST_BYTES = 300_000


def main() -> None:
    model = Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO_MODEL
    if model == DEMO_MODEL and not (model.is_file() and is_demo_model(model.read_bytes())):
        fetch(model)
    with tempfile.TemporaryDirectory() as folder:
        database, report = Path(folder, "runs.db"), Path(folder, "report.html")
        run("verify", model, "--db", database, success=(0, 1))
        run("verify", model, "--db", database, "--round-to", "int8", success=(0, 1))
        run("report", "1", "--db", database, "--model", model, "-o", report)
        with serving(database, model) as address, open_browser() as browser:
            photograph(browser, "report", report.as_uri(), DESK)
            photograph(browser, "run", f"{address}runs/1", DESK)
            worst = first_unargmaxable(browser, f"{address}runs/1")
            photograph(browser, "class", worst, DESK | {"height": 1050})
            photograph(browser, "compare", f"{address}compare?before=1&after=2", DESK)
            photograph(browser, "playground", f"{address}playground", DESK | {"height": 1150})
            photograph_hull(browser, Path(folder))
            photograph(
                browser, "playground-phone", f"{address}playground", PHONE, scroll="#summary", scheme="dark"
            )


def run(*words: str | Path, success: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run([*PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in success:
        sys.exit(f"argmaxable {words[0]} ended with {done.returncode}")


@contextmanager
def serving(database: Path, model: Path) -> Iterator[str]:
    """The address of the explorer, as long as it runs."""
    command = [*PROGRAM, "serve", "--db", str(database), "--model", str(model), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy())
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def first_unargmaxable(browser: Any, address: str) -> str:
    page = browser.new_page()
    page.goto(address)
    link: str = page.locator("#classes th.label a").first.evaluate("link => link.href")
    page.close()
    return link


def photograph(
    browser: Any, name: str, address: str, size: dict[str, int], scroll: str = "", scheme: str = "light"
) -> None:
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.goto(address, wait_until="networkidle")  # exact margins come after the page
    if scroll:
        page.locator(scroll).evaluate("element => element.scrollIntoView()")
    page.wait_for_timeout(300)
    picture = page.screenshot()
    page.close()
    store(name, picture)


def photograph_hull(browser: Any, folder: Path) -> None:
    """The two planes of the playground alone: README's picture."""
    page = browser.new_page(viewport={"width": 1000, "height": 900}, device_scale_factor=1.5)
    (folder / "playground.html").write_text(playground(), encoding="utf-8")
    page.goto((folder / "playground.html").as_uri())
    picture = page.locator(".planes").screenshot(style=".size { display: none }")
    page.close()
    store("hull", picture)


def store(name: str, picture: bytes) -> None:
    if len(picture) > MOST_BYTES:
        sys.exit(f"{name}.png has {len(picture):,} bytes, more than {MOST_BYTES:,}: make it smaller")
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / f"{name}.png").write_bytes(picture)
    print(f"wrote {name}.png ({len(picture) / 1000:,.0f} kB)")


if __name__ == "__main__":
    main()
