"""Proof bundles: what is written is read back exactly, and whatever is no bundle is refused as such."""

from __future__ import annotations

import functools
import getpass
import io
import json
import math
import os
import pickletools
import shutil
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import ENCODABLE
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argmaxable import (
    Ball,
    Box,
    BundleError,
    Certificate,
    Domain,
    Everywhere,
    Head,
    LayerNorm,
    OwnDirection,
    Point,
    Result,
    RMSNorm,
    Status,
    read_bundle,
    recheck,
    verify,
    write_bundle,
)
from argmaxable.run.plan import ONE_PROCESS

FEATURES = 4
GAIN = np.linspace(0.5, 2.0, FEATURES)
SHIFT = np.linspace(-0.1, 0.1, FEATURES)
DOMAINS: dict[str, Domain] = {
    "box": Box(-100.0, 100.0),
    "half-open box": Box(0.0, np.inf),
    "everywhere": Everywhere(),
    "ball": Ball(10.0),
    "RMSNorm": RMSNorm(GAIN),
    "LayerNorm": LayerNorm(GAIN, SHIFT),
}
FILES = ("manifest.json", "verdicts.jsonl", "evidence.npz")
# A class that is not undecided, as `write_bundle` puts it down.
LINE = {"class": 0, "label": "0", "status": "argmaxable", "lower": 0.5, "upper": 1.5, "method": "reflection"}

Arrays = dict[str, NDArray[Any]]


def plain_head(*, bias: bool = True, seed: int = 0) -> Head:
    """Random rows; the first five lie deep inside the hull of the others."""
    generator = np.random.default_rng(seed)
    weight = generator.normal(size=(40, FEATURES)).astype(np.float32)
    weight[:5] = weight[10:].mean(axis=0) + 0.01 * generator.normal(size=(5, FEATURES))
    offset = 0.1 * generator.normal(size=40)
    offset[:5] -= 300
    return Head(weight, offset.astype(np.float32) if bias else None, name="plain.npz")


def tied_head() -> Head:
    """Ties at the top (30, 31), a tie that others dominate (6, 7) and a twin with less bias (33, 34)."""
    head = plain_head()
    weight, bias = np.array(head.weight), np.array(head.bias)
    weight[30], bias[30] = weight[31], bias[31] = 3 * weight[31], 5.0
    weight[7], bias[6:8] = weight[6], -300
    weight[6:8] = weight[10:].mean(axis=0)
    weight[33], bias[33], bias[34] = weight[34], 1, 2
    return Head(weight, bias)


def narrow_head() -> Head:
    """Classes that win only in intervals of 2^-26 around x = 1/4, which float32 points miss."""
    weight = np.zeros((9, 2))
    weight[:7, 0] = 0.25 + np.arange(7) * 2.0**-26
    weight[7:, 1] = 1, -1
    return Head(weight, np.append(-(weight[:7, 0] ** 2) / 2, [-5.0, -5.0]))


HEADS: dict[str, Callable[[], Head]] = {
    "with bias": plain_head,
    "without bias": functools.partial(plain_head, bias=False),
    "with ties": tied_head,
    "narrow": narrow_head,
    "one class": lambda: Head(np.ones((1, FEATURES))),
}


@functools.cache
def finished(head_name: str, domain_name: str = "box") -> Result:
    """A run that several tests only read."""
    return verify(HEADS[head_name](), DOMAINS[domain_name], engine=ONE_PROCESS)


def write(result: Result, folder: Path) -> Path:
    write_bundle(result, folder)
    return folder


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle about `plain_head` with witnesses and certificates of most kinds."""
    return write(finished("with bias"), tmp_path_factory.mktemp("genuine"))


@pytest.fixture
def copied(genuine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(genuine, tmp_path / "copy"))


def read_arrays(folder: Path) -> Arrays:
    with np.load(folder / "evidence.npz") as archive:
        return {name: archive[name] for name in archive.files}


def is_just_below(claim: float, bound: float) -> bool:
    """Equal to a few digits, rounded to the weaker side."""
    return claim == bound or (math.isfinite(bound) and bound - 1e-3 * abs(bound) <= claim <= bound)


def same_certificate(left: Certificate | None, right: Certificate | None, features: int) -> bool:
    if left is None or right is None:
        return left is right
    everything = np.arange(features if left.basis else 0)
    chosen = [everything if c.coordinates is None else c.coordinates for c in (left, right)]
    return (
        np.array_equal(left.classes, right.classes)
        and left.weights.tobytes() == right.weights.tobytes()
        and left.basis == right.basis
        and np.array_equal(*chosen)
    )


def evidence_bytes(folder: Path) -> int:
    return sum((folder / name).stat().st_size for name in FILES)


# ---------------------------------------------------------------------- what is written is read back


@pytest.mark.parametrize("head_name", HEADS)
@pytest.mark.parametrize("domain_name", ["box", "everywhere", "ball"])
def test_claims_read_back_are_the_verdicts_written(head_name: str, domain_name: str, tmp_path: Path) -> None:
    result = finished(head_name, domain_name)
    bundle = read_bundle(write(result, tmp_path))
    assert len(bundle.claims) == len(result.verdicts)
    for claim, verdict in zip(bundle.claims, result.verdicts, strict=True):
        assert (claim.class_id, claim.status) == (verdict.class_id, verdict.status)
        assert is_just_below(claim.lower, verdict.lower) or verdict.lower == math.inf
        assert is_just_below(-claim.upper, -verdict.upper)
        assert claim.tie_group == verdict.tie_group
        assert same_certificate(claim.certificate, verdict.certificate, result.head.features)


@pytest.mark.parametrize("head_name", HEADS)
def test_witnesses_read_back_are_bit_for_bit_those_written(head_name: str, tmp_path: Path) -> None:
    result = finished(head_name)
    for claim, verdict in zip(read_bundle(write(result, tmp_path)).claims, result.verdicts, strict=True):
        if isinstance(verdict.witness, Point):
            assert isinstance(claim.witness, Point)
            assert claim.witness.values.tobytes() == verdict.witness.values.tobytes()
        elif isinstance(verdict.witness, OwnDirection):
            assert isinstance(claim.witness, OwnDirection)
            assert claim.witness.exponent == verdict.witness.exponent
        else:
            assert claim.witness is None


@pytest.mark.parametrize("name", DOMAINS)
def test_the_domain_and_centre_read_back_are_exact(name: str, tmp_path: Path) -> None:
    result = finished("with bias", name)
    bundle = read_bundle(write(result, tmp_path))
    assert bundle.domain == DOMAINS[name]
    assert bundle.centre.tobytes() == result.centre.tobytes()


def test_the_kinds_of_evidence_in_these_tests_are_all_there(tmp_path: Path) -> None:
    kinds = set()
    for name in HEADS:
        for domain_name in ("box", "everywhere"):
            folder = write(finished(name, domain_name), tmp_path / f"{name} {domain_name}")
            lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
            kinds |= {key for line in lines for key in line}
            kinds |= {"basis"} if read_arrays(folder)["certificate_basis"].any() else set()
    assert {"own", "point32", "point64", "rival", "certificate", "tie", "basis"} <= kinds


def test_the_manifest_counts_the_verdicts(tmp_path: Path) -> None:
    result = finished("with ties")
    manifest = read_bundle(write(result, tmp_path)).manifest
    counts = {name: manifest[name] for name in ("argmaxable", "unargmaxable", "tied", "undecided")}
    assert counts == {
        "argmaxable": len(result.argmaxable),
        "unargmaxable": len(result.unargmaxable),
        "tied": 2,
        "undecided": 0,
    }


def test_a_bundle_of_chosen_classes_has_those_lines_only(tmp_path: Path) -> None:
    result = verify(plain_head(), only=[17, 3, 3], engine=ONE_PROCESS)
    assert [claim.class_id for claim in read_bundle(write(result, tmp_path)).claims] == [3, 17]


def test_an_interrupted_run_writes_its_undecided_classes_too(tmp_path: Path) -> None:
    result = verify(plain_head(), engine=ONE_PROCESS, time_limit=1e-9)
    bundle = read_bundle(write(result, tmp_path))
    assert not bundle.manifest["complete"]
    assert len(bundle.claims) == 40
    assert {claim.status for claim in bundle.claims} >= {Status.UNDECIDED}


def test_writing_over_an_earlier_bundle_leaves_none_of_it(tmp_path: Path) -> None:
    write(finished("with bias"), tmp_path)
    write(finished("narrow"), tmp_path)
    bundle = read_bundle(tmp_path)
    assert len(bundle.claims) == 9
    assert recheck(bundle, narrow_head()).proven == 9


def test_a_missing_parent_folder_is_made(tmp_path: Path) -> None:
    folder = write(finished("narrow"), tmp_path / "a" / "b")
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_a_file_in_the_way_of_the_folder_is_a_bundle_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BundleError, match="can't write"):
        write_bundle(finished("narrow"), tmp_path / "file")


@pytest.mark.parametrize("label", ["Ω", "\u2028\x85\n\r", '"\\', "\x00", "😀", "\ud800"], ids=ascii)
def test_any_label_can_be_written(label: str, tmp_path: Path) -> None:
    head = Head(np.eye(3), labels=[label, "b", "c"])
    folder = write(verify(head, engine=ONE_PROCESS), tmp_path)
    assert len(read_bundle(folder).claims) == 3


# ---------------------------------------------------------------------- size and privacy


def lossy_head(lost: float) -> Head:
    """1000 × 32; that share of the rows lies inside the hull of the others, each in its own place."""
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(1000, 32)).astype(np.float32)
    bias = (0.3 * generator.normal(size=1000)).astype(np.float32)
    inside = int(1000 * lost)
    weight[:inside] *= 0.2
    bias[:inside] -= 1
    return Head(weight, bias)


@pytest.mark.parametrize("lost", [0.0, 0.1, 0.3])
def test_a_bundle_is_at_most_two_and_a_half_times_its_head(lost: float, tmp_path: Path) -> None:
    head = lossy_head(lost)
    result = verify(head, engine=ONE_PROCESS)
    assert len(result.unargmaxable) == int(1000 * lost)
    assert evidence_bytes(write(result, tmp_path)) <= 2.5 * head.weight.nbytes


@functools.cache
def run_with_twins(twins: int) -> Result:
    """60 random rows and a group of identical ones outside their hull."""
    generator = np.random.default_rng(3)
    weight = generator.normal(size=(60 + twins, 6)).astype(np.float32)
    weight[60:] = 4 * weight[0]
    return verify(Head(weight), engine=ONE_PROCESS)


def test_a_group_of_3000_ties_is_stored_once(tmp_path: Path) -> None:
    result = run_with_twins(3000)
    arrays = read_arrays(write(result, tmp_path))
    assert len(result.tied) == 3000
    assert len(arrays["tie_classes"]) == 3000
    assert len(arrays["certificate_weights"]) < 3000


def test_bytes_per_tied_class_do_not_grow_with_their_group(tmp_path: Path) -> None:
    small, large = (
        evidence_bytes(write(run_with_twins(twins), tmp_path / str(twins))) for twins in (750, 3000)
    )
    assert large <= 4 * small


def test_no_file_names_a_path_a_host_or_a_user(genuine: Path) -> None:
    private = {socket.gethostname(), getpass.getuser(), os.getcwd(), str(genuine), str(Path.home()), "/tmp"}
    texts = {name: (genuine / name).read_bytes() for name in FILES}
    with zipfile.ZipFile(genuine / "evidence.npz") as archive:
        members = archive.infolist()
        texts |= {info.filename: archive.read(info) for info in members}
        texts |= {f"comment of {info.filename}": info.comment + info.extra for info in members}
    # A name of one or two letters, like `vm`, occurs in compressed bytes by chance: look at text only.
    leaks = {
        (name, secret)
        for name, text in texts.items()
        for secret in private
        if secret.encode() in text and (len(secret) > 3 or name.startswith(("manifest", "verdicts")))
    }
    assert not leaks


def test_no_array_is_a_pickle(genuine: Path) -> None:
    with zipfile.ZipFile(genuine / "evidence.npz") as archive:
        for name in archive.namelist():
            stream = io.BytesIO(archive.read(name))
            assert np.lib.format.read_magic(stream) == (1, 0)
            assert not np.lib.format.read_array_header_1_0(stream)[2].hasobject
            with pytest.raises(ValueError, match=r"pickle|opcode"):
                list(pickletools.genops(archive.read(name)))


# ---------------------------------------------------------------------- what is no bundle


def test_a_missing_folder_is_a_bundle_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no proof bundle"):
        read_bundle(tmp_path / "nowhere")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_a_bundle_error(name: str, copied: Path) -> None:
    (copied / name).unlink()
    with pytest.raises(BundleError, match=name):
        read_bundle(copied)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_place_of_a_file_is_a_bundle_error(name: str, copied: Path) -> None:
    (copied / name).unlink()
    (copied / name).mkdir()
    with pytest.raises(BundleError, match=name):
        read_bundle(copied)


@pytest.mark.parametrize("name", ["manifest.json", "evidence.npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_cut_short_is_a_bundle_error(name: str, share: float, copied: Path) -> None:
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(BundleError):
        read_bundle(copied)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "1e999", "NaN", '{"format": ', "[" * 100_000, '{"a":' * 100_000,
        "9" * 5000, '"' + "a" * 1000, "\ufeff{}",
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_a_manifest_that_is_no_object_of_ours_is_a_bundle_error(text: str, copied: Path) -> None:
    (copied / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(BundleError, match=r"manifest\.json"):
        read_bundle(copied)


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("version", ["argmaxable-proofs-3", "", None, 1, ["argmaxable-proofs-1"]])
def test_another_format_is_a_bundle_error(version: object, copied: Path) -> None:
    edit_manifest(copied, format=version)
    with pytest.raises(BundleError, match="format"):
        read_bundle(copied)


@pytest.mark.parametrize("head", [None, [], "sha256", 3])
def test_a_manifest_without_a_head_is_a_bundle_error(head: object, copied: Path) -> None:
    edit_manifest(copied, head=head)
    with pytest.raises(BundleError, match="head"):
        read_bundle(copied)


@pytest.mark.parametrize(
    "domain",
    [
        None,
        "box:100",
        {},
        {"kind": "torus"},
        {"kind": ["box"]},
        {"kind": "box"},
        {"kind": "box", "lo": "0x1p0", "hi": "-0x1p0"},
        {"kind": "box", "lo": "nan", "hi": "inf"},
        {"kind": "box", "lo": "0x1p99999", "hi": "inf"},
        {"kind": "box", "lo": [["0x0p0"]], "hi": "inf"},
        {"kind": "box", "lo": {"a": 1}, "hi": "inf"},
        {"kind": "box", "lo": -100, "hi": 100},
        {"kind": "ball", "radius": "-0x1p0"},
        {"kind": "ball", "radius": "inf"},
        {"kind": "ball", "radius": float("nan")},
        {"kind": "rmsnorm", "gain": "inf", "shift": "0x0p0"},
        {"kind": "layernorm", "gain": ["0x1p0"], "shift": None},
    ],
    ids=str,
)
def test_a_garbled_domain_is_a_bundle_error(domain: object, copied: Path) -> None:
    edit_manifest(copied, domain=domain)
    with pytest.raises(BundleError):
        read_bundle(copied)


@pytest.mark.parametrize(
    "line",
    [
        "", "null", "7", '"text"', "[]", "[1, 2]", "{}", '{"class": 0', "{'class': 0}", "nonsense", "\x00",
        "[" * 100_000, '{"own":' * 100_000, "9" * 5000,
    ],
    ids=lambda line: ascii(line[:12]),
)  # fmt: skip
def test_a_line_that_is_no_claim_is_a_bundle_error(line: str, copied: Path) -> None:
    path = copied / "verdicts.jsonl"
    path.write_text(path.read_text() + line + "\n" + json.dumps(LINE) + "\n")
    with pytest.raises(BundleError, match="line 41"):
        read_bundle(copied)


def test_a_last_line_cut_short_is_a_bundle_error(copied: Path) -> None:
    path = copied / "verdicts.jsonl"
    path.write_text(path.read_text()[:-10])
    with pytest.raises(BundleError, match="line 40"):
        read_bundle(copied)


def test_lines_that_are_not_utf8_are_a_bundle_error(copied: Path) -> None:
    path = copied / "verdicts.jsonl"
    path.write_bytes(path.read_bytes() + b'{"label": "\xff"}\n')
    with pytest.raises(BundleError):
        read_bundle(copied)


@pytest.mark.parametrize("field", ["class", "status", "lower", "upper"])
def test_a_line_without_a_required_field_is_a_bundle_error(field: str, copied: Path) -> None:
    line = {key: value for key, value in LINE.items() if key != field}
    (copied / "verdicts.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(BundleError, match=field):
        read_bundle(copied)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("class", wrong) for wrong in (-1, 1.0, "0", None, True, [0], 2**63, 10**400)],
        *[("status", wrong) for wrong in ("maybe", "ARGMAXABLE", None, 1, ["argmaxable"], {})],
        *[("lower", wrong) for wrong in ("0", True, [], {}, math.nan, math.inf, -math.inf, 10**400)],
        *[("upper", wrong) for wrong in ("0", False, [], {}, math.nan, math.inf, -math.inf, 10**400)],
        *[("own", wrong) for wrong in (4000, -4001, 0.5, "1", None, True, 10**400)],
        *[("point32", wrong) for wrong in (-1, 10**6, 0.0, "0", None, 10**400)],
        *[("point64", wrong) for wrong in (-1, 10**6, 0.0, "0", None)],
        *[("rival", wrong) for wrong in (-1, 0.0, "1", None, True, 2**63, 10**400)],
        *[("certificate", wrong) for wrong in (-1, 10**6, 0.0, "0", None)],
        *[("tie", wrong) for wrong in (-1, 10**6, 0.0, "0", None)],
    ],
    ids=lambda value: ascii(value)[:20],
)  # fmt: skip
def test_a_field_of_the_wrong_kind_is_a_bundle_error(field: str, value: object, copied: Path) -> None:
    (copied / "verdicts.jsonl").write_text(json.dumps(LINE | {field: value}) + "\n")
    with pytest.raises(BundleError, match="line 1"):
        read_bundle(copied)


# ---------------------------------------------------------------------- damaged arrays


class Bomb:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def write_arrays(folder: Path, arrays: Arrays) -> None:
    np.savez_compressed(folder / "evidence.npz", **arrays)


ARRAYS = (
    "centre", "points32", "points64", "certificate_start", "certificate_classes", "certificate_weights",
    "certificate_basis", "coordinate_start", "coordinates", "tie_start", "tie_classes",
)  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_a_bundle_error(name: str, copied: Path) -> None:
    arrays = read_arrays(copied)
    del arrays[name]
    write_arrays(copied, arrays)
    with pytest.raises(BundleError, match=name):
        read_bundle(copied)


@pytest.mark.parametrize("name", ARRAYS)
def test_pickled_objects_are_refused_and_never_run(name: str, copied: Path) -> None:
    trace = copied / "was here"
    write_arrays(copied, read_arrays(copied) | {name: np.array([Bomb(trace)], dtype=object)})
    with pytest.raises(BundleError):
        read_bundle(copied)
    assert not trace.exists()


@pytest.mark.parametrize("dtype", [np.complex128, "U4", "V3", bool, "M8[s]"])
@pytest.mark.parametrize("name", ["centre", "points32", "certificate_classes", "certificate_weights"])
def test_an_array_of_another_kind_of_number_is_a_bundle_error(name: str, dtype: Any, copied: Path) -> None:
    arrays = read_arrays(copied)
    write_arrays(copied, arrays | {name: np.zeros(arrays[name].shape, dtype)})
    with pytest.raises(BundleError, match=name):
        read_bundle(copied)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_with_more_dimensions_is_a_bundle_error(name: str, copied: Path) -> None:
    arrays = read_arrays(copied)
    write_arrays(copied, arrays | {name: arrays[name][..., None]})
    with pytest.raises(BundleError, match=name):
        read_bundle(copied)


@pytest.mark.parametrize("name", ["certificate_start", "coordinate_start", "tie_start"])
@pytest.mark.parametrize("change", ["none", "short", "long", "shifted", "backwards", "negative", "huge"])
def test_starts_that_do_not_fit_are_a_bundle_error(name: str, change: str, copied: Path) -> None:
    arrays = read_arrays(copied)
    start, last = arrays[name], arrays[name][-1]
    arrays[name] = {
        "none": start[:0],
        "short": np.append(start[:-1], last - 1),
        "long": np.append(start, last + 7),
        "shifted": np.append(1, start[1:]),
        "backwards": np.array([0, last + 1, last]),
        "negative": np.array([0, -1, last]),
        "huge": np.array([0, 2**64 - 1, int(last)], np.uint64),
    }[change]
    write_arrays(copied, arrays)
    with pytest.raises(BundleError):
        read_bundle(copied)


@pytest.mark.parametrize("name", ["certificate_classes", "certificate_weights", "certificate_basis"])
def test_parts_of_certificates_that_differ_in_number_are_a_bundle_error(name: str, copied: Path) -> None:
    arrays = read_arrays(copied)
    write_arrays(copied, arrays | {name: arrays[name][:-1]})
    with pytest.raises(BundleError):
        read_bundle(copied)


def zip_of(content: bytes, **options: Any) -> bytes:
    """An archive with every array of a bundle, each being those bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name in ARRAYS:
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def npy_of(header: str) -> bytes:
    text = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def npy_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def encrypted(archive: bytes) -> bytes:
    """The archive with the flag of encryption set in every header."""
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = archive.split(signature)
        archive = signature.join(
            [parts[0], *(part[: offset - 4] + b"\x01" + part[offset - 3 :] for part in parts[1:])]
        )
    return archive


def with_spoilt_data(archive: bytes) -> bytes:
    """Deflated bytes replaced by a block of a type that does not exist."""
    start = archive.index(b".npy") + len(b".npy")
    return archive[:start] + b"\xff" * 40 + archive[start + 40 :]


ZEROS = npy_bytes(np.zeros(4))
BAD_ARCHIVES = {
    "empty": b"",
    "text": b"not an archive",
    "a bare array": ZEROS,
    "a bare pickle": b"\x80\x04N.",
    "an archive without members": zip_of(b"")[-22:],
    "members without content": zip_of(b""),
    "members that are text": zip_of(b"hello"),
    "a header that is no literal": zip_of(npy_of("{'descr': ")),
    "a header that is a call": zip_of(npy_of("__import__('os').getcwd()")),
    "a header without a shape": zip_of(npy_of("{'descr': '<f8'}")),
    "a negative shape": zip_of(npy_of("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}")),
    "a terabyte declared": zip_of(npy_of(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**40},)}}")),
    "an overflowing shape": zip_of(
        npy_of(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**70},)}}")
    ),
    "an array cut short": zip_of(ZEROS[:-5]),
    "encrypted members": encrypted(zip_of(ZEROS)),
    "spoilt data": with_spoilt_data(zip_of(ZEROS, compression=zipfile.ZIP_DEFLATED)),
    "spoilt bz2 data": with_spoilt_data(zip_of(ZEROS, compression=zipfile.ZIP_BZIP2)),
    "spoilt lzma data": with_spoilt_data(zip_of(ZEROS, compression=zipfile.ZIP_LZMA)),
}


@pytest.mark.parametrize("name", BAD_ARCHIVES)
def test_a_bad_archive_is_a_bundle_error(name: str, copied: Path) -> None:
    (copied / "evidence.npz").write_bytes(BAD_ARCHIVES[name])
    with pytest.raises(BundleError, match=r"evidence\.npz"):
        read_bundle(copied)


# ---------------------------------------------------------------------- fuzz

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(ENCODABLE, max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(ENCODABLE, max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = (
    "class",
    "label",
    "status",
    "lower",
    "upper",
    "own",
    "point32",
    "point64",
    "rival",
    "certificate",
    "tie",
)


@pytest.fixture(scope="module")
def scratch(genuine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy whose verdicts each example overwrites."""
    return Path(shutil.copytree(genuine, tmp_path_factory.mktemp("fuzz") / "copy"))


def reads_or_refuses(folder: Path) -> None:
    try:
        bundle = read_bundle(folder)
    except BundleError:
        return
    for claim in bundle.claims:
        assert claim.class_id >= 0
        assert not np.isnan([claim.lower, claim.upper]).any()


@given(changes=st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=4))
@settings(max_examples=100, derandomize=True)
def test_lines_with_random_fields_are_read_or_refused(changes: dict[str, Any], scratch: Path) -> None:
    (scratch / "verdicts.jsonl").write_text(json.dumps(LINE | changes) + "\n")
    reads_or_refuses(scratch)


@given(lines=st.lists(st.text(ENCODABLE, max_size=40) | JSON_VALUES.map(json.dumps), max_size=4))
@settings(max_examples=100, derandomize=True)
def test_random_lines_are_read_or_refused(lines: list[str], scratch: Path) -> None:
    (scratch / "verdicts.jsonl").write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    reads_or_refuses(scratch)
