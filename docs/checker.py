"""A checker for verdicts in proof bundles, written from proofs.md: exact, no solver, nothing of argmaxable.

Call it as `python checker.py BUNDLE HEAD.npz`; HEAD.npz has W (classes × features) and perhaps b and labels.
Exit codes: 0 all proven, 1 something is not proven or not true, 2 unusable, 3 undecided or missing classes.
"""

import base64
import json
import math
import sys
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path

import numpy as np


def require(holds, why):
    if not holds:
        raise ValueError(why)


def dot(left, right):
    return sum(a * b for a, b in zip(left, right))


def whole(numbers):
    """Fractions as whole numbers over one denominator."""
    over = math.lcm(1, *(number.denominator for number in numbers))
    return [number.numerator * (over // number.denominator) for number in numbers], over


def split(numbers):
    """Digits of whole numbers, with their places in bits; d + 1 products of two add up to less than 2**53."""
    numbers = np.array(numbers, dtype=object)
    bits = (53 - numbers.shape[-1].bit_length()) // 2
    places, signs = range(0, abs(numbers).max().bit_length() + 1, bits), np.sign(numbers)
    return [(place, (signs * (abs(numbers) >> place & 2**bits - 1)).astype(float)) for place in places]


def pick(values, number):
    require(type(number) is int and 0 <= number < len(values), f"there is no {number!r}")
    return values[number]


def once(pairs):
    require(len(dict(pairs)) == len(pairs), "a name occurs twice")
    return dict(pairs)


def read_arrays(path):
    with np.load(path, allow_pickle=False) as archive:
        return once([(name, archive[name]) for name in archive.files])


def read_evidence(path):
    """The arrays as lists; where an array of starts divides one, a list of its parts."""
    found, floats = read_arrays(path), ("centre", "points32", "points64", "certificate_weights")
    for name, array in found.items():
        require(array.dtype.kind in ("f" if name in floats else "iu"), f"{name} holds other numbers")
        found[name] = array.tolist()
    for name in ("tie_classes", "certificate_classes", "certificate_weights", "coordinates"):
        start, values = found[f"{name.split('_')[0].removesuffix('s')}_start"], found[name]
        require(start[0] == 0 and start[-1] == len(values) and start == sorted(start), "other starts")
        found[name] = [values[first:last] for first, last in pairwise(start)]
    return found


class Head:
    """Rows of whole numbers over one denominator, each with its bias at the end: s_i(x) = row_i · (x, 1)."""

    def __init__(self, path):
        arrays = read_arrays(path)
        stored = [arrays[name] for name in "Wb" if name in arrays]  # whole numbers count as float64
        stored = [array if array.dtype.kind in "fV" else array.astype(float) for array in stored]
        self.labels = arrays["labels"].tolist() if "labels" in arrays else None
        self.classes, self.features = stored[0].shape
        kinds = " ".join([*(array.dtype.name for array in stored), "none"][:2])
        data = f"argmaxable-head-1 {self.classes} {self.features} {kinds}\n".encode()
        data += b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in stored)
        self.sha256, self.floats = sha256(data).hexdigest(), stored[0].tolist()
        table = np.column_stack([*stored, np.zeros(self.classes)][:2]).reshape(-1, self.features + 1)
        values, self.over = whole([Fraction(value) for value in table.ravel().tolist()])
        self.rows = [*zip(*[iter(values)] * (self.features + 1))]
        self.digits = split(self.rows)

    def scores(self, x):
        """row · x for every row, by long multiplication: float64 holds sums of products of digits exactly."""
        pairs = product(self.digits, split(x))
        return sum((a @ b).astype(np.int64).astype(object) << i + j for (i, a), (j, b) in pairs).tolist()


class Domain:
    """z from lo to hi, or of a square at most `square`, or weights on `points`; x = gain ∘ Πz + shift."""

    def __init__(self, record, d):
        def vector(name, missing, *kinds):
            values = record[name] if kind in kinds else missing
            values = values if isinstance(values, list) else [values] * d
            require(len(values) == d and all("0x" in v or "inf" in v for v in values), f"{name} does not fit")
            return [float.fromhex(v) for v in values]

        kind, self.d, norms = record["kind"], d, ("rmsnorm", "layernorm")
        require(kind in ("everywhere", "box", "ball", "hull", *norms), "an unknown domain")
        self.lo, self.hi = vector("lo", "-inf", "box"), vector("hi", "inf", "box")
        self.gain, self.shift = vector("gain", "0x1p0", *norms), vector("shift", "0x0p0", *norms)
        require(all(lo <= hi and lo < math.inf > -hi for lo, hi in zip(self.lo, self.hi)), "an empty box")
        radius = Fraction(vector("radius", "0x1p0", "ball")[0])
        require(radius > 0 and all(map(math.isfinite, self.gain + self.shift)), "an impossible domain")
        self.square = radius**2 if kind == "ball" else d if kind in norms else None
        self.removes_mean, self.points = kind == "layernorm", None
        if kind == "hull":
            data = base64.b64decode(record["points"], validate=True)
            array = np.frombuffer(data, {"float32": "<f4", "float64": "<f8"}[record["dtype"]])
            self.points = [[Fraction(v) for v in row] for row in array.reshape(record["shape"]).tolist()]
            require(self.points and len(self.points[0]) == d, "a hull of another size")

    def own(self, row, centre, power):
        """The point of an own direction in float64, one rounding after the other."""
        require(self.points is None and -4000 <= power < 4000, "no own direction")
        z = [g * (w - c) for g, w, c in zip(self.gain, row, centre, strict=True)]
        z = [math.ldexp(v, power) if math.frexp(v)[1] + power <= 1024 else v and v * math.inf for v in z]
        return [min(max(v, lo), hi) for v, lo, hi in zip(z, self.lo, self.hi)]

    def squared(self, v):
        return dot(v, v) - (sum(v) ** 2 / self.d if self.removes_mean else 0)

    def place(self, point):
        """The x of a point z, which must belong to the domain."""
        z = [Fraction(value) for value in point]  # raises where a value is not finite
        require(len(z) == len(self.points or self.lo), "a witness of the wrong length")
        if self.points is not None:
            require(min(z) >= 0 and any(z), "weights of a mixture that are none")
            return [dot(z, column) / sum(z) for column in zip(*self.points)]
        inside = all(lo <= v <= hi for lo, v, hi in zip(self.lo, z, self.hi))
        require(inside and (self.square is None or self.squared(z) <= self.square), "a witness outside")
        mean = sum(z) / self.d if self.removes_mean else 0
        return [Fraction(g) * (v - mean) + Fraction(s) for g, v, s in zip(self.gain, z, self.shift)]

    def support_is_at_most(self, u, limit):
        limit -= dot(map(Fraction, self.shift), u)
        if self.points is not None:
            return all(dot(u, row) <= limit for row in self.points)
        if self.square is not None:
            v = [Fraction(g) * value for g, value in zip(self.gain, u)]
            return limit >= 0 and self.square * self.squared(v) <= limit**2
        ends = [hi if value > 0 else lo if value < 0 else 0.0 for value, lo, hi in zip(u, self.lo, self.hi)]
        return all(map(math.isfinite, ends)) and dot(u, map(Fraction, ends)) <= limit


def check_witness(head, domain, line, evidence, lower):
    if "own" in line:
        point = domain.own(head.floats[line["class"]], evidence["centre"], line["own"])
    elif "point" in line:
        unit = Fraction(2) ** (pick(range(8000), line["exponent"] + 4000) - 4000)
        point = [int(value, 16) * unit for value in line["point"]]
    else:
        size = "32" if "point32" in line else "64"
        point = pick(evidence[f"points{size}"], line[f"point{size}"])
    x, over = whole([*domain.place(point), Fraction(1)])
    gap = (scores := head.scores(x)).pop(line["class"]) - max(scores)
    require(gap >= lower * over * head.over, "its witness does not prove it")


def check_certificate(head, domain, line, evidence, upper):
    number, classes, weights, basis = line["class"], [line.get("rival")], [1], 0
    if "rival" not in line:
        parts = (evidence[f"certificate_{name}"] for name in ("classes", "weights", "basis"))
        classes, weights, basis = (pick(part, line["certificate"]) for part in parts)
    if "weights" in line:
        weights, basis = [int(weight, 16) for weight in line["weights"]], 0
    require(not basis, "its weights are to be solved for: this checker needs the rational form")
    require(len(set(classes)) == len(classes) == len(weights), "a class twice, or weights for others")
    require(all(0 <= i < head.classes and i != number for i in classes), "weight where none may be")
    weights, _ = whole([Fraction(weight) for weight in weights])
    require(min(weights) >= 0 and any(weights), "weights that are none")
    mixed = [dot(weights, column) for column in zip(*(head.rows[i] for i in classes))]
    *u, offset = (Fraction(sum(weights) * a - b, head.over) for a, b in zip(head.rows[number], mixed))
    require(domain.support_is_at_most(u, upper * sum(weights) - offset), "its certificate does not prove it")


def check_line(head, domain, line, evidence):
    number = pick(range(head.classes), line["class"])
    witness = line.keys() & {"own", "point32", "point64", "point"}
    require(len(witness) < 2 and not line.keys() >= {"rival", "certificate"}, "evidence of two kinds")
    require({type(line.get(key, 0)) for key in ("own", "rival", "exponent")} == {int}, "not a whole number")
    texts = (text for key in ("point", "weights") for text in line.get(key, ()))
    require(all(hex(int(text, 16)) == text for text in texts), "another form of a whole number")
    ends = line["lower"], line["upper"]  # the float64 nearest to what is written; null claims nothing
    require(all(end is None or type(end) in (int, float) for end in ends), "bounds that are no numbers")
    low, high = (None if end is None else Fraction(float(end)) for end in ends)
    status = "argmaxable" if (low or 0) > 0 else "undecided" if high is None or high > 0 else "unargmaxable"
    is_only = head.classes == 1 and witness and line["status"] == "argmaxable"
    require(line["status"] == status or is_only, f"its bounds make it {status}")
    group = sorted(pick(evidence["tie_classes"], line["tie"])) if "tie" in line else [number]
    require(group == [i for i, row in enumerate(head.rows) if row == head.rows[number]], "other twins")
    require(line["method"] != "twin" or head.floats.count(head.floats[number]) > 1, "no class like it")
    for check, bound in ((check_witness, low), (check_certificate, high)):
        if bound is not None:
            check(head, domain, line, evidence, bound)


def statements(head, manifest, lines, files):
    """What the bundle says in words: about what, what it says, what is found."""
    about, is_new = manifest["head"], manifest["format"] == "argmaxable-proofs-2"
    labels, numbers = [line["label"] for line in lines], [str(line["class"]) for line in lines]
    yield from ((name, about[name], getattr(head, name)) for name in ("classes", "features"))
    for status in ("argmaxable", "unargmaxable", "undecided"):
        yield status, manifest[status], sum(line["status"] == status for line in lines)
    lost = [v for v in lines if "tie" in v and (v["status"], v["method"]) == ("unargmaxable", "twin")]
    yield "tied", manifest["tied"], sum(v["lower"] is not None and v["lower"] >= 0 for v in lost)
    stopped = any(line.get("reason", "").strip() in ("interrupted", "not reached") for line in lines)
    yield "complete", manifest["complete"], manifest["complete"] is True and not stopped
    if is_new:
        yield "files", manifest["files"], {name: sha256(data).hexdigest() for name, data in files.items()}
    names = numbers if head.labels is None else [head.labels[line["class"]] for line in lines]
    if about["labels_sha256"] is None if is_new else labels == numbers:
        yield "labels", labels, [b if a in (head.labels or ()) else a for a, b in zip(numbers, names)]
    elif head.labels is not None:
        yield "labels", labels, names
        text = json.dumps(head.labels, ensure_ascii=False).encode("utf-8", "surrogatepass")
        yield "labels_sha256", about.get("labels_sha256"), sha256(text).hexdigest() if is_new else None


def main(folder, model):
    head, folder = Head(model), Path(folder)
    files = {name: (folder / name).read_bytes() for name in ("verdicts.jsonl", "evidence.npz")}
    manifest = json.loads((folder / "manifest.json").read_bytes().decode(), object_pairs_hook=once)
    require(manifest["format"] in ("argmaxable-proofs-1", "argmaxable-proofs-2"), "another format")
    require(manifest["head"]["sha256"] == head.sha256, "these proofs are for another model")
    lines = [json.loads(line, object_pairs_hook=once) for line in files["verdicts.jsonl"].splitlines()]
    domain, evidence = Domain(manifest["domain"], head.features), read_evidence(folder / "evidence.npz")
    words = statements(head, manifest, lines, files)
    wrong = [f"{name} is {b}, not {a}" for name, a, b in words if type(a) is not type(b) or a != b]
    for line in lines:
        try:
            require([other["class"] for other in lines].count(line["class"]) == 1, "it has two lines")
            check_line(head, domain, line, evidence)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            wrong.append(f"class {line['class']} is not proven: {error}")
    print(*wrong, f"{len(lines)} of {head.classes} classes checked.", sep="\n")
    return 1 if wrong else 3 if manifest["undecided"] or len(lines) < head.classes else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Exception as error:  # malformed files fail in many ways; none is accepted
        sys.exit(print(f"unusable: {error}") or 2)
