"""Prints the measurements of the house: how large it is, and how its rooms hang together.

    python scripts/house.py [ROOT]        ROOT: a checkout (default: this one)
    python scripts/house.py --floors      the floors as a picture, for docs/architecture.md

A room is a folder or a loose module directly below the package. Between rooms every import counts, also those
inside functions; an import chain is made of the imports that run when a module is loaded.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

LONG_FUNCTION = 60
# From the ground up: imports go down only, and rooms of one floor never meet.
FLOORS: tuple[dict[str, str], ...] = (
    {"exact": "arithmetic that may be trusted: dyadic numbers, bounds on rounding and on exponentials"},
    {"core": "the nouns: head, domains with their geometry, verdict and other claims, result, errors"},
    {
        "compute": "arithmetic that is fast: the prepared head, coordinates, backends, memory",
        "models": "files in and out: a folder per format; hub, packages, labels",
    },
    {
        "check": "what is trusted: one module per kind of evidence, no solver",
        "examples": "inputs as a model sees them: printed text and images, run up to the output layer",
    },
    {
        "proofs": "claims on disk: bundle, codecs, one re-check",
        "search": "may be clever, may be wrong: finds witnesses",
        "prove": "may be clever, may be wrong: finds certificates; one margin loop",
    },
    {"run": "plan, session, phases, engines"},
    {
        "questions": "what can be asked about a head",
        "store": "runs in a database",
    },
    {
        "edit": "repair, teach and prune",
        "doctor": "the check-up of a model",
        "theory": "the papers' theorems, computed",
        "layers": "the PyTorch side",
        "report": "words, tables, pages, figures",
    },
    {
        "workflow": "one model from its name to its answers; campaigns",
        "serve": "runs in the browser",
    },
    {"cli": "parse, call, print"},
)


def package_of(root: Path) -> Path:
    return root / "src" / "argmaxable"


class House:
    """The source of the package: every module's syntax tree, and who imports whom."""

    def __init__(self, root: Path) -> None:
        self.package = package_of(root)
        self.trees: dict[str, ast.Module] = {}
        self.lines = 0
        for path in sorted(self.package.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            self.lines += len(text.splitlines())
            self.trees[self._name(path)] = ast.parse(text)

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        return {name: self._imports(statements(tree)) - {name} for name, tree in self.trees.items()}

    @cached_property
    def loads(self) -> dict[str, set[str]]:
        return {name: self._imports(_on_load(tree)) - {name} for name, tree in self.trees.items()}

    def _name(self, path: Path) -> str:
        return ".".join(path.relative_to(self.package).with_suffix("").parts)

    def _imports(self, nodes: Iterable[ast.AST]) -> set[str]:
        """The package's modules that these statements import by name."""
        found: set[str | None] = set()
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= {self._module(f"{node.module}.{alias.name}") for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {self._module(alias.name) for alias in node.names}
        return {name for name in found if name is not None}

    def _module(self, dotted: str) -> str | None:
        """The module that a dotted name is, or is defined in; None for other packages' names."""
        first, *parts = dotted.split(".")
        while first == "argmaxable":
            for name in (".".join(parts), ".".join([*parts, "__init__"])):
                if name in self.trees:
                    return name
            parts = parts[:-1]
        return None

    @property
    def rooms(self) -> set[str]:
        return {room_of(name) for name in self.trees} - {"__init__"}

    @property
    def edges(self) -> set[tuple[str, str]]:
        """Pairs of rooms of which one imports the other."""
        pairs = {(room_of(one), room_of(other)) for one in self.trees for other in self.imports[one]}
        return {(one, other) for one, other in pairs if one != other and "__init__" not in (one, other)}

    @property
    def longest_chain(self) -> list[str]:
        """The longest line of modules each of which loads the next."""

        @cache
        def below(name: str) -> tuple[str, ...]:
            chains = [below(other) for other in sorted(self.loads[name])]
            return (name, *(max(chains, key=_length) if chains else ()))

        longest = max((below(name) for name in sorted(self.trees)), key=_length)
        return list(longest)

    @property
    def domain_classes(self) -> set[str]:
        """`Domain`, whatever is derived from it, and names that stand for several of these."""
        names = {"Domain"}
        nodes = [node for tree in self.trees.values() for node in tree.body]
        while True:
            found = {
                node.name
                for node in nodes
                if isinstance(node, ast.ClassDef) and any(_last_name(base) in names for base in node.bases)
            }
            if found <= names:
                break
            names |= found
        unions = {
            node.targets[0].id
            for node in nodes
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.BinOp)
            and _names(node.value) <= names
        }
        return names | unions

    @property
    def domain_tests(self) -> int:
        """How often the code asks what kind of domain it has."""
        domains = self.domain_classes
        return sum(
            isinstance(node, ast.Call)
            and _last_name(node.func) == "isinstance"
            and bool(_names(node.args[1]) & domains)
            for tree in self.trees.values()
            for node in ast.walk(tree)
        )

    @property
    def repeated_classes(self) -> dict[str, list[str]]:
        """Public class names that stand in several rooms or modules, and where."""
        places = defaultdict(list)
        for name, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(name)
        return {name: modules for name, modules in places.items() if len(modules) > 1}

    @property
    def functions(self) -> list[tuple[str, ast.FunctionDef]]:
        return [
            (f"{name}:{node.name}", node)
            for name, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        ]


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement of a module, at any depth; expressions hold none, and are nine tenths of a tree."""
    return _below(tree, lambda node: True)


def _on_load(tree: ast.Module) -> Iterator[ast.stmt]:
    """What runs when a module is loaded: everything but functions and what is for type checkers alone."""
    return _below(tree, _runs_on_load)


def _runs_on_load(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" not in _names(node.test)
    return not isinstance(node, ast.FunctionDef)


def _below(tree: ast.Module, is_entered: Callable[[ast.AST], bool]) -> Iterator[ast.stmt]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if is_entered(node):
            for blocks in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting += getattr(node, blocks, ())


def _length(chain: tuple[str, ...]) -> int:
    return len(chain)


def room_of(module: str) -> str:
    return module.split(".")[0]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _names(node: ast.expr) -> set[str]:
    return {_last_name(part) for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)}


def _parameters(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])


def report(house: House) -> list[tuple[str, str]]:
    """What is measured, and the measurements."""
    repeated = house.repeated_classes
    across = {name for name, modules in repeated.items() if len({room_of(one) for one in modules}) > 1}
    long = [name for name, node in house.functions if (node.end_lineno or 0) - node.lineno >= LONG_FUNCTION]
    # The parameters of a command are its options; those of everything else are a burden on the caller.
    widest, count = max(
        ((name, _parameters(node)) for name, node in house.functions if not name.startswith("cli.")),
        key=lambda pair: pair[1],
    )
    chain = house.longest_chain
    sizes = Counter(room_of(name) for name in house.trees if name != "__init__")
    return [
        ("rooms", f"{len(house.rooms)} ({', '.join(f'{room} {n}' for room, n in sorted(sizes.items()))})"),
        ("modules", f"{len(house.trees)}"),
        ("lines", f"{house.lines:,}"),
        ("edges between rooms", f"{len(house.edges)}"),
        ("longest import chain", f"{len(chain)} ({' > '.join(chain)})"),
        ("isinstance of a domain", f"{house.domain_tests}"),
        ("class names defined twice", f"{len(repeated)} ({', '.join(sorted(repeated)) or 'none'})"),
        ("of these in two rooms", f"{len(across)} ({', '.join(sorted(across)) or 'none'})"),
        (f"functions over {LONG_FUNCTION} lines", f"{len(long)} ({', '.join(long) or 'none'})"),
        ("longest parameter list", f"{count} ({widest})"),
    ]


def picture() -> str:
    """The floors, the highest first: what each room is for."""
    width = max(len(room) for floor in FLOORS for room in floor)
    lines = []
    for number, floor in reversed(list(enumerate(FLOORS))):
        for place, (room, purpose) in enumerate(floor.items()):
            lines.append(f"{number if not place else ' '}  {room:<{width}}  {purpose}")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:] == ["--floors"]:
        print(picture())
        return
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    for what, value in report(House(root)):
        print(f"{what}: {value}")


if __name__ == "__main__":
    main()
