"""Prove for every class of a classifier's output layer that it can be the argmax, or never can."""

from argmaxable.best_rank.rank import BestRank, RankProof, TopK
from argmaxable.best_rank.top_k import best_ranks
from argmaxable.bundle import Bundle, read_bundle, write_bundle
from argmaxable.ceiling.compute import ceilings
from argmaxable.ceiling.nucleus import Entry, Membership, Nucleus, nucleus
from argmaxable.ceiling.record import Ceiling, Ceilings, Mixture
from argmaxable.check import Checker
from argmaxable.domain import Ball, Box, Domain, Everywhere, LayerNorm, RMSNorm, parse_domain
from argmaxable.errors import (
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
from argmaxable.explain.explain import explain
from argmaxable.explain.explanation import Explanation
from argmaxable.head import Head
from argmaxable.load import find_head, load_head
from argmaxable.recheck import Recheck, recheck
from argmaxable.result import Cost, Result
from argmaxable.run.progress import Progress
from argmaxable.run.session import Algorithm
from argmaxable.verdict import Certificate, Method, OwnDirection, Point, Status, Strength, Verdict
from argmaxable.verify import verify
from argmaxable.version import VERSION as __version__

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
