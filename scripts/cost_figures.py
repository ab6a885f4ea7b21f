"""What verification costs, in the words of docs/: real heads, growth, large and hard heads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scripts.figure_text import duration, paragraph, result, size, table

HEADS = {
    "ppocrv4_rec_ch": "PP-OCRv4 recogniser",
    "ppocrv3_rec_ch": "PP-OCRv3 recogniser",
    "ppocrv6_rec_tiny": "PP-OCRv6 tiny",
    "ppocrv5": "PP-OCRv5",
    "ppocrv6-small": "PP-OCRv6 small",
    "minilm": "MiniLM word embeddings, no bias",
    "smollm2": "SmolLM2-135M (GGUF), no bias",
    "gemma3-270m": "Gemma 3 270M (GGUF), no bias",
}
# Shares of ten thousand models, their output layers (classes, features), and who has such.
_MIX = (
    (30, ((30_000, 768),), "30,000 × 768", "BERT"),
    (20, ((65_000, 512), (50_000, 768)), "50,000 – 65,000 × 512 – 768", "GPT-2, OPUS-MT"),
    (7, ((152_000, 1024), (128_000, 4096)), "128,000 – 152,000 × 1,024 – 4,096", "Llama 3, Qwen"),
    (3, ((250_000, 768), (256_000, 2304)), "250,000 × 768 – 2,304", "XLM-R, Gemma"),
)


def real_heads() -> str:
    return table("head | classes × features | never predicted | undecided | seconds | solves", _real_rows())


def measured_heads() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every real head by its title, with what was measured of it."""
    language = {
        name: model | {"seconds": model["seconds"]["verifying"]}
        for name, model in result("language_models")["models"].items()
    }
    measured = result("real_heads")["heads"] | language
    yield from ((title, measured[name]) for name, title in HEADS.items())


def _real_rows() -> Iterator[tuple[str, ...]]:
    for title, head in measured_heads():
        never = f"{head['unargmaxable']:,}"
        if head["tied"]:
            never += f", in {len(head['tie_groups'])} groups of identical rows"
        yield (
            title,
            size(head),
            never,
            str(head["undecided"]),
            f"{head['seconds']:.1f}",
            f"{head['solves']:,}",
        )


def paper() -> str:
    head = result("whole_command")["heads"]["ppocrv4_rec_ch"]
    sample, seconds = head["paper"], head["this"]["wall_seconds"]
    return paragraph(
        "The paper's algorithm is reflection, then one linear programme for each class that is left, here in",
        f"HiGHS at its default settings. It would take {sample['seconds']:.0f} s for PP-OCRv4 on one core.",
        f"The whole command, from Python's start to its end, takes {seconds:.1f} s on two cores:",
        f"{head['times_faster']:.0f} times faster. Both were measured in the same run. The paper's time is",
        f"extrapolated from {sample['hard_sample']} hard and {sample['easy_sample']} easy classes.",
        "Numbers, commit and machine: [benchmarks/results](../benchmarks/results).",
    )


def costs() -> str:
    heads, real = result("whole_command")["heads"], result("real_heads")["heads"]
    first, second = "ppocrv4_rec_ch", "ppocrv3_rec_ch"
    sample = heads[first]["paper"]
    whole = paragraph(
        "* `whole_command.py`: `argmaxable verify HEAD.npz --no-db --json` from Python's start to its end,",
        "against the 2022 algorithm as written (HiGHS at its default settings, one core, extrapolated from",
        f"{sample['hard_sample']} hard and {sample['easy_sample']} easy classes, same run):",
        f"{heads[first]['times_faster']:.0f} times faster on PP-OCRv4 ({size(real[first])}) and",
        f"{heads[second]['times_faster']:.0f} times on PP-OCRv3 ({size(real[second])}), every answer",
        "checked. With `--against`, against another checkout.",
        indent="  ",
    )
    product = paragraph(
        "* `real_heads.py`: seconds, solves, steps and rows, peak memory, and the ratio to one float32",
        f"product W Wᵀ. A language model's vocabulary ({size(real['minilm'])}, no bias) takes",
        f"{real['minilm']['times_the_product']:.1f} times that product.",
        indent="  ",
    )
    return f"{whole}\n{product}"


def fit() -> str:
    found = result("growth")["fit"]
    both = f"both together {found['search_over_product']} times the bare float32 product (median)"
    rows = [
        ("a0", f"{_power(found['a0'])} s", "per pair of classes"),
        ("a1", f"{_power(found['a1'])} s", f"per pair and feature; {both}"),
        ("b1", f"{_power(found['b1'])} s", "per hard class and feature"),
        ("b3", f"{_power(found['b3'])} s", "per hard class and feature cubed"),
        ("c0", f"{found['c0'] / 1e6:.0f} MB", "two processes and their libraries"),
        ("c1", f"{found['c1']:.1f} bytes", "per class and feature"),
        ("c2", f"{found['c2']:.0f} bytes", "per feature squared: a solve's matrices"),
    ]
    return table(" | value | ", iter(rows))


def _power(value: float) -> str:
    """1.6e-10: two digits, no zeros in the exponent."""
    return re.sub(r"e-0*", "e-", f"{value:.1e}")


def foretold() -> str:
    growth, large = result("growth"), result("large_head")
    found, gemma = growth["fit"], result("language_models")["models"]["gemma3-270m"]
    exact = paragraph(
        f"The fit is off by a factor of {found['median_factor_off']} in the median and",
        f"{found['largest_factor_off']} at most for time, {found['largest_factor_off_in_bytes']} at most for",
        "memory. Beyond the sizes it was fitted to, it predicts:",
    )
    rows = table(
        "head | hard | search | each hard class | total | memory", map(_foretold_row, growth["foretold"])
    )
    high = paragraph(
        "It overestimates large heads, because small heads with their fixed costs have the same",
        f"weight in the fit: Gemma's {size(gemma)} took {gemma['seconds']['total']:.0f} s and",
        f"{gemma['peak_gb']} GB, and the ordinary classes of {size(large)} extrapolate to",
        f"{duration(large['extrapolated_seconds']['search'])} in {large['peak_gb']} GB (both below).",
    )
    return f"{exact}\n\n{rows}\n\n{high}"


def _foretold_row(head: dict[str, Any]) -> tuple[str, ...]:
    spent = (head["search_seconds"], head["seconds_for_each_hard_class"], head["seconds"])
    return (size(head), f"{head['hard']:,}", *map(duration, spent), f"{head['gigabytes']:.3g} GB")


def large_heads() -> str:
    language, large = result("language_models"), result("large_head")
    header = (
        "head | classes × features | unargmaxable | seconds: loading, verifying, bundle | over the product "
    )
    rows = [
        *_language_rows(language["models"], language["memory_limit"]),
        (
            "synthetic, bfloat16, 1 % planted",
            size(large),
            f"{large['planted_proven']} of {large['planted_in_sample']} planted in the sample",
            f"{large['seconds']['sample']} for {large['sample']:,} ordinary classes",
            f"{large['sample_over_product']}",
            f"{large['classes_per_second']}",
            f"{large['peak_gb']} GB (limit {large['memory_limit'].removesuffix('GB')})",
        ),
    ]
    minutes = {part: f"{seconds / 60:.0f}" for part, seconds in large["extrapolated_seconds"].items()}
    found = "all" if large["argmaxable"] == large["sample"] else f"{large['argmaxable']:,}"
    sample = paragraph(
        f"The last one is a sample: {large['sample']:,} ordinary classes, {found} found argmaxable, and",
        f"{large['planted_in_sample']} planted ones ({large['seconds_per_planted']} s each). Extrapolated",
        f"to all classes that is {minutes['search']} minutes for the ordinary ones and",
        f"{minutes['planted']} for the {large['classes'] // 100:,} planted.",
    )
    return f"{table(f'{header}| classes/s | peak memory', iter(rows))}\n\n{sample}"


def _language_rows(models: dict[str, Any], limit: str) -> Iterator[tuple[str, ...]]:
    small, gemma = models["smollm2"], models["gemma3-270m"]
    checked = f" ({small['total_and_recheck_over_product']} with `check` of every verdict)"
    for name, model, never, over, memory in (
        ("SmolLM2-135M, GGUF", small, f"{small['unargmaxable']}, all of them identical rows", checked, ""),
        (
            "Gemma 3 270M, GGUF",
            gemma,
            gemma["unargmaxable"] or "none",
            "",
            f" (limit {limit.removesuffix('GB')})",
        ),
    ):
        yield (
            name,
            size(model),
            str(never),
            f"{model['seconds']['total']:.1f}",
            f"{model['total_over_product']}{over}",
            f"{model['classes_per_second']:,}",
            f"{model['peak_gb']} GB{memory}",
        )


def hard_classes() -> str:
    header = "features | planted | right: inside / outside | seconds a class: inside / outside "
    measured = [result(f"hard_classes_{features}") for features in (512, 1024)]
    rows = (_hard_row(row, whole["programme_limit"]) for whole in measured for row in whole["rows"])
    return table(
        f"{header}| wall, two processes | Newton steps | HiGHS, seconds | times faster, at least", rows
    )


def _hard_row(row: dict[str, Any], limit: float) -> tuple[str, ...]:
    seconds = row["programme_seconds"]
    return (
        f"{row['features']:,}",
        f"{100 * row['planted_share']:g} %",
        f"{row['inside_proven']} / {row['outside_won']} of {row['verified'] // 2} each",
        f"{row['inside_seconds_each']} / {row['outside_seconds_each']}",
        str(row["wall_seconds_each"]),
        str(row["mean_steps"]),
        f"more than {limit:.0f}" if seconds >= limit else f"{seconds:.0f}",
        str(row["times_faster_at_least"]),
    )


def ray() -> str:
    measured = result("engines")
    starts = sorted(row["ray"]["start_seconds"] for row in measured["rows"])
    return paragraph(
        f"With two workers on one machine a run over PP-OCRv5 takes {measured['median']:.2f} times as long",
        f"as with the process pool, Ray's start-up ({starts[0]:.0f} to {starts[-1]:.0f} s) not counted",
        "([engines](../benchmarks/results/engines.json)).",
    )


def ten_thousand() -> str:
    found = result("growth")["fit"]
    times = [[_seconds(found, *layer) for layer in layers] for _, layers, _, _ in _MIX]
    totals = [100 * share * sum(each) / len(each) for (share, *_), each in zip(_MIX, times, strict=True)]
    rows = [("40 %", "up to 1,000 classes", "classifiers", "below 1")]
    for (share, _, layer, example), each in zip(_MIX, times, strict=True):
        seconds = dict.fromkeys(_two_digits(one) for one in sorted(each))
        rows.append((f"{share} %", layer, example, " – ".join(seconds)))
    hours, largest = sum(totals) / 3600, 100 * sum(totals[2:]) / sum(totals)
    sums = paragraph(
        f"That is about {sum(totals) / 1e6:.1f} million seconds, {hours:.0f} hours of a machine with 2",
        f"cores, {largest:.0f} % of them for the largest tenth of the models:",
    )
    days = table("machines with 2 cores | days", ((str(n), f"{hours / 24 / n:.2g}") for n in (1, 10, 100)))
    return (
        f"{table('share | output layer | example | seconds each, 2 cores', iter(rows))}\n\n{sums}\n\n{days}"
    )


def _seconds(found: dict[str, float], classes: int, features: int) -> float:
    hard = classes * (1e-4 if classes > 100_000 else 1e-3)
    search = classes**2 * (found["a0"] + found["a1"] * features)
    return search + hard * (found["b1"] * features + found["b3"] * features**3)


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"
