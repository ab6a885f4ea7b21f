"""Prove for every class of a classifier's output layer that it can be the argmax, or never can."""

from argmaxable.check.checker import Checker
from argmaxable.core.best_rank import BestRank, RankProof, TopK
from argmaxable.core.ceiling import Ceiling, Ceilings, Entry, Membership, Mixture, Nucleus
from argmaxable.core.claim import Recheck
from argmaxable.core.domain import Ball, Box, Domain, Everywhere, LayerNorm, RMSNorm, parse_domain
from argmaxable.core.errors import (
    ArgmaxableError,
    BundleError,
    DomainError,
    EvidenceError,
    HeadError,
    InputError,
    LoadError,
    NotFoundError,
    StoreError,
)
from argmaxable.core.head import Head
from argmaxable.core.progress import Progress
from argmaxable.core.result import Cost, Result
from argmaxable.core.verdict import (
    Algorithm,
    Certificate,
    Method,
    OwnDirection,
    Point,
    Status,
    Strength,
    Verdict,
)
from argmaxable.core.version import VERSION as __version__
from argmaxable.models import find_head, load_head
from argmaxable.proofs.bundle import read_bundle, write_bundle
from argmaxable.proofs.kind import Bundle
from argmaxable.proofs.recheck import recheck
from argmaxable.questions.argmax import verify
from argmaxable.questions.best_rank.top_k import best_ranks
from argmaxable.questions.ceiling.compute import ceilings
from argmaxable.questions.ceiling.nucleus import nucleus
from argmaxable.questions.explain.explain import explain
from argmaxable.questions.explain.explanation import Explanation

__all__ = [
    "Algorithm",
    "ArgmaxableError",
    "Ball",
    "BestRank",
    "Box",
    "Bundle",
    "BundleError",
    "Ceiling",
    "Ceilings",
    "Certificate",
    "Checker",
    "Cost",
    "Domain",
    "DomainError",
    "Entry",
    "Everywhere",
    "EvidenceError",
    "Explanation",
    "Head",
    "HeadError",
    "InputError",
    "LayerNorm",
    "LoadError",
    "Membership",
    "Method",
    "Mixture",
    "NotFoundError",
    "Nucleus",
    "OwnDirection",
    "Point",
    "Progress",
    "RMSNorm",
    "RankProof",
    "Recheck",
    "Result",
    "Status",
    "StoreError",
    "Strength",
    "TopK",
    "Verdict",
    "__version__",
    "best_ranks",
    "ceilings",
    "explain",
    "find_head",
    "load_head",
    "nucleus",
    "parse_domain",
    "read_bundle",
    "recheck",
    "verify",
    "write_bundle",
]
