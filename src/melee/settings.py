"""Settings of explorers and learners: how they are declared, checked and written as text."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from melee.errors import InputError, unknown, whole_number


@dataclass(frozen=True, kw_only=True)
class Configured:
    """Something with a name and settings, each of which is a field and a key of its SPEC string.

    Subclasses are frozen dataclasses whose fields are declared by `number`, `count`, `flag`, `text`
    or `choice`.
    """

    name: ClassVar[str]
    separator: ClassVar[str] = ":"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check = field.metadata.get("check")
            if check is not None:
                check(self.name, field.name, getattr(self, field.name))

    @property
    def spec(self) -> str:
        """The full SPEC string, every setting included, that makes this one again.

        >>> from melee.explorers import parse
        >>> parse("uniform").spec
        'uniform'
        """
        return self._written(dataclasses.fields(self))

    @property
    def short_spec(self) -> str:
        """The SPEC string with only those settings that differ from the defaults."""
        return self._written(f for f in dataclasses.fields(self) if self._given(f) != f.default)

    def _given(self, field: "dataclasses.Field[Any]") -> Any:
        return getattr(self, field.name)

    def _written(self, fields: "Iterable[dataclasses.Field[Any]]") -> str:
        keys = (f"{field.name}={_as_text(self._given(field))}" for field in fields)
        return self.separator.join([self.name, *keys])


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def read_settings(kind: type[Configured], texts: Iterable[str], whole: str) -> dict[str, Any]:
    """The settings of a kind from texts `key=value`; `whole` is what a refusal quotes."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for setting in texts:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not text:
            raise InputError(f"{whole}: '{setting}' is not of the form key=value")
        if key not in fields:
            raise unknown(f"parameter of {kind.name}", key, list(fields) or ["(none)"])
        if key in values:
            raise InputError(f"{whole}: {key} is given twice; give it once")
        field = fields[key]
        try:
            absent = field.default is None and text == "none"
            values[key] = None if absent else field.metadata["parse"](text)
        except (ValueError, KeyError):
            wanted = {"float": "a number", "int": "a whole number"}.get(
                field.metadata["parse"].__name__, "true or false"
            )
            raise InputError(f"{kind.name}: {key} is '{text}'; expected {wanted}") from None
    return values


def number(
    default: float | None, low: float, high: float = float("inf"), *, above: bool = False
) -> Any:
    """A dataclass field for a number from `low` to `high` (`above`: low itself excluded)."""
    expected = f"{'more than' if above else 'at least'} {low:g}"
    expected += "" if high == float("inf") else f" and at most {high:g}"

    def check(owner: str, key: str, value: object) -> None:
        if value is None and default is None:
            return
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not low <= value <= high
            or (above and value == low)
            or value == float("inf")
        ):
            raise InputError(f"{owner}: {key} is {value!r}; expected a number, {expected}")

    return dataclasses.field(default=default, metadata={"check": check, "parse": float})


def count(default: int | None, low: int, high: int = 2**62) -> Any:
    """A dataclass field for a whole number from `low` to `high`."""

    def check(owner: str, key: str, value: object) -> None:
        if value is None and default is None:
            return
        if whole_number(f"{owner}: {key}", value, low) > high:
            raise InputError(f"{owner}: {key} is {value!r}; expected at most {high}")

    return dataclasses.field(default=default, metadata={"check": check, "parse": int})


def flag(default: bool) -> Any:
    """A dataclass field for yes or no."""

    def check(owner: str, key: str, value: object) -> None:
        if not isinstance(value, bool):
            raise InputError(f"{owner}: {key} is {value!r}; expected true or false")

    return dataclasses.field(default=default, metadata={"check": check, "parse": _parse_flag})


def _parse_flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def text(default: str) -> Any:
    """A dataclass field for a text without a colon, which would end it in a SPEC string."""

    def check(owner: str, key: str, value: object) -> None:
        if not isinstance(value, str) or not value or ":" in value:
            raise InputError(f"{owner}: {key} is {value!r}; expected a text without a colon")

    return dataclasses.field(default=default, metadata={"check": check, "parse": str})


def choice(default: str, *options: str) -> Any:
    """A dataclass field for one of a few words."""

    def check(owner: str, key: str, value: object) -> None:
        if value not in options:
            raise unknown(f"{key} for {owner}", str(value), list(options))

    return dataclasses.field(default=default, metadata={"check": check, "parse": str})
