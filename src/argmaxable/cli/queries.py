"""The options of `verify` about a search index or a recommender: which queries there are, and what the stored
numbers mean for the search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Option
from argmaxable.cli.remarks import Remarks
from argmaxable.core.errors import InputError
from argmaxable.core.queries import Queries, QuerySet
from argmaxable.models.item_vectors import L2_BIAS, bias_error
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.questions.retrieval import EqualLengths
    from argmaxable.workflow.verify_model import ModelVerdicts

# Files that hold vectors of items rather than an output layer.
_OF_ITEMS = ("npy", "faiss", "hnswlib", "word2vec", "parquet")


def _about_lengths(equal: EqualLengths, domain: Domain) -> str:
    """What equal lengths mean, which is more where queries may point anywhere."""
    said = f"All vectors have the same length up to a factor of 1 + {equal.spread:.1e}, as for cosine search."
    if domain.kind not in ("everywhere", "ball"):
        return said
    return (
        f"{said} With exactly equal lengths every item with a direction of its own is first for a query that "
        f"points its way; as stored, that is in doubt only for items within {equal.doubtful_degrees:.2g} "
        "degrees of another. The verdicts are about the stored numbers."
    )


@dataclass(frozen=True)
class QueryOptions(OptionGroup):
    """Queries that were observed."""

    queries: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Verify over these queries: a matrix with one per row (.npy), or the users of a "
            "recommender (.npz with user_factors).",
        ),
    ] = None
    queries_as: Annotated[
        QuerySet | None,
        Option(
            help="hull: all mixtures of the queries (default); box: each feature between its smallest and "
            "largest value; ball: vectors no longer than the longest query."
        ),
    ] = None

    def domain_or(self, text: str) -> str | Queries:
        """The domain that is asked about; raises InputError where two are."""
        if self.queries is None:
            if self.queries_as is not None:
                raise InputError("--queries-as needs --queries FILE.")
            return text
        if text != DEFAULT_DOMAIN_TEXT:
            raise InputError("--queries and --domain both say which inputs to consider. Leave one out.")
        return Queries(str(self.queries), self.queries_as or QuerySet.HULL)

    def remarks(self, done: ModelVerdicts) -> Remarks:
        """What is worth knowing about the vectors of items."""
        if self.queries is None and done.finding.format not in _OF_ITEMS:
            return Remarks((), {})
        # Late: few runs are about items.
        from argmaxable.questions.retrieval import equal_lengths, within_rounding

        head, bias = done.result.head, done.finding.bias
        record: dict[str, Any] = {}
        lines: list[str] = []
        equal = equal_lengths(head)
        if equal is not None:
            record["equal_lengths"] = {"spread": equal.spread, "doubtful_degrees": equal.doubtful_degrees}
            lines.append(_about_lengths(equal, done.result.domain))
        if bias is not None and bias.name == L2_BIAS:
            error = bias_error(head.biases(), head.features)
            doubtful = within_rounding(done.result, error)
            record["rounded_distances"] = {"error": error, "within_rounding": list(doubtful)}
            lines.append(
                "Nearest by distance is the argmax with the bias −½‖w‖², here rounded (by at most "
                f"{error:.1e}). "
                + (
                    f"{len(doubtful):,} verdicts have a margin within that and are about the rounded bias "
                    "only."
                    if doubtful
                    else "No verdict has a margin within that, so all hold for exact distances."
                )
            )
        return Remarks(tuple(lines), record)
