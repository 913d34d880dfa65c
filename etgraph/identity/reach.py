"""Which methods can be called at all: what nobody can reach need not be followed.

A class often has a method that reads a file or imports something (`from_pretrained`, `__init__`) and that
plays no part once the object exists. Such a method enters with its own code only, and the reason why it could
not be followed is kept. If any followed code turns out to name the method, the reason is raised after all.
"""

from __future__ import annotations

from etgraph.errors import Undescribable

__all__ = ["Reach"]


class Reach:
    """Names that followed code uses, and the methods that were not followed."""

    def __init__(self) -> None:
        """Start with nothing reached."""
        self.names: dict[str, None] = {}
        #: classes that code can call, which runs their `__init__`
        self.called: dict[int, None] = {}
        self.unfollowed: list[tuple[str, tuple[int, ...], Undescribable]] = []
        #: set when code asks for attributes by names that are made at run time
        self.dynamic = False

    def mark(self) -> tuple[int, int, int, bool]:
        """Remember this moment for `rewind`."""
        return len(self.names), len(self.called), len(self.unfollowed), self.dynamic

    def rewind(self, mark: tuple[int, int, int, bool]) -> None:
        """Forget what was noted since `mark`."""
        for table, size in ((self.names, mark[0]), (self.called, mark[1])):
            for key in list(table)[size:]:
                del table[key]  # type: ignore[arg-type]
        del self.unfollowed[mark[2] :]
        self.dynamic = mark[3]

    def leave_out(self, method: str, classes: tuple[int, ...], why: Undescribable) -> None:
        """Note a method that could not be followed; `classes` are the ids of the classes that have it."""
        self.unfollowed.append((method, classes, why))

    def check(self) -> None:
        """Raise the kept reason if a method that was left out can be reached.

        Raises:
            Undescribable: of the first such method.
        """
        for method, classes, why in self.unfollowed:
            if method == "__init__":
                reached = "__class__" in self.names or any(c in self.called for c in classes)
            else:
                reached = self.dynamic or method in self.names
            if reached:
                raise why
