"""Prove for every class of a classifier's output layer that it can be the argmax, or never can."""

from argmaxable.bundle import Bundle, read_bundle, write_bundle
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
    StoreError,
)
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
    "Box",
    "Bundle",
    "BundleError",
    "Certificate",
    "Checker",
    "Cost",
    "Domain",
    "DomainError",
    "Everywhere",
    "EvidenceError",
    "Head",
    "HeadError",
    "InputError",
    "LayerNorm",
    "LoadError",
    "Method",
    "OwnDirection",
    "Point",
    "Progress",
    "RMSNorm",
    "Recheck",
    "Result",
    "Status",
    "StoreError",
    "Strength",
    "Verdict",
    "__version__",
    "find_head",
    "load_head",
    "parse_domain",
    "read_bundle",
    "recheck",
    "verify",
    "write_bundle",
]
