"""A canonical description: a small tree with a digest, which reads as text and compares part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from blake3 import blake3

__all__ = ["Change", "Description", "differences"]

#: Longest text of one part, in characters; what is longer is cut and carries a digest of the whole.
_LONGEST = 160

_BRACKETS = {
    "list": ("[", "]"),
    "tuple": ("(", ")"),
    "set": ("{", "}"),
    "frozenset": ("frozenset({", "})"),
    "dict": ("{", "}"),
}


@dataclass(frozen=True, slots=True)
class Description:
    """What a value is, as a tree.

    Args:
        kind: the sort of value ("int", "list", "object", "function", ...).
        own: everything that this node says apart from its children; exact.
        children: (step, description) pairs in canonical order. A step reads as a piece of a path: `.name`,
        `[0]`,
            `['key']`, or a word in round brackets for what is not reached by an expression, such as `(code)`.
        shown: how a reader sees `own`, where the exact form is long or dull.
    """

    kind: str
    own: str = ""
    children: tuple[tuple[str, Description], ...] = ()
    shown: str = ""
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Compute the digest from those of the children."""
        pieces = [_framed(self.kind), _framed(self.own)]
        for step, child in self.children:
            pieces.append(_framed(step))
            pieces.append(bytes.fromhex(child.digest))
        object.__setattr__(self, "digest", blake3(b"".join(pieces)).hexdigest())

    @property
    def text(self) -> str:
        """The value in one line of at most 160 characters, as `MemoryPlanningPass(alignment=16)`."""
        text = "".join(_render(self, [_LONGEST]))
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    @property
    def head(self) -> str:
        """This node without its children, in a text that differs whenever kind or own content differ."""
        text = self.shown or (self.own if not self.children else f"{self.kind} {self.own}".rstrip())
        if self.shown or len(text) > _LONGEST:
            exact = blake3(_framed(self.kind) + _framed(self.own)).hexdigest()[:12]
            text = f"{text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''} #{exact}"
        return text

    def parts(self, name: str = "", depth: int | None = None) -> dict[str, str]:
        """Every part by its path, for comparison with the parts of an earlier description.

        Args:
            name: what the whole is called; paths begin with it.
            depth: how many levels to open; what lies deeper stands as one part with its digest. None opens
            all.
        """
        found: dict[str, str] = {}
        _collect(self, name, depth, found)
        return found

    def walk(self) -> Iterator[Description]:
        """This node and all below it, parents first."""
        yield self
        for _, child in self.children:
            yield from child.walk()


def _framed(text: str) -> bytes:
    """Length before content, so that no two different sequences of texts give the same bytes."""
    raw = text.encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw


def _collect(node: Description, path: str, depth: int | None, found: dict[str, str]) -> None:
    key, n = path, 2
    while key in found:  # two keys of a dict can look alike, never silently drop one
        key, n = f"{path}~{n}", n + 1
    if node.children and depth == 0:
        found[key] = f"{node.text} #{node.digest[:12]}"
        return
    found[key] = node.head
    for step, child in node.children:
        below = f"{path}{step}" if path else step.removeprefix(".")
        _collect(child, below, None if depth is None else depth - 1, found)


def _render(node: Description, budget: list[int]) -> Iterator[str]:
    """Yield pieces of text; stop opening children once about `budget[0]` characters are out."""
    if not node.children or node.kind not in (*_BRACKETS, "object", "declared"):
        piece = node.shown or node.own or node.kind
        budget[0] -= min(len(piece), _LONGEST)
        yield piece[:_LONGEST]
        return
    opening, closing = _BRACKETS.get(node.kind, (f"{node.shown or node.own}(", ")"))
    budget[0] -= len(opening) + len(closing)
    yield opening
    visible = [(step, child) for step, child in node.children if not step.startswith("(")]
    for i, (step, child) in enumerate(visible):
        if budget[0] <= 0:
            yield ", …" if i else "…"
            break
        label = {"dict": f"{step[1:-1]}: "}.get(node.kind, f"{step[1:]}=" if step.startswith(".") else "")
        budget[0] -= len(label) + 2
        yield (", " if i else "") + label
        yield from _render(child, budget)
    if node.kind == "tuple" and len(visible) == 1:
        yield ","
    yield closing


@dataclass(frozen=True, slots=True)
class Change:
    """One part that is not as it was; `old` is None where it is new, `new` is None where it is gone."""

    path: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        """Tell the change in one line, as in "per_op_mode changed from False to True"."""
        where = self.path or "the value"
        if self.old is None:
            return f"{where} was added: {self.new}"
        if self.new is None:
            return f"{where} was removed; it was {self.old}"
        if where.endswith("(code)"):
            return f"{where.removesuffix('(code)').rstrip('.') or 'the function'} has other code"
        return f"{where} changed from {self.old} to {self.new}"


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[Change]:
    """Compare the parts of two descriptions.

    A part that became another sort of thing stands for all below it: a class that changed is one change, not
    one for each attribute.
    """
    changes: list[Change] = []
    replaced: list[str] = []
    for path in _merged(old, new):
        if any(_below(path, parent) for parent in replaced):
            continue
        before, after = old.get(path), new.get(path)
        if before != after and not _only_filled(before, after):
            changes.append(Change(path, before, after))
            replaced.append(path)
    return changes


#: How an empty container reads, and the head of one that is not empty.
_FILLED = {"[]": "list", "()": "tuple", "{}": "dict", "set()": "set", "frozenset()": "frozenset"}


def _only_filled(before: str | None, after: str | None) -> bool:
    """Whether a container was filled or emptied; its elements tell of it."""
    return _FILLED.get(before or "") == after is not None or _FILLED.get(after or "") == before is not None


def _merged(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """All paths, those of `new` in their order, then those that are gone; parents come before their parts."""
    return list(dict.fromkeys([*new, *old]))


def _below(path: str, parent: str) -> bool:
    if parent == "":
        return True
    return path.startswith(parent) and path[len(parent) : len(parent) + 1] in (".", "[", "(", "{")
