"""The options of `verify` about the user's own data: whether unargmaxable classes matter there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Option
from argmaxable.cli.remarks import Remarks
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.result import Result
from argmaxable.questions.impact.targets import DataFormat

if TYPE_CHECKING:
    from argmaxable.questions.impact.targets import Targets


@dataclass(frozen=True)
class DataOptions(OptionGroup):
    """What the model is used for."""

    data: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Count how often unargmaxable classes occur in this file: text, one label per "
            "line, texts with counts, or JSON Lines of targets.",
        ),
    ] = None
    data_format: Annotated[
        DataFormat | None, Option(help="Format of the --data file (default: guessed and reported).")
    ] = None
    tokenizer: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="tokenizer.json that splits the text of --data into classes; not needed if classes "
            "are characters.",
        ),
    ] = None
    features: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Show which classes win at these saved inputs of the head (.npy, one per row), and "
            "what wins where an unargmaxable class comes second.",
        ),
    ] = None

    def require_files(self) -> None:
        """Raise InputError before the work for what would only be noticed after it."""
        for name, value in (("--data-format", self.data_format), ("--tokenizer", self.tokenizer)):
            if value is not None and self.data is None:
                raise InputError(f"{name} needs --data FILE.")
        for option, path in (
            ("--data", self.data),
            ("--tokenizer", self.tokenizer),
            ("--features", self.features),
        ):
            if path is not None and not path.is_file():
                raise InputError(f"{option} {path}: no such file.")

    def remarks(self, result: Result, model: str) -> Remarks:
        """What the data say."""
        lines: list[str] = []
        record = {}
        targets = None
        # Late: few runs bring data.
        if self.data is not None:
            from argmaxable.questions.impact.occurrence import impact
            from argmaxable.questions.impact.wording import describe_impact, impact_record

            targets = self._targets(self.data, result.head, model)
            found = impact(result, targets)
            lines += describe_impact(found)
            record["data"] = impact_record(found)
        if self.features is not None:
            from argmaxable.questions.impact.wins import read_features, wins
            from argmaxable.questions.impact.wording import describe_wins, wins_record

            inputs = read_features(self.features, result.head)
            won = wins(result, inputs, order=_one_for_each(targets, len(inputs)))
            lines += describe_wins(won, result.head)
            record["features"] = wins_record(won, result.head)
        return Remarks(tuple(lines), record)

    def _targets(self, data: Path, head: Head, model: str) -> Targets:
        from argmaxable.questions.impact.targets import read_targets

        beside = Path(model) / "tokenizer.json"
        path = self.tokenizer or (beside if beside.is_file() else None)
        cutter = None
        if path is not None:
            from argmaxable.models.labels.tokenizer import read_tokenizer

            cutter = read_tokenizer(path, head.classes)
        return read_targets(data, head, form=self.data_format, cutter=cutter)


def _one_for_each(targets: Targets | None, inputs: int) -> tuple[int | None, ...] | None:
    """The targets of the inputs, if the file has as many."""
    order = None if targets is None else targets.order
    return order if order is not None and len(order) == inputs else None
