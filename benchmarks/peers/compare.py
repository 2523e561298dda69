"""The comparisons: what is set against what, and how many times faster it should be."""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers import ours, vw
from benchmarks.peers.ours import Timing
from benchmarks.peers.tasks import synthetic
from melee.loop import simulate
from melee.preparation import Prepared

N_FEATURES = 20
EPSILON_GREEDY = "epsilon-greedy:epsilon=0.05"


@dataclass(frozen=True)
class Driven:
    """An explorer of ours against options of VW's driver; `{k}` stands for the actions.

    `reduction` is what VW has to report as enabled. The first options carry the target; the
    others are variants, measured once for the record.
    """

    title: str
    spec: str
    reduction: str
    options: str
    targets: dict[int, float]
    variants: tuple[str, ...] = ()


DRIVEN = (
    Driven(
        "ε-greedy over SGD",
        EPSILON_GREEDY,
        "cb_explore_adf_greedy",
        "--cbify {k} --epsilon 0.05",
        {2: 20.0, 10: 20.0},
        ("--cbify {k} --epsilon 0.05 --cb_force_legacy",),
    ),
    Driven(
        "LinUCB, exact, vs RegCB-opt",
        "linucb",
        "cb_explore_adf_regcb",
        "--cbify {k} --cb_explore_adf --regcb --regcbopt --mellowness 0.01",
        {2: 5.0, 10: 3.0},
    ),
    Driven(
        "Cover-NU, 16 policies",
        "cover-nu:policies=16",
        "cb_explore_adf_cover",
        "--cbify {k} --cover 16 --nounif",
        {2: 10.0, 10: 10.0},
        (
            "--cbify {k} --cb_explore_adf --cover 16 --nounif --psi 0.1",
            "--cbify {k} --cover 16 --nounif --cb_force_legacy",
        ),
    ),
    Driven(
        "MELEE of the paper vs Cover-NU",
        "melee-paper",
        "cb_explore_adf_cover",
        "--cbify {k} --cover 16 --nounif",
        {2: 1.5},
    ),
    Driven(
        "MELEE vs Cover-NU",
        "melee",
        "cb_explore_adf_cover",
        "--cbify {k} --cover 16 --nounif",
        {2: 3.0, 10: 3.0},
    ),
)
ONE_AT_A_TIME = 3.0
"""The target for act + learn from Python."""
AGENT_NUMBERS, AGENT_DICTS = 2.0, 1.0
"""The targets for act + learn through an agent."""


@dataclass(frozen=True)
class Result:
    """One comparison: the best of the repetitions on both sides, and all of them."""

    title: str
    n_actions: int
    n_rounds: int
    spec: str
    options: str
    ours: Timing
    vw: Timing
    target: float | None
    first_call_seconds: float | None
    ours_repetitions: tuple[float, ...]
    vw_repetitions: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.vw.seconds / self.ours.seconds

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        return None if self.target is None else self.ratio >= self.target


@dataclass(frozen=True)
class Parts:
    """What VW's driver spends its time on, as far as it can be taken apart."""

    n_actions: int
    n_rounds: int
    options: str
    parser_alone: float
    learner_alone: float


def say(message: str) -> None:
    """A line of progress."""
    print(message, file=sys.stderr, flush=True)


def alternate(
    mine: Callable[[], Timing], theirs: Callable[[], Timing], repeats: int
) -> tuple[list[Timing], list[Timing]]:
    """Both sides in turn, so that a noisy machine disturbs both alike."""
    pairs = [(mine(), theirs()) for _ in range(repeats)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def compare_all(n_rounds: int, repeats: int) -> tuple[list[Result], list[Parts]]:
    """Every comparison at K = 2 and K = 10."""
    results, parts = [], []
    with tempfile.TemporaryDirectory() as directory:
        for n_actions in (2, 10):
            prepared = synthetic(n_rounds, N_FEATURES, n_actions)
            path = Path(directory) / f"k{n_actions}.vw"
            vw.write(prepared, path)
            for driven in DRIVEN:
                results += _driven(driven, prepared, path, repeats)
            parts += [
                _parts(options.format(k=n_actions), prepared, path, repeats)
                for options in dict.fromkeys(driven.options for driven in DRIVEN)
            ]
            results += _one_at_a_time(prepared, repeats)
    return results, parts


def _driven(driven: Driven, prepared: Prepared, path: Path, repeats: int) -> list[Result]:
    n_actions, n_rounds = prepared.task.n_actions, prepared.n_rounds
    began = time.perf_counter()
    simulate(prepared, driven.spec, seed=0)
    first_call = time.perf_counter() - began
    results = []
    for options in (driven.options, *driven.variants):
        options = options.format(k=n_actions)
        standard = options == driven.options.format(k=n_actions)
        enabled = vw.reductions(options, path)
        if standard and driven.reduction not in enabled:
            raise RuntimeError(f"VW's '{options}' enables {enabled}; expected {driven.reduction}")
        mine, theirs = alternate(
            lambda: ours.whole_pass(prepared, driven.spec),
            lambda options=options: vw.drive(options, path, n_rounds),  # type: ignore[misc]
            repeats,
        )
        result = Result(
            driven.title,
            n_actions,
            n_rounds,
            driven.spec,
            options,
            min(mine),
            min(theirs),
            driven.targets.get(n_actions) if standard else None,
            first_call if standard else None,
            tuple(t.seconds for t in mine),
            tuple(t.seconds for t in theirs),
        )
        say(f"K={n_actions:<3} {driven.title}: {result.ratio:.1f} x vw {options}")
        results.append(result)
    return results


def _parts(options: str, prepared: Prepared, path: Path, repeats: int) -> Parts:
    rows = path.read_text().splitlines()
    return Parts(
        prepared.task.n_actions,
        prepared.n_rounds,
        options,
        min(vw.parser_alone(path) for _ in range(repeats)),
        min(vw.learner_alone(options, rows) for _ in range(repeats)),
    )


class Way(NamedTuple):
    """A way to act and learn from Python, on both sides."""

    title: str
    spec: str
    ours: Callable[[], Timing]
    vw: Callable[[], Timing]
    target: float | None


def _one_at_a_time(prepared: Prepared, repeats: int) -> list[Result]:
    n_actions, n_rounds = prepared.task.n_actions, prepared.n_rounds
    options = f"--cb_explore {n_actions} --epsilon 0.05"
    cover = f"--cb_explore {n_actions} --cover 16 --nounif"
    rows, best = vw.lines(prepared), vw.labels(prepared)
    raw = prepared.task.contexts[prepared.order].tolist()
    dicts = [ours.named_context(row) for row in raw]

    def bandit() -> Timing:
        return ours.one_at_a_time(prepared, EPSILON_GREEDY)

    def agent(spec: str, named: bool) -> Callable[[], Timing]:
        return lambda: ours.agent(prepared, spec, named=named)

    def on_text() -> Timing:
        return vw.one_at_a_time(options, rows, best)

    def parsing_once() -> Timing:
        return vw.one_at_a_time_parsed_once(options, rows, best)

    def on_dicts() -> Timing:
        return vw.one_at_a_time(options, map(vw.line_of, dicts), best)

    def cover_on_text() -> Timing:
        return vw.one_at_a_time(cover, rows, best)

    eg = EPSILON_GREEDY
    ways = [
        Way("act + learn, VW on text lines", eg, bandit, on_text, ONE_AT_A_TIME),
        Way("act + learn, VW parsing once", eg, bandit, parsing_once, ONE_AT_A_TIME),
        Way("Agent, 20 numbers, VW on text lines", eg, agent(eg, False), on_text, AGENT_NUMBERS),
        Way("Agent, dicts, VW on text made of them", eg, agent(eg, True), on_dicts, AGENT_DICTS),
        Way(
            "Agent, melee, 20 numbers, VW: ε-greedy", "melee", agent("melee", False), on_text, None
        ),
        Way("Agent, melee, dicts, VW: ε-greedy", "melee", agent("melee", True), on_dicts, None),
        Way(
            "Agent, melee, 20 numbers, VW: Cover-NU",
            "melee",
            agent("melee", False),
            cover_on_text,
            AGENT_NUMBERS,
        ),
    ]
    results = []
    for way in ways:
        began = time.perf_counter()
        way.ours()
        first_call = time.perf_counter() - began
        mine, theirs = alternate(way.ours, way.vw, repeats)
        result = Result(
            way.title,
            n_actions,
            n_rounds,
            way.spec,
            options,
            min(mine),
            min(theirs),
            way.target,
            first_call,
            tuple(t.seconds for t in mine),
            tuple(t.seconds for t in theirs),
        )
        say(f"K={n_actions:<3} {way.title}: {result.ratio:.1f} x vw {options}")
        results.append(result)
    return results
