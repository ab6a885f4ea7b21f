"""Writes what docs/stories/ocr.md shows: pictures, readings and verdicts of PaddleOCR's recognisers.

    python scripts/tell_ocr_story.py TAUGHT.onnx --font FILE [--lesson LESSON.json]

TAUGHT.onnx is PP-OCRv4's recogniser after `argmaxable teach`, LESSON.json what that command printed with
--json. `make story` runs both. The models travel inside two wheels, which are unpacked, never installed.
Written are docs/stories/ocr.json, a picture for each complaint, and the tables between the marks in
docs/stories/ocr.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from argmaxable.compute.readings import spelled
from argmaxable.core.head import Head
from argmaxable.core.verdict import Status
from argmaxable.examples.faces import Face, parse_faces
from argmaxable.examples.network import TappedNetwork
from argmaxable.examples.preprocess import preprocessing_for
from argmaxable.models.model_ref import ModelRef
from argmaxable.questions.argmax import verify
from argmaxable.workflow.find_model import find_model

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "stories"
_WHEEL = "pypi:rapidocr-onnxruntime=={}!rapidocr_onnxruntime/models/ch_PP-OCRv{}_rec_infer.onnx"
VERSIONS = {"PP-OCRv3": _WHEEL.format("1.2.3", 3), "PP-OCRv4": _WHEEL.format("1.4.4", 4)}
TAUGHT = "taught"
_SIZE, _PAD = 40, 8


@dataclass(frozen=True)
class Complaint:
    """A line that people say is misread, the characters it is about, and where they say it."""

    text: str
    characters: str
    threads: str


COMPLAINTS = (
    Complaint("卖淫嫖娼活动", "嫖", "PaddleOCR 14065, 14370; MinerU 1251"),
    Complaint("嫖资", "嫖", "PaddleOCR 14065, 14370; MinerU 1251"),
    Complaint("商榷", "榷", "–"),
    Complaint("磋商", "磋", "PaddleOCR 9005"),
    Complaint("蹒跚学步", "蹒跚", "–"),
    Complaint("寤寐思服", "寤", "–"),
    Complaint("曲水流觞", "觞", "–"),
    Complaint("惊鸿一瞥", "瞥", "–"),
    Complaint("踌躇满志", "踌躇", "–"),
)
# Complaints that this does not explain: the characters can win, the network does not see them.
UNEXPLAINED = "鄢菡滂撮丐馕衅槲嵘"


@dataclass(frozen=True, eq=False)
class Reader:
    """A recogniser, to read lines with."""

    head: Head
    network: TappedNetwork

    @staticmethod
    def of(model: str) -> Reader:
        ref = ModelRef(model)
        finding = ref.find()
        head = ref.read(finding)
        return Reader(head, TappedNetwork(ref.file(), finding, head))

    def read(self, text: str, face: Face) -> str:
        image, _ = face.line(text, _SIZE, pad=_PAD, ink=0, paper=255)
        values, _ = preprocessing_for(self.network.input, is_ctc=True).array(image.convert("RGB"))
        features = self.network.features(values)
        logits = features @ self.head.rows(slice(None)).T + self.head.biases()
        (winners,) = spelled(logits.argmax(axis=1), np.array([0, len(features)]), 0)
        return "".join(self.head.label(winner) for winner in winners)


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


def tell(taught: Path, face: Face) -> dict[str, object]:
    """Everything that the story shows but the lesson's own figures."""
    characters = "".join(dict.fromkeys("".join(each.characters for each in COMPLAINTS) + UNEXPLAINED))
    models = {**VERSIONS, TAUGHT: str(taught)}
    readers = {name: Reader.of(model) for name, model in models.items()}
    said = {name: verdicts(model, characters) for name, model in models.items()}
    lines = []
    for number, complaint in enumerate(COMPLAINTS):
        image, _ = face.line(complaint.text, _SIZE, pad=_PAD, ink=0, paper=255)
        picture = f"ocr/{number}.png"
        image.save(FOLDER / picture, optimize=True)
        read = {name: reader.read(complaint.text, face) for name, reader in readers.items()}
        lines.append(asdict(complaint) | {"picture": picture, "read": read})
    return {"font": face.name, "lines": lines, "verdicts": said, "unexplained": UNEXPLAINED}


def tables(story: dict[str, object]) -> dict[str, str]:
    """The story's tables in Markdown, by their marks."""
    lines, said = story["lines"], story["verdicts"]
    assert isinstance(lines, list)
    assert isinstance(said, dict)
    names = [*VERSIONS, TAUGHT]
    readings = [
        "| what is printed | who asks | v3 reads | v4 reads | v4 taught reads |",
        "|---|---|---|---|---|",
    ]
    for line in lines:
        read = " | ".join(line["read"][name] or "(nothing)" for name in names)
        readings.append(f"| ![{line['text']}]({line['picture']}) | {line['threads']} | {read} |")
    asked = dict.fromkeys("".join(line["characters"] for line in lines))
    proofs = ["| character | v3 | v4 | v4 taught |", "|---|---|---|---|"]
    proofs += [f"| {char} | {' | '.join(_SAID[said[name][char]] for name in names)} |" for char in asked]
    others = ["| character | v3 | v4 |", "|---|---|---|"]
    others += [
        f"| {char} | {' | '.join(_SAID[said[name][char]] for name in VERSIONS)} |" for char in UNEXPLAINED
    ]
    return {"readings": "\n".join(readings), "proofs": "\n".join(proofs), "others": "\n".join(others)}


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("taught", type=Path)
    parser.add_argument("--font", required=True)
    parser.add_argument("--lesson", type=Path)
    given = parser.parse_args()
    story = tell(given.taught, parse_faces([given.font])[0])
    if given.lesson is not None:
        story["lesson"] = json.loads(given.lesson.read_text(encoding="utf-8"))
    text = json.dumps(story, ensure_ascii=False, indent=1)
    (FOLDER / "ocr.json").write_text(f"{text}\n", encoding="utf-8")
    page = FOLDER / "ocr.md"
    page.write_text(put(page.read_text(encoding="utf-8"), tables(story)), encoding="utf-8")


if __name__ == "__main__":
    main()
