"""Prove for every class of a classifier's output layer that it can be the argmax, or never can.

Every public name loads when it is first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from argmaxable.core.version import VERSION as __version__

if TYPE_CHECKING:
    from argmaxable.check.checker import Bound, Checker
    from argmaxable.check.witnesses import Gaps
    from argmaxable.compute.budget import Compute
    from argmaxable.compute.compare import Best
    from argmaxable.compute.identical_rows import IdenticalRows
    from argmaxable.compute.prepared import PreparedHead, SeenRows
    from argmaxable.compute.rows import StreamedRows
    from argmaxable.core.balls import Ball, LayerNorm, NormSolid, RMSNorm
    from argmaxable.core.best_rank import BestRank, RankProof, TopK
    from argmaxable.core.boxes import Box, Everywhere
    from argmaxable.core.ceiling import Ceiling, CeilingClaim, Ceilings, Entry, Membership, Mixture, Nucleus
    from argmaxable.core.claim import Failure, Recheck
    from argmaxable.core.domain import Domain
    from argmaxable.core.domain_source import Basis, DomainSource
    from argmaxable.core.domains import parse_domain
    from argmaxable.core.errors import (
        AmbiguousError,
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
    from argmaxable.core.examples import Examples
    from argmaxable.core.feasibility import Feasibility
    from argmaxable.core.head import Facts, Head
    from argmaxable.core.hull import Hull
    from argmaxable.core.label_sets import LabelSets, SetClaim, SetKind, SetMethod, SetTest, logits_of
    from argmaxable.core.progress import Progress
    from argmaxable.core.rate import Rate
    from argmaxable.core.reach import Reach
    from argmaxable.core.result import Cost, Record, Result
    from argmaxable.core.select import Selection
    from argmaxable.core.stored_rows import StoredRows
    from argmaxable.core.verdict import (
        Algorithm,
        Certificate,
        FinePoint,
        Method,
        OwnDirection,
        Point,
        Status,
        Strength,
        Verdict,
    )
    from argmaxable.edit.prune import Pruned, prune
    from argmaxable.edit.repair.plan import Repair, repair
    from argmaxable.edit.teach.fit import RowFit
    from argmaxable.edit.teach.look_alikes import LookAlike
    from argmaxable.edit.teach.measure import HeldOut, LabelReading, Substituted
    from argmaxable.edit.teach.plan import Taught, TaughtClass, TeachingRules, teach
    from argmaxable.edit.teach.promise import ExampleWitness, LeftOut
    from argmaxable.exact.dyadic import Dyadic
    from argmaxable.models import ModelRef, find_head, load_head
    from argmaxable.models.finding import Finding, HeadInputs, Labels, Tap, TensorInfo
    from argmaxable.proofs.bundle import read_bundle, write_bundle
    from argmaxable.proofs.evidence import EvidenceReader, EvidenceWriter
    from argmaxable.proofs.kind import Bundle, ClaimFiles, ClaimKind
    from argmaxable.proofs.rationals import with_rational_weights
    from argmaxable.proofs.recheck import recheck
    from argmaxable.proofs.sets import write_sets
    from argmaxable.questions.best_rank.top_k import best_ranks
    from argmaxable.questions.ceiling.compute import ceilings
    from argmaxable.questions.ceiling.nucleus import nucleus
    from argmaxable.questions.explain.explain import explain
    from argmaxable.questions.explain.explanation import Competitor, Explanation, Share, Width
    from argmaxable.questions.explain.growth import Growth
    from argmaxable.questions.explain.margin import Margin
    from argmaxable.questions.observe.grades import Grade, Graded, Observation, observe
    from argmaxable.questions.sets.every import EverySet, EveryStatus, every_set
    from argmaxable.questions.sets.sets import sets
    from argmaxable.run.journal import Journal
    from argmaxable.run.plan import Engine
    from argmaxable.store import Store, open_store
    from argmaxable.workflow.verify_head import verify
    from argmaxable.workflow.verify_model import ModelVerdicts, verify_model

__all__ = [
    "Algorithm",
    "AmbiguousError",
    "ArgmaxableError",
    "Ball",
    "Basis",
    "Best",
    "BestRank",
    "Bound",
    "Box",
    "Bundle",
    "BundleError",
    "Ceiling",
    "CeilingClaim",
    "Ceilings",
    "Certificate",
    "Checker",
    "ClaimFiles",
    "ClaimKind",
    "Competitor",
    "Compute",
    "Cost",
    "Domain",
    "DomainError",
    "DomainSource",
    "Dyadic",
    "Engine",
    "Entry",
    "EverySet",
    "EveryStatus",
    "Everywhere",
    "EvidenceError",
    "EvidenceReader",
    "EvidenceWriter",
    "ExampleWitness",
    "Examples",
    "Explanation",
    "Facts",
    "Failure",
    "Feasibility",
    "Finding",
    "FinePoint",
    "Gaps",
    "Grade",
    "Graded",
    "Growth",
    "Head",
    "HeadError",
    "HeadInputs",
    "HeldOut",
    "Hull",
    "IdenticalRows",
    "InputError",
    "Journal",
    "LabelReading",
    "LabelSets",
    "Labels",
    "LayerNorm",
    "LeftOut",
    "LoadError",
    "LookAlike",
    "Margin",
    "Membership",
    "Method",
    "Mixture",
    "ModelRef",
    "ModelVerdicts",
    "NormSolid",
    "NotFoundError",
    "Nucleus",
    "Observation",
    "OwnDirection",
    "Point",
    "PreparedHead",
    "Progress",
    "Pruned",
    "RMSNorm",
    "RankProof",
    "Rate",
    "Reach",
    "Recheck",
    "Record",
    "Repair",
    "Result",
    "RowFit",
    "SeenRows",
    "Selection",
    "SetClaim",
    "SetKind",
    "SetMethod",
    "SetTest",
    "Share",
    "Status",
    "Store",
    "StoreError",
    "StoredRows",
    "StreamedRows",
    "Strength",
    "Substituted",
    "Tap",
    "Taught",
    "TaughtClass",
    "TeachingRules",
    "TensorInfo",
    "TopK",
    "Verdict",
    "Width",
    "__version__",
    "best_ranks",
    "ceilings",
    "every_set",
    "explain",
    "find_head",
    "load_head",
    "logits_of",
    "nucleus",
    "observe",
    "open_store",
    "parse_domain",
    "prune",
    "read_bundle",
    "recheck",
    "repair",
    "sets",
    "teach",
    "verify",
    "verify_model",
    "with_rational_weights",
    "write_bundle",
    "write_sets",
]

# Which module defines which names: the imports above, for those who run them.
_NAMES = {
    "check.checker": ("Bound", "Checker"),
    "check.witnesses": ("Gaps",),
    "compute.budget": ("Compute",),
    "compute.compare": ("Best",),
    "compute.identical_rows": ("IdenticalRows",),
    "compute.prepared": ("PreparedHead", "SeenRows"),
    "compute.rows": ("StreamedRows",),
    "core.balls": ("Ball", "LayerNorm", "NormSolid", "RMSNorm"),
    "core.best_rank": ("BestRank", "RankProof", "TopK"),
    "core.boxes": ("Box", "Everywhere"),
    "core.ceiling": ("Ceiling", "CeilingClaim", "Ceilings", "Entry", "Membership", "Mixture", "Nucleus"),
    "core.claim": ("Failure", "Recheck"),
    "core.domain": ("Domain",),
    "core.domain_source": ("Basis", "DomainSource"),
    "core.domains": ("parse_domain",),
    "core.errors": (
        "AmbiguousError",
        "ArgmaxableError",
        "BundleError",
        "DomainError",
        "EvidenceError",
        "HeadError",
        "InputError",
        "LoadError",
        "NotFoundError",
        "StoreError",
    ),
    "core.feasibility": ("Feasibility",),
    "core.examples": ("Examples",),
    "core.head": ("Facts", "Head"),
    "core.hull": ("Hull",),
    "core.label_sets": ("LabelSets", "SetClaim", "SetKind", "SetMethod", "SetTest", "logits_of"),
    "core.progress": ("Progress",),
    "core.reach": ("Reach",),
    "core.rate": ("Rate",),
    "core.result": ("Cost", "Record", "Result"),
    "core.select": ("Selection",),
    "core.stored_rows": ("StoredRows",),
    "core.verdict": (
        "Algorithm",
        "Certificate",
        "FinePoint",
        "Method",
        "OwnDirection",
        "Point",
        "Status",
        "Strength",
        "Verdict",
    ),
    "edit.prune": ("Pruned", "prune"),
    "edit.repair.plan": ("Repair", "repair"),
    "edit.teach.fit": ("RowFit",),
    "edit.teach.look_alikes": ("LookAlike",),
    "edit.teach.measure": ("HeldOut", "LabelReading", "Substituted"),
    "edit.teach.plan": ("Taught", "TaughtClass", "TeachingRules", "teach"),
    "edit.teach.promise": ("ExampleWitness", "LeftOut"),
    "exact.dyadic": ("Dyadic",),
    "models": ("ModelRef", "find_head", "load_head"),
    "models.finding": ("Finding", "HeadInputs", "Labels", "Tap", "TensorInfo"),
    "proofs.bundle": ("read_bundle", "write_bundle"),
    "proofs.evidence": ("EvidenceReader", "EvidenceWriter"),
    "proofs.kind": ("Bundle", "ClaimFiles", "ClaimKind"),
    "proofs.rationals": ("with_rational_weights",),
    "proofs.recheck": ("recheck",),
    "proofs.sets": ("write_sets",),
    "questions.best_rank.top_k": ("best_ranks",),
    "questions.ceiling.compute": ("ceilings",),
    "questions.ceiling.nucleus": ("nucleus",),
    "questions.explain.explain": ("explain",),
    "questions.explain.explanation": ("Competitor", "Explanation", "Share", "Width"),
    "questions.explain.growth": ("Growth",),
    "questions.explain.margin": ("Margin",),
    "questions.sets.every": ("EverySet", "EveryStatus", "every_set"),
    "questions.sets.sets": ("sets",),
    "questions.observe.grades": ("Grade", "Graded", "Observation", "observe"),
    "run.journal": ("Journal",),
    "run.plan": ("Engine",),
    "store": ("Store", "open_store"),
    "workflow.verify_head": ("verify",),
    "workflow.verify_model": ("ModelVerdicts", "verify_model"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker that saw this would believe in every name

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'argmaxable' has no attribute {name!r}")
        value = getattr(import_module(f"argmaxable.{_HOME[name]}"), name)
        globals()[name] = value  # from now on it is found without asking
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
