"""SPECs as a benchmark takes them: many on a line, presets, ours and VowpalWabbit's."""

import re

from melee.benchmark.vw import ADF, NAME, Vw, grid, read_options
from melee.errors import InputError
from melee.explorers import Explorer, parse

PRESETS = {f"{NAME}:grid": grid}
"""Words that stand for many SPECs."""

_BEFORE_QUOTE = re.compile(r"(^|[,:=\s])$")


def separate(text: str) -> list[str]:
    """The SPECs on a line, which commas separate; not those within quotes, which are taken away.

    A quote begins a SPEC, or stands after a colon, an equals sign or a blank; elsewhere it is a
    letter, as in the name of a directory. A shell takes quotes away too, so a line of which some
    are to be left has others around it: `--explorers 'melee,vw:"--interactions ab,cd"'`.

    >>> separate("melee, vw:--cb_explore_adf --regcb, linucb:alpha=0.2")
    ['melee', 'vw:--cb_explore_adf --regcb', 'linucb:alpha=0.2']
    >>> separate('melee,vw:"--interactions ab,cd -q ::"')
    ['melee', 'vw:--interactions ab,cd -q ::']
    """
    specs, quote = [""], ""
    for i, letter in enumerate(text):
        if letter == quote:
            quote = ""
        elif not quote and letter in "'\"" and _BEFORE_QUOTE.search(text[:i]):
            quote = letter
        elif letter == "," and not quote:
            specs.append("")
        else:
            specs[-1] += letter
    if quote:
        raise InputError(
            f"explorers are {text!r}, in which a quote ({quote}) is not closed; close it, and put "
            "quotes of the other kind around the whole, for the shell takes one pair away"
        )
    return [spec.strip() for spec in specs if spec.strip()]


def is_preset(spec: str) -> bool:
    """Whether a SPEC stands for many."""
    return "".join(spec.split()) in PRESETS


def expand(specs: list[str]) -> list[str]:
    """The SPECs with each preset replaced by what it stands for.

    >>> len(expand(["linucb", "vw:grid"]))
    223
    """
    found: list[str] = []
    for spec in specs:
        found += PRESETS["".join(spec.split())]() if is_preset(spec) else [spec]
    return found


def read(spec: str) -> Explorer:
    """The explorer of a benchmark that a SPEC describes: one of ours, or VowpalWabbit.

    >>> read("linucb:alpha=0.2").short_spec
    'linucb:alpha=0.2'
    >>> read("vw:--squarecb").spec
    'vw:--cb_explore_adf --squarecb'
    """
    name, _, options = spec.partition(":")
    if name.strip() == NAME:
        return read_options(spec, options)
    if spec.startswith("-"):
        raise InputError(
            f"explorer '{spec}' begins like an option: commas separate explorers, so options of "
            "VowpalWabbit that hold one need quotes that the shell leaves, as in "
            "'melee,vw:\"--interactions ab,cd\"'"
        )
    return parse(spec)


def listed(explorer: Explorer) -> str:
    """The SPEC by which tables list an explorer: without what is a default, or common to all.

    >>> listed(read("vw:--cb_explore_adf --squarecb"))
    'vw:--squarecb'
    """
    if not isinstance(explorer, Vw):
        return explorer.short_spec
    return f"{NAME}:{explorer.options.removeprefix(ADF).strip()}".rstrip(":")
