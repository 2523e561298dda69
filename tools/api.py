"""The public interface as one text: names, signatures, settings, commands, file formats.

    python -m tools.api

writes it to tests/tools/api.txt, with which a test compares the code. Whoever changes what others
call writes a line into CHANGELOG.md first: without one, the text is not written again.

What is public is what docs/api.md describes, which has every name of `melee.__all__`, and what the
pages on the service and on journals use (`ELSEWHERE`). Types are left out: they read differently
from one Python to the next.
"""

import dataclasses
import hashlib
import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.commands import commands

ROOT = Path(__file__).parent.parent
SNAPSHOT = ROOT / "tests" / "tools" / "api.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
ELSEWHERE = {
    "melee.client.Client": True,
    "melee.client.AsyncClient": True,
    "melee.journal.Journal": False,
}
"""Classes that other pages describe, and whether their methods are for everybody, too."""
_SEEN = re.compile(r"^# Changelog, as it was then: (\w+)$", re.MULTILINE)


def interface() -> list[str]:
    """The public interface, a line for each thing that others may rely on."""
    import melee

    named = re.findall(
        r"^### `(melee\.[\w.]+)`$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE
    )
    lines = [f"name melee.{name}" for name in melee.__all__]
    lines += [line for name in named for line in _described(name, find(name))]
    for name, with_methods in ELSEWHERE.items():
        lines += [line for line in _described(name, find(name)) if line.startswith("call ")]
        for method in _methods(find(name)) if with_methods else ():
            lines += _described(f"{name}.{method}", find(f"{name}.{method}"))
    return sorted({*lines, *_settings(), *_commands(), *_formats()})


def find(dotted: str) -> Any:
    """What a dotted name leads to."""
    found: Any = importlib.import_module("melee")
    for part in dotted.split(".")[1:]:
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def _described(name: str, found: Any) -> Iterator[str]:
    if inspect.isclass(found):
        if issubclass(found, BaseException):
            yield f"error {name} is {', '.join(base.__name__ for base in found.__bases__)}"
            return
        for attribute in sorted(_attributes(found)):
            yield f"attribute {name}.{attribute}"
    if not callable(found):
        yield f"value {name}"
        return
    for form in typing.get_overloads(found) or [found]:
        signature = inspect.signature(form)
        given = [
            parameter.replace(annotation=inspect.Parameter.empty)
            for key, parameter in signature.parameters.items()
            if key not in ("self", "cls")
        ]
        plain = signature.replace(parameters=given, return_annotation=inspect.Signature.empty)
        yield f"call {name}{plain}"


def _methods(kind: type) -> list[str]:
    """Public methods."""
    members = vars(kind).items()
    return [name for name, found in members if inspect.isfunction(found) and name[0] != "_"]


def _attributes(kind: type) -> set[str]:
    """Fields and properties, inherited ones too."""
    found = {*getattr(kind, "_fields", ()), *getattr(kind, "__dataclass_fields__", ())}
    for base in kind.__mro__:
        found |= {
            n for n, member in vars(base).items() if isinstance(member, property | cached_property)
        }
    return {name for name in found if not name.startswith("_")}


def _settings() -> Iterator[str]:
    """Explorers and learners, with the keys of their SPECs and what these are by default."""
    from melee.explorers import EXPLORERS
    from melee.learners.registry import REGISTRY

    for word, kinds in (("explorer", EXPLORERS), ("learner", REGISTRY.own)):
        for name, kind in kinds.items():
            yield f"{word} {name}"
            for field in dataclasses.fields(kind):
                yield f"{word} {name}:{field.name}={field.default}"


def _commands() -> Iterator[str]:
    for command in commands():
        yield f"command {command.name}"
        for parameter in command.parameters:
            default = (
                " (required)"
                if parameter.required
                else f" = {parameter.default}"
                if parameter.default
                else ""
            )
            yield f"command {command.name} {', '.join(parameter.names)}{default}"


def _formats() -> Iterator[str]:
    """Versions of file formats: every module that has one calls it FORMAT_VERSION."""
    for path in sorted((ROOT / "src" / "melee").rglob("*.py")):
        if re.search(r"^(?:\w+, )*FORMAT_VERSION\b.* =", path.read_text(), re.MULTILINE):
            module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
            version = importlib.import_module(module).FORMAT_VERSION
            yield f"format of {module} is {version}"


def newest_changes(changelog: str) -> str:
    """A short hash of the newest section of the changelog."""
    section = re.split(r"^## ", changelog, flags=re.MULTILINE)[1]
    return hashlib.sha256(section.encode()).hexdigest()[:16]


def differences(before: str, now: list[str]) -> list[str]:
    """What went (-) and what came (+) since a snapshot was written."""
    old = {line for line in before.splitlines() if line and not line.startswith("#")}
    gone, came = sorted(old - set(now)), sorted(set(now) - old)
    return [f"- {line}" for line in gone] + [f"+ {line}" for line in came]


def renewed(before: str, now: list[str], changelog: str) -> str:
    """The text of the snapshot now; refused if the interface changed and the changelog did not."""
    changes, seen = differences(before, now), _SEEN.search(before)
    newest = newest_changes(changelog)
    if changes and seen and seen[1] == newest:
        shown = "\n".join(changes)
        raise SystemExit(
            f"the public interface changed, and the newest section of {CHANGELOG.name} did not:\n"
            f"{shown}\nwrite a line about it for those who call it, then run this again"
        )
    if not changes and seen:
        return before
    head = (
        "# The public interface; a test compares it with the code. To change it, write a line\n"
        "# into CHANGELOG.md, then run `python -m tools.api`.\n"
        f"# Changelog, as it was then: {newest}\n\n"
    )
    return head + "\n".join(now) + "\n"


def main() -> None:
    """Write the snapshot again."""
    before = SNAPSHOT.read_text() if SNAPSHOT.exists() else ""
    now = interface()
    SNAPSHOT.write_text(renewed(before, now, CHANGELOG.read_text()))
    changes = differences(before, now)
    print("\n".join(changes) if before and changes else f"{len(now)} lines; {SNAPSHOT.name}")


if __name__ == "__main__":
    main()
