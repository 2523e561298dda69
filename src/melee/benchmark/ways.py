"""Ways to play: over prepared numbers, or as an agent that meets the table's own rows.

In plans, stores and reports an explorer stands under a label: its SPEC, and for an agent
`SPEC as agent`. So both ways can stand side by side in one benchmark, as two explorers would.
Tasks whose actions come and go, or whose rewards come late, are played by agents under every label.
"""

from melee.errors import unknown

WAYS = ("prepared", "agent", "both")

_SUFFIX = " as agent"


def labels(explorer: str, way: str) -> list[str]:
    """The labels of an explorer that is played in this way.

    >>> labels("linucb", "both")
    ['linucb', 'linucb as agent']
    """
    if way not in WAYS:
        raise unknown("way to play", way, list(WAYS))
    of_agent = [explorer + _SUFFIX] if way != "prepared" else []
    return [*([explorer] if way != "agent" else []), *of_agent]


def split(label: str) -> tuple[str, bool]:
    """The SPEC in a label, and whether an agent plays it.

    >>> split("linucb:alpha=0.1 as agent")
    ('linucb:alpha=0.1', True)
    """
    return label.removesuffix(_SUFFIX), label.endswith(_SUFFIX)


def by_agent(label: str) -> str:
    """The label of the same explorer as an agent.

    >>> by_agent("linucb"), by_agent("linucb as agent")
    ('linucb as agent', 'linucb as agent')
    """
    return split(label)[0] + _SUFFIX
