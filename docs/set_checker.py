"""A checker for sets of labels, written from proofs.md: exact arithmetic, no solver, nothing of argmaxable.

Call it as `python set_checker.py BUNDLE HEAD.npz`, beside checker.py, whose heads and domains it uses.
Exit codes: 0 all proven, 1 something is not proven or not true, 2 unusable, 3 undecided sets.
"""

import hashlib
import json
import math
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from checker import Domain, Head, dot, once, pick, read_arrays, require, whole

STATUSES = ("feasible", "infeasible", "undecided")


def read_evidence(path):
    """The points, and certificates as labels with weights."""
    arrays = read_arrays(path)
    kinds = {"points32": "f", "points64": "f", "certificate_weights": "f"}
    for name in ("points32", "points64", "certificate_start", "certificate_classes", "certificate_weights"):
        require(arrays[name].dtype.kind in kinds.get(name, "iu"), f"{name} holds other numbers")
    start = arrays["certificate_start"].tolist()
    labels, weights = arrays["certificate_classes"].tolist(), arrays["certificate_weights"].tolist()
    fits = start[0] == 0 and start[-1] == len(labels) == len(weights) and start == sorted(start)
    require(fits and len(arrays["certificate_basis"]) == len(start) - 1, "starts do not fit their values")
    solved = arrays["certificate_basis"].tolist()
    slices = [slice(*ends) for ends in pairwise(start)]
    certificates = [(labels[one], weights[one], basis) for one, basis in zip(slices, solved, strict=True)]
    return arrays["points32"].tolist(), arrays["points64"].tolist(), certificates


class Question:
    """The kind of set, and the thresholds as fractions."""

    def __init__(self, record, head, domain):
        self.kind, self.head, self.domain = record["kind"], head, domain
        require(self.kind in ("exactly", "top", "at-least"), "an unknown kind of set")
        given = record["thresholds"]
        given = given if isinstance(given, list) else [given] * head.classes
        require(len(given) == head.classes and all("0x" in v for v in given), "thresholds for others")
        floats = [float.fromhex(v) for v in given]
        self.thresholds = [Fraction(value) for value in floats]
        require(self.kind != "top" or not any(self.thresholds), "thresholds for the top k")

    def smallest_gap(self, members, point):
        """The margin of the set at a point, None where nothing is asked."""
        x, over = whole([*self.domain.place(point), Fraction(1)])
        scores = [Fraction(dot(row, x), over * self.head.over) for row in self.head.rows]
        gaps = [score - threshold for score, threshold in zip(scores, self.thresholds)]
        inside = [gaps[i] for i in members]
        outside = [gap for i, gap in enumerate(gaps) if i not in set(members)]
        if self.kind == "top":
            return min(inside) - max(outside) if inside and outside else None
        return min([*inside, *([] if self.kind == "at-least" else (-gap for gap in outside))], default=None)

    def check_certificate(self, members, labels, weights, upper):
        require(len(set(labels)) == len(labels) == len(weights), "a label twice, or weights for others")
        require(all(0 <= label < self.head.classes for label in labels), "a label that is not there")
        weights = [Fraction(weight) for weight in weights]
        require(min(weights) >= 0 and any(weights), "weights that are none")
        inside = [label in set(members) for label in labels]
        sums = [sum(w for w, one in zip(weights, inside) if one is side) for side in (False, True)]
        require(self.kind != "at-least" or not sums[0], "a weight where nothing is asked")
        if self.kind == "top":
            require(all(sums), "weights on one side only")
        else:
            sums = [sum(sums)] * 2
        factors = [(w if one else -w) / sums[one] for w, one in zip(weights, inside)]
        *u, offset = [
            dot(factors, column) / self.head.over for column in zip(*(self.head.rows[i] for i in labels))
        ]
        offset -= dot(factors, [self.thresholds[i] for i in labels])
        require(self.domain.support_is_at_most(u, upper - offset), "its weights do not prove it")

    def check_line(self, line, evidence):
        points32, points64, certificates = evidence
        members, names = line["set"], line["labels"]
        require(
            all(type(i) is int and 0 <= i < self.head.classes for i in members), "a label that is not there"
        )
        require(members == sorted(set(members)) and len(names) == len(members), "labels out of order")
        ends = line["lower"], line["upper"]
        require(all(end is None or type(end) in (int, float) for end in ends), "bounds that are no numbers")
        lower, upper = (None if end is None else Fraction(float(end)) for end in ends)
        require("point32" not in line or "point64" not in line, "two points")
        status = "infeasible" if upper is not None and upper <= 0 else "undecided"
        status = "feasible" if lower is not None and lower > 0 else status
        gap = -math.inf
        if "point32" in line or "point64" in line:
            name = "point32" if "point32" in line else "point64"
            gap = self.smallest_gap(members, pick(points32 if name == "point32" else points64, line[name]))
            status = "feasible" if gap is None else status
        require(line["status"] == status, f"its bounds make it {status}")
        require(gap is None or lower is None or gap >= lower, "its point does not prove it")
        if upper is not None:
            labels, weights, basis = pick(certificates, line["certificate"])
            if "weights" in line:
                weights, basis = [int(weight, 16) for weight in line["weights"]], 0
                require([*map(hex, weights)] == line["weights"], "whole numbers in another form")
            require(not basis, "weights that are to be solved for")
            self.check_certificate(members, labels, weights, upper)


def statements(head, header, lines, files):
    """What the bundle says in words: about what, what it says, what is found."""
    about = header["head"]
    yield from ((name, about[name], getattr(head, name)) for name in ("classes", "features"))
    yield from ((one, header[one], sum(line["status"] == one for line in lines)) for one in STATUSES)
    yield from (
        (name, header["files"][name], hashlib.sha256(data).hexdigest()) for name, data in files.items()
    )
    said = [name for line in lines for name in line["labels"]]
    numbers = [i for line in lines for i in line["set"]]
    stopped = any(line.get("reason", "").strip() in ("interrupted", "not reached") for line in lines)
    yield "complete", header["complete"], header["complete"] is True and not stopped
    if about["labels_sha256"] is None:
        yield "labels", said, [str(i) for i in numbers]
        others = (str(i) in head.labels and str(i) != head.labels[i] for i in numbers) if head.labels else ()
        yield "labels of others", 0, sum(others)
    elif head.labels is not None:
        yield "labels", said, [head.labels[i] for i in numbers]
        text = json.dumps(head.labels, ensure_ascii=False).encode("utf-8", "surrogatepass")
        yield "labels_sha256", about["labels_sha256"], hashlib.sha256(text).hexdigest()


def main(folder, model):
    head, folder = Head(model), Path(folder)
    files = {name: (folder / name).read_bytes() for name in ("sets.jsonl", "sets.npz")}
    header = json.loads((folder / "sets.json").read_bytes(), object_pairs_hook=once)
    require(header["format"] == "argmaxable-sets-1", "another format")
    require(header["head"]["sha256"] == head.sha256, "these proofs are for another model")
    lines = [json.loads(line, object_pairs_hook=once) for line in files["sets.jsonl"].splitlines()]
    question = Question(header["question"], head, Domain(header["domain"], head.features))
    evidence = read_evidence(folder / "sets.npz")
    wrong = []
    for line in lines:
        try:
            require([other["set"] for other in lines].count(line["set"]) == 1, "it has two lines")
            question.check_line(line, evidence)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            wrong.append(f"set {line['set']} is not proven: {error}")
    if not wrong:
        words = statements(head, header, lines, files)
        wrong = [f"{name} is {b}, not {a}" for name, a, b in words if type(a) is not type(b) or a != b]
    print(*wrong, f"{len(lines)} sets checked.", sep="\n")
    return 1 if wrong else 3 if header["undecided"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Exception as error:  # malformed files fail in many ways; none is accepted
        sys.exit(print(f"unusable: {error}") or 2)
