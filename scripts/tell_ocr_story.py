"""Writes what docs/stories/ocr.md shows: what PaddleOCR's recognisers read, what is proven, and a lesson.

    python -m scripts.tell_ocr_story [--fonts Debian|PyPI] [--words FILE] [--text FILE] [--work FOLDER]

`make story` runs it. PP-OCRv4's recogniser is taught with `argmaxable teach`; the copy, its page and what the
command printed stay in the folder. The models travel inside two wheels, which are unpacked, never installed.
Written are docs/stories/ocr.json, a picture for each complaint, and all that stands between marks in
docs/stories/ocr.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from argmaxable.compute.readings import spelled
from argmaxable.core.head import Head
from argmaxable.core.verdict import Status
from argmaxable.examples.faces import Face, parse_faces
from argmaxable.examples.network import TappedNetwork
from argmaxable.examples.preprocess import Preprocessing, preprocessing_for
from argmaxable.models.model_ref import ModelRef
from argmaxable.questions.argmax import verify
from argmaxable.workflow.find_model import find_model
from scripts.lesson_in_words import summary, words
from scripts.story_fonts import DEBIAN, PYPI, StoryFonts, story_fonts

ROOT = Path(__file__).resolve().parent.parent
_WHEEL = "pypi:rapidocr-onnxruntime=={}!rapidocr_onnxruntime/models/ch_PP-OCRv{}_rec_infer.onnx"
TAUGHT = "taught"
_SIZE, _PAD = 40, 8
_COMMAND = [sys.executable, "-c", "from argmaxable.cli import main; main()"]


@dataclass(frozen=True)
class Complaint:
    """A line that people say is misread, the characters it is about, and where they say it."""

    text: str
    characters: str
    threads: str


@dataclass(frozen=True)
class Story:
    """What is told: versions of a model, the last of which is taught; complaints; characters that people
    complain about though they can win; characters to add; and further options of `argmaxable teach`."""

    versions: dict[str, str]
    complaints: tuple[Complaint, ...]
    unexplained: str
    added: str
    options: tuple[str, ...] = ()
    preprocess: str | None = None

    @property
    def characters(self) -> str:
        return "".join(dict.fromkeys("".join(each.characters for each in self.complaints)))


OCR = Story(
    versions={"PP-OCRv3": _WHEEL.format("1.2.3", 3), "PP-OCRv4": _WHEEL.format("1.4.4", 4)},
    complaints=(
        Complaint("卖淫嫖娼活动", "嫖", "PaddleOCR 14065, 14370, 14670; MinerU 1251"),
        Complaint("嫖资", "嫖", "PaddleOCR 14065, 14370, 14670; MinerU 1251"),
        Complaint("商榷", "榷", "–"),
        Complaint("磋商", "磋", "PaddleOCR 9005"),
        Complaint("蹒跚学步", "蹒跚", "–"),
        Complaint("寤寐思服", "寤", "Umi-OCR 577"),
        Complaint("曲水流觞", "觞", "PaddleOCR 15054"),
        Complaint("惊鸿一瞥", "瞥", "Umi-OCR 656"),
        Complaint("踌躇满志", "踌躇", "Umi-OCR 816"),
        Complaint("魏将张郃", "郃", "Umi-OCR 733"),
    ),
    unexplained="鄢菡滂撮丐馕衅槲嵘",
    added="赟纡琤祂腧刽郃",
    options=("--text-lines", "5000"),
)


@dataclass(frozen=True, eq=False)
class Reader:
    """A recogniser, to read lines with."""

    head: Head
    network: TappedNetwork
    preprocessing: Preprocessing

    @staticmethod
    def of(model: str, preprocess: str | None) -> Reader:
        ref = ModelRef(model)
        finding = ref.find()
        head = ref.read(finding)
        network = TappedNetwork(ref.file(), finding, head)
        return Reader(head, network, preprocessing_for(network.input, is_ctc=True, text=preprocess))

    def read(self, text: str, face: Face) -> str:
        image, _ = face.line(text, _SIZE, pad=_PAD, ink=0, paper=255)
        values, _ = self.preprocessing.array(image.convert("RGB"))
        features = self.network.features(values)
        logits = features @ self.head.rows(slice(None)).T + self.head.biases()
        (winners,) = spelled(logits.argmax(axis=1), np.array([0, len(features)]), 0)
        return "".join(self.head.label(winner) for winner in winners)


def taught(story: Story, fonts: StoryFonts, work: Path, more: list[str]) -> tuple[Path, dict[str, Any]]:
    """Run `argmaxable teach` on the last version; the copy, and what the command says in JSON and cost."""
    work.mkdir(parents=True, exist_ok=True)
    model, target = ModelRef([*story.versions.values()][-1]).file(), work / "taught.onnx"
    command = [
        *_COMMAND, "teach", str(model), "--all-unargmaxable", "-o", str(target), "--overwrite", "--json",
        "--report", str(work / "taught.html"), *(word for char in story.added for word in ("--add", char)),
        *fonts.options, *story.options, *more,
    ]  # fmt: skip
    if story.preprocess is not None:
        command += ["--preprocess", story.preprocess]
    start, before = time.perf_counter(), _cpu_seconds()
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    cost = {"seconds": round(time.perf_counter() - start), "cpu_seconds": round(_cpu_seconds() - before)}
    (work / "lesson.json").write_text(said, encoding="utf-8")
    return target, summary(json.loads(said), story.added) | cost


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verdicts(model: str, characters: str) -> dict[str, str]:
    """What is proven of each character over the inputs that the file itself allows, each proof checked."""
    found = find_model(ModelRef(model))
    head = found.head()
    labels = head.labels or ()
    ids = {labels.index(each): each for each in characters if each in labels}
    result = verify(head, found.domain, only=ids)
    answers = {ids[verdict.class_id]: verdict.status for verdict in result.verdicts}
    return {each: _word(answers.get(each)) for each in characters}


def _word(status: Status | None) -> str:
    return "not in the dictionary" if status is None else status.value


def tell(story: Story, copy: Path, face: Face, folder: Path) -> dict[str, Any]:
    """Everything that the page shows but the lesson's own figures; pictures are written to the folder."""
    models = {**story.versions, TAUGHT: str(copy)}
    readers = {name: Reader.of(model, story.preprocess) for name, model in models.items()}
    asked = story.characters + story.unexplained
    lines = []
    (folder / "ocr").mkdir(exist_ok=True)
    for number, complaint in enumerate(story.complaints):
        image, _ = face.line(complaint.text, _SIZE, pad=_PAD, ink=0, paper=255)
        picture = f"ocr/{number}.png"
        image.save(folder / picture, optimize=True)
        read = {name: reader.read(complaint.text, face) for name, reader in readers.items()}
        lines.append(asdict(complaint) | {"picture": picture, "read": read})
    return {
        "font": face.name,
        "lines": lines,
        "verdicts": {name: verdicts(model, asked) for name, model in models.items()},
        "unexplained": story.unexplained,
    }


def tables(told: dict[str, Any]) -> dict[str, str]:
    """What stands between the page's marks, in Markdown."""
    lines, said = told["lines"], told["verdicts"]
    names = [*said]
    models = [name for name in names if name != TAUGHT]
    shown = [*models, f"{models[-1]} taught"]
    readings = _header("what is printed", "who asks", *(f"{name} reads" for name in shown))
    for line in lines:
        read = " | ".join(line["read"][name] or "(nothing)" for name in names)
        readings.append(f"| ![{line['text']}]({line['picture']}) | {line['threads']} | {read} |")
    asked = dict.fromkeys("".join(line["characters"] for line in lines))
    proofs = _header("character", *shown)
    proofs += [f"| {char} | {' | '.join(_SAID[said[name][char]] for name in names)} |" for char in asked]
    others = _header("character", *models)
    others += [
        f"| {char} | {' | '.join(_SAID[said[name][char]] for name in models)} |"
        for char in told["unexplained"]
    ]
    parts = {"readings": readings, "proofs": proofs, "others": others, "lesson": words(told["lesson"])}
    return {mark: "\n".join(rows) for mark, rows in parts.items()}


def _header(*columns: str) -> list[str]:
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


_SAID = {
    Status.ARGMAXABLE.value: "can be read",
    Status.UNARGMAXABLE.value: "**can never be read**",
    Status.UNDECIDED.value: "undecided",
    "not in the dictionary": "not in the dictionary",
}


def put(page: str, marked: dict[str, str]) -> str:
    """The page with new text between its marks."""
    for mark, text in marked.items():
        start, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
        before, _, rest = page.partition(start)
        page = f"{before}{start}\n{text}\n{end}{rest.partition(end)[2]}"
    return page


def write(story: Story, fonts: StoryFonts, work: Path, folder: Path, more: list[str]) -> None:
    """Teach, and write the story's page (ocr.md, which has the marks), its figures and its pictures."""
    copy, lesson = taught(story, fonts, work, more)
    told = tell(story, copy, parse_faces(fonts.held_out[:1])[0], folder)
    told |= {"lesson": lesson, "commit": _commit(), "date": datetime.now(UTC).date().isoformat()}
    text = json.dumps(told, ensure_ascii=False, indent=1)
    (folder / "ocr.json").write_text(f"{text}\n", encoding="utf-8")
    page = folder / "ocr.md"
    page.write_text(put(page.read_text(encoding="utf-8"), tables(told)), encoding="utf-8")


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+changes"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fonts", choices=[DEBIAN, PYPI], help="default: Debian's if they are installed")
    parser.add_argument("--words", help="words around the characters, one `word [count]` a line")
    parser.add_argument("--text", help="ordinary text, whose lines should read as before")
    parser.add_argument("--work", type=Path, default=ROOT / ".cache" / "story")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "stories", help="where ocr.md is")
    given = parser.parse_args()
    more = [
        word
        for name, value in (("--words", given.words), ("--text", given.text))
        if value
        for word in (name, value)
    ]
    write(OCR, story_fonts(given.fonts), given.work, given.folder, more)


if __name__ == "__main__":
    main()
