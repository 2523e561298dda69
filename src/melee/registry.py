"""Registries: explorers and learners by name, this package's and those of others.

Another package brings one by an entry point, named as in SPEC strings:

    [project.entry-points."melee.explorers"]
    boltzmann-decay = "melee_boltzmann_decay:BoltzmannDecay"

Entry points are looked for only when a name is not known, or when all are listed. One that cannot
be used is named with its package and the reason, and never keeps the others from being used.
"""

import dataclasses
import re
import warnings
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from melee.errors import InputError, MeleeWarning, shown, unknown
from melee.settings import Configured

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T", bound=Configured)

OURS = "melee"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Listed(NamedTuple):
    """A class, and the package that brings it."""

    kind: type[Any]
    package: str


class Registry(Generic[T]):
    """What there is of a sort, by name.

    Parameters
    ----------
    word
        What one of them is called, such as `explorer`; then entry points are of the group
        `melee.explorers`.
    base
        The class that all derive from.
    own
        Those of this package.
    """

    def __init__(self, word: str, base: type[T], own: list[type[T]]) -> None:
        self.word, self.base = word, base
        self.own = {kind.name: kind for kind in own}
        self._added: dict[str, type[T]] = {}
        self._found: dict[str, Listed] = {}

    def add(self, kind: type[T]) -> None:
        """Make a class known in this process; one that is defined again replaces the former."""
        self._check(kind, f"{self.word} {shown(kind)}")
        before = self._added.get(kind.name)
        if before is not None and _place(before) != _place(kind):
            raise InputError(
                f"{self.word} '{kind.name}' is registered already, by {'.'.join(_place(before))}; "
                "give one of them another name"
            )
        self._added[kind.name] = kind

    def find(self, name: str) -> type[T]:
        """The class of that name."""
        for known in (self.own, self._added):
            if name in known:
                return known[name]
        if name not in self._found:
            entries = [entry for entry in self._entries() if entry.name == name]
            if not entries:
                raise unknown(self.word, name, self.names())
            self._found[name] = self._loaded(entries)
        return self._found[name].kind

    def names(self) -> list[str]:
        """All names that `find` may know, without importing anything."""
        return list(dict.fromkeys([*self.own, *self._added, *(e.name for e in self._entries())]))

    def listed(self) -> dict[str, Listed]:
        """Everything that can be used; a warning for each entry point that cannot."""
        everything = {name: Listed(kind, OURS) for name, kind in self.own.items()}
        for name, kind in self._added.items():
            everything[name] = Listed(kind, _place(kind)[0].partition(".")[0])
        entries = self._entries()
        for name in dict.fromkeys(entry.name for entry in entries):
            try:
                found = self._loaded([entry for entry in entries if entry.name == name])
            except InputError as error:
                warnings.warn(str(error), MeleeWarning, stacklevel=2)
            else:
                everything.setdefault(name, found)
        return everything

    def _entries(self) -> "list[EntryPoint]":
        from importlib.metadata import entry_points  # which most processes never need

        return sorted(
            set(entry_points(group=f"melee.{self.word}s")), key=lambda e: (e.name, e.value)
        )

    def _loaded(self, entries: "list[EntryPoint]") -> Listed:
        """What the entry points of one name bring, or the reason why it cannot be used."""
        entry = entries[0]
        where = f"{self.word} '{entry.name}' of package {_package(entry)}"
        if len(entries) > 1:
            others = ", ".join(_package(other) for other in entries[1:])
            raise InputError(f"{where}: {others} has one of that name too; uninstall all but one")
        try:
            kind = entry.load()
        except Exception as error:
            raise InputError(
                f"{where}: {entry.value} cannot be imported ({type(error).__name__}: {error}); "
                "repair the package, or uninstall it"
            ) from error
        self._check(kind, where)
        if kind.name != entry.name:
            raise InputError(
                f"{where}: it calls itself '{kind.name}'; its entry point must have that name"
            )
        return Listed(kind, _package(entry))

    def _check(self, kind: Any, where: str) -> None:
        """Refuse what could not be used by its name."""
        base = f"{self.base.__module__}.{self.base.__name__}"
        if not isinstance(kind, type) or not issubclass(kind, self.base):
            raise InputError(f"{where}: {shown(kind)} is not a class derived from {base}")
        name = getattr(kind, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"{where}: its name is {shown(name)}; expected letters, digits, '-', '_' or '.'"
            )
        if name in self.own:
            raise InputError(f"{where}: '{name}' is one of melee's own; give it another name")
        if "__dataclass_fields__" not in vars(kind):
            raise InputError(f"{where}: decorate it with @dataclass(frozen=True, kw_only=True)")
        for field in dataclasses.fields(kind):
            if not {"check", "parse"} <= field.metadata.keys():
                raise InputError(
                    f"{where}: its setting {field.name} is not declared by number, count, flag, "
                    "text or choice of melee.settings, and so cannot be checked"
                )


def _place(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _package(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
