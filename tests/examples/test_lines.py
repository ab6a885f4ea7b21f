"""Fonts, and the lines that are printed with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_ocr import LETTERS, TinyOcr

from argmaxable.core.errors import InputError
from argmaxable.examples.faces import Face, parse_faces, require_covered
from argmaxable.examples.lines import Printer, common_words, read_text, read_words
from argmaxable.examples.material import Material, lesson, observed_lines
from argmaxable.examples.printing import Finish, PrintedLine, print_line


def printer(tiny: TinyOcr, *finishes: Finish) -> Printer:
    words = common_words(frozenset("abcd"))
    return Printer(tuple(map(Face, tiny.fonts)), words, finishes or (Finish.PLAIN,), np.random.default_rng(0))


def material(tiny: TinyOcr, text: Path | None = None) -> Material:
    faces = tuple(map(Face, tiny.fonts))
    return Material(faces[:2], faces[2:], ordinary=20, text_lines=20, copies=4, text=text)


def test_a_face_knows_its_characters(letters: Path) -> None:
    assert [char for char in LETTERS if Face(letters).has(char)] == ["a", "b"]


def test_edges_are_where_the_advance_widths_say(tiny: TinyOcr) -> None:
    _, edges = Face(tiny.fonts[0]).line("abc", 40, pad=5, ink=0, paper=255)
    assert np.allclose(np.diff(edges), 40)


@pytest.mark.parametrize("finish", Finish)
def test_a_line_is_printed_the_same_way_for_the_same_seed(tiny: TinyOcr, finish: Finish) -> None:
    line = PrintedLine("abc", Face(tiny.fonts[0]), finish)
    (one, edges), (other, same) = (print_line(line, np.random.default_rng(4)) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    assert one.mode == "RGB"
    assert np.array_equal(edges, same)
    assert edges[-1] <= one.width + 20


def test_every_class_is_printed_as_often_as_asked(tiny: TinyOcr) -> None:
    text = "".join(line.text for line in printer(tiny).among_words("efgh", 6, 3, 0.5))
    assert {char: text.count(char) for char in "efgh"} == dict.fromkeys("efgh", 6)


def test_ordinary_lines_hold_words_only(tiny: TinyOcr) -> None:
    lines = list(printer(tiny).of_words(10))
    assert len(lines) == 10
    assert all(line.is_ordinary and set(line.text) <= set("abcd") for line in lines)


def test_characters_that_a_face_lacks_are_left_out_of_text(letters: Path) -> None:
    words = common_words(frozenset("ab"))
    made = Printer((Face(letters),), words, (Finish.PLAIN,), np.random.default_rng(0))
    assert all(set(line.text) <= {"a", "b"} for line in made.of_text(5, ["abcabcabcabc"]))


def test_text_that_no_face_can_print_is_refused(letters: Path) -> None:
    words = common_words(frozenset("ab"))
    made = Printer((Face(letters),), words, (Finish.PLAIN,), np.random.default_rng(0))
    with pytest.raises(InputError, match="can print almost nothing"):
        list(made.of_text(5, ["xyzxyzxyz"]))


def test_common_characters_are_those_that_gb_2312_lists_first() -> None:
    assert set(common_words(frozenset("的觞嫖a")).words) == {"的", "a"}


def test_words_are_drawn_as_often_as_they_are_counted(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ab 99 n\ncd 1\nxy 500\n", encoding="utf-8")
    words = read_words(tmp_path / "words.txt", frozenset("abcd"))
    drawn = words.drawn(1000, np.random.default_rng(0))
    assert set(drawn) == {"ab", "cd"}
    assert drawn.count("ab") > 950


def test_a_word_list_of_unknown_characters_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("xy\n", encoding="utf-8")
    with pytest.raises(InputError, match="none of its words"):
        read_words(tmp_path / "words.txt", frozenset("ab"))


def test_a_text_without_lines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(InputError, match="no line of more than"):
        read_text(tmp_path / "text.txt")


def test_a_lesson_has_the_class_the_dictionary_and_ordinary_lines(tiny: TinyOcr) -> None:
    found = lesson(material(tiny), ["e"], ["<blank>", *LETTERS, " "])
    text = "".join(line.text for line in found.training.lines)
    assert text.count("e") == 4
    assert set(text) == set(LETTERS)
    assert sum(line.is_ordinary for line in found.training.lines) == 20
    assert not any("e" in line.text for line in found.training.lines if line.is_ordinary)


def test_a_lesson_is_judged_by_other_faces_and_other_wear(tiny: TinyOcr) -> None:
    found = lesson(material(tiny), ["e"], LETTERS)
    assert {line.face for line in found.training.lines} == set(map(Face, tiny.fonts[:2]))
    assert {line.face for line in found.judging.lines} == {Face(tiny.fonts[2])}
    assert {line.finish for line in found.training.lines} == {Finish.PLAIN, Finish.SCANNED}
    assert {line.finish for line in found.judging.lines} == {Finish.PLAIN, Finish.PHOTOGRAPHED}


def test_text_with_a_taught_class_is_not_ordinary(tiny: TinyOcr, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("abcabcabcabc\nebebebebebeb\n", encoding="utf-8")
    found = lesson(material(tiny, text=tmp_path / "text.txt"), ["e"], LETTERS)
    assert all(line.is_ordinary == ("e" not in line.text) for line in found.judging.lines[-20:])


def test_classes_that_no_face_has_are_omitted(tiny: TinyOcr) -> None:
    assert lesson(material(tiny), ["e", "é", "ab"], LETTERS).omitted == ("ab", "é")


def test_fonts_without_any_of_the_classes_are_refused(tiny: TinyOcr) -> None:
    with pytest.raises(InputError, match=r"no font has glyphs for é \(fonts: A\.ttf, B\.ttf\)"):
        lesson(material(tiny), ["é"], LETTERS)


def test_an_observation_has_every_character(tiny: TinyOcr) -> None:
    text = "".join(line.text for line in observed_lines(material(tiny), ["<blank>", *LETTERS]).lines)
    assert all(text.count(char) >= 4 for char in LETTERS)


def test_a_font_is_learned_from_or_held_out(tiny: TinyOcr) -> None:
    face = Face(tiny.fonts[0])
    with pytest.raises(InputError, match=r"A\.ttf can't be learned from and held out"):
        Material((face,), (face,))


def test_no_font_is_an_error() -> None:
    with pytest.raises(InputError, match="no font"):
        Material(())


@pytest.mark.parametrize(
    ("name", "said"), [("no.ttf", "no such font file"), ("bad.ttf", "can't be read as a font")]
)
def test_files_that_are_not_fonts_are_named(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "bad.ttf").write_bytes(b"not a font")
    with pytest.raises(InputError, match=said):
        parse_faces([str(tmp_path / name)])


def test_a_font_given_twice_is_an_error(letters: Path) -> None:
    with pytest.raises(InputError, match=r"two\.ttf is given twice"):
        parse_faces([str(letters), f"{letters}#0"])


def test_labels_are_covered_by_any_face(letters: Path, tiny: TinyOcr) -> None:
    assert require_covered("ch", [Face(letters), Face(tiny.fonts[0])]) == ()
