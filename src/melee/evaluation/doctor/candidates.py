"""Checks of actions that have features: whether a log says what could be chosen, and by what."""

from collections.abc import Iterator, Mapping

from melee.contexts import Context
from melee.evaluation.doctor.examined import Examined
from melee.evaluation.doctor.findings import Symptom, listed
from melee.labels import Label


def faults(log: Examined) -> Iterator[Symptom]:
    """What is wrong with the features of candidates."""
    lacking, first, kinds = 0, -1, set()
    values: dict[object, set[object]] = {}
    types: dict[object, list[int]] = {}  # of every name, how many are numbers, and how many texts
    differ = False
    for i, round_ in enumerate(log.rounds):
        features: Mapping[Label, Context] = round_.features or {}
        eligible = features if round_.pmf is None else round_.pmf
        if round_.action not in features or not eligible.keys() <= features.keys():
            lacking += 1
            first = i if first < 0 else first
        alike = set()
        for each in features.values():
            kinds.add(0 if isinstance(each, dict) else len(each))
            named = each if isinstance(each, dict) else dict(enumerate(each.tolist()))
            for name, value in named.items():
                known = values.setdefault(name, set())
                if len(known) < 2:
                    known.add(value)
                if value is not None:
                    types.setdefault(name, [0, 0])[not isinstance(value, float)] += 1
            alike.add(repr(each) if isinstance(each, dict) else each.tobytes())
        differ = differ or len(alike) > 1
    if lacking:
        yield Symptom(
            "warning",
            f"{lacking:,} of {log.n:,} rounds lack the features of some that could be chosen, "
            f"round {first} the first",
            "log the features of all that were eligible, as Agent(log=...) does; without them no "
            "agent can say what it would have done there",
        )
    if len(kinds) > 1:
        names = ["dicts" if n == 0 else f"{n} numbers" for n in sorted(kinds)]
        yield Symptom(
            "error",
            f"features of candidates are of several kinds: {' and '.join(names)}",
            "describe all candidates of a log alike; an agent refuses others",
        )
    mixed = [f"{name} ({n:,} numbers, {m:,} texts)" for name, (n, m) in types.items() if n and m]
    if mixed:
        yield Symptom(
            "warning",
            f"both numbers and texts in features of candidates: {listed(mixed)}",
            "log one type per name; a number that arrives as a text is taken for a category",
        )
    if len(kinds) <= 1 and not differ:
        yield Symptom(
            "warning",
            "in no round do candidates differ in their features",
            "log what tells candidates apart, or name the actions when you make the agent",
        )
    elif len(kinds) <= 1:
        constant = [str(name) for name, known in values.items() if len(known) < 2]
        if constant:
            yield Symptom(
                "warning",
                f"features that are the same wherever they are: {listed(constant)}",
                "leave them out, or log what varies",
            )
