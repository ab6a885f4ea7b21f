"""What teaching and training gave, in the words of docs/: taught dictionaries, losses, a trainer's memory."""

from __future__ import annotations

from typing import Any

from scripts.figure_text import paragraph, result, table


def dictionary() -> str:
    found = result("teach_dictionary_ppocrv4")
    (old, images), (new, _) = found["dictionary_read_before"], found["dictionary_read_after"]
    changed, lines, bound = found["ordinary_lines_changed"]
    taken, right, _ = found["others_taken"]
    pairs = [pair for pair in found["substituted"] if pair[0] != "<blank>"][:8]
    never = found["unargmaxable"]
    return paragraph(
        f"The whole dictionary: PP-OCRv4 reads {old:,} of {images:,} images of its own Han characters",
        f"({100 * old / images:.1f} %) in fonts that nothing is learned from. {found['wanted']:,} characters",
        "are read in fewer than half of their images. Most of them can win somewhere, so geometry is not",
        f"the reason. With {found['taught']:,} of them taught together",
        f"({len(found['left_out'])} are left out as look-alikes), {new:,} images are read",
        f"({100 * new / images:.1f} %). The cost: {changed:,} of {lines:,} ordinary lines read differently",
        f"(at most {100 * bound:.2g} % of all, 95 % bound), mostly to a variant or a look-alike",
        f"({', '.join(f'{label} → {taught}' for label, taught, _ in pairs)}, …), and {taken:,} of {right:,}",
        "other characters that were read no longer are. Classes that can never be predicted:",
        f"{never[0]:,} before, {never[1]:,} after.",
        f"([benchmarks/teach_dictionary.py](../benchmarks/teach_dictionary.py), commit {found['commit']}.)",
    )


def unreadable() -> str:
    found = result("teach_dictionary_ppocrv5")
    before, after, images = found["taught_read"]
    changed, lines, bound = found["ordinary_lines_changed"]
    taken, right, _ = found["others_taken"]
    never = found["unargmaxable"]
    return paragraph(
        f"PP-OCRv5 ({found['classes']:,} classes) has {never[0]:,} classes that can never be predicted.",
        f"{found['taught']:,} of the {found['wanted']:,} Han characters among them that the fonts have were",
        f"taught together; {len(found['left_out']):,} were left out as look-alikes. They are read in",
        f"{after:,} of {images:,} images in fonts that nothing was learned from (before: {before:,}).",
        f"{changed:,} of {lines:,} ordinary lines read differently (at most {100 * bound:.2g} % of all, 95 %",
        f"bound), and {taken:,} of {right:,} other characters that were read no longer are. Classes that can",
        f"never be predicted afterwards: {never[1]:,}.",
        f"([benchmarks/teach_dictionary.py](../benchmarks/teach_dictionary.py), commit {found['commit']}.)",
    )


def grades() -> str:
    seen = result("teach_dictionary_ppocrv4")["observed"]
    shares = {name: 100 * count / total for name, (count, total) in (
        ("never", seen["never_again"]), ("wins", seen["again"]))}  # fmt: skip
    return paragraph(
        f"On PP-OCRv4, every character of the dictionary printed six times in five fonts: {seen['wins']:,}",
        f"classes win on some example, {seen['never_seen']:,} were never seen to win, and",
        f"{seen['unargmaxable']:,} are unargmaxable (proven). Each font and finish was held out in turn. Of",
        f"the classes not seen to win, proven or not, {shares['never']:.1f} % do not win on the held-out",
        f"examples either; of those that win, {shares['wins']:.1f} % win there too. Most classes that never",
        "win on examples are not proven unable to.",
    )


def layer_times() -> str:
    found = result("layers")
    rows = {(row["head"], row["linear_losses"], row["setting"], row["threads"]): row for row in found["time"]}
    memory = {row["head"]: row for row in found["memory"]}
    names = dict.fromkeys((row["head"], row["linear_losses"]) for row in found["time"])
    settings = ("default", "retained", "retained, AVX2")
    cells = [(setting, threads) for setting in settings for threads in (1, 2)]
    return table(
        "loss | default, 1 thread | default, 2 | retained, 1 | retained, 2 | limit | AVX2, 1 | AVX2, 2 "
        "| memory | limit",
        (
            (
                f"`{name}`" if losses == 1 else f"`{name}`, to {losses} linear losses",
                *(_ratio(rows.get((name, losses, *cell))) for cell in cells[:4]),
                _limit(rows[name, losses, "retained", 2]["limit"]),
                *(_ratio(rows.get((name, losses, *cell))) for cell in cells[4:]),
                *_memory(memory.get(name) if (losses == 1) != name.startswith("mos") else None),
            )
            for name, losses in names
        ),
    )


def _memory(row: dict[str, Any] | None) -> tuple[str, str]:
    return ("", "") if row is None else (f"{row['resident']:.2f}", _limit(row["limit"]))


def _ratio(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['ratio']:.2f}"


def _limit(limit: float | None) -> str:
    return "" if limit is None else f"{limit:g}"


def trainer_memory() -> str:
    found = result("trainer_memory")
    heads = {row["head"]: row for row in found["heads"]}
    own, ours = (heads[name]["peak_mb"] for name in ("own", "linear"))
    return paragraph(
        f"A Trainer step of a GPT-2 with {found['classes']:,} classes, {found['tokens']:,} tokens and",
        f"{found['features']} features (all logits would take {found['logits_mb']:,.0f} MB) adds",
        f"{own:,.0f} MB to the resident memory at its peak with the model's own head, and after",
        f"`replace_head` with a `linear` one {ours:,.0f} MB (`benchmarks/trainer_memory.py`).",
    )
