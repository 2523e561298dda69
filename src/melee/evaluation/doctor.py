"""Examine a log before anything is learned from it or judged by it.

Each check looks for one kind of fault, says what it found and what to do about it. An error
spoils every estimate made from the log; a warning may have a good reason that you know. Checks
that compare with chance raise a false alarm in about one of a thousand logs each.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from melee.arrays import Floats
from melee.checks import LARGEST_REWARD, RewardRange, check_reward_range
from melee.evaluation import context_checks
from melee.evaluation.estimates import mean_interval, ratio_terms, typical_weight
from melee.evaluation.findings import LEVEL, Fault, Finding, count_p_value, listed
from melee.evaluation.log import MIN_ROUNDS, SMALLEST, pmf_fault, right_stands_for
from melee.evaluation.support import MIN_EFFECTIVE
from melee.evaluation.tails import normal_tail, poisson_at_least
from melee.evaluation.units import unit_of

if TYPE_CHECKING:
    from melee.history import History, Round

FEW_ROUNDS = 100
RARELY = 10
"""Rounds of an action below which little is known of it."""


def examine(history: "History", *, reward_range: RewardRange = None) -> list[Finding]:
    """Every check's findings; a check that found no fault says so, at level "ok".

    Parameters
    ----------
    history
        The log, read with `History.read(path, strict=False)`, so that what is wrong is still there.
    reward_range
        The least and the greatest reward there can be; others are then an error.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rounds = [Round({"age": float(i % 70)}, "ab"[i % 2], i % 3 / 2, 1.0) for i in range(500)]
    >>> for one in examine(History(rounds)):
    ...     if one.level != "ok":
    ...         print(f"{one.level}, {one.check}: {one.found}")
    error, exploration: every round was logged with probability 1
    """
    log = _Log(history, check_reward_range(reward_range))
    findings: list[Finding] = []

    def note(name: str, faults: Iterator[Fault], fine: str) -> None:
        found = [Finding(level, name, text, advice) for level, text, advice in faults]
        findings.extend(found or [Finding("ok", name, fine)])

    note("rows", _rows(log), "every row could be read")
    total = log.stands_for.sum()
    stand = f", which stand for {total:,.0f}" if total > log.n else ""
    note("size", _size(log), f"{log.n:,} rounds{stand}")
    if log.n == 0:
        return findings
    for name, (check, fine) in CHECKS.items():
        note(name, check(log), fine)
    contexts = [one.context for one in log.rounds]
    kinds = list(context_checks.kinds(contexts))
    note("contexts", iter(kinds), "all contexts are of one kind")
    if not kinds:
        columns = context_checks.read_columns(contexts)
        for name, (of_columns, fine) in context_checks.CHECKS.items():
            note(name, of_columns(columns, log.n), fine)
    return findings


class _Log:
    """What the checks look at."""

    def __init__(self, history: "History", reward_range: RewardRange) -> None:
        self.declared = reward_range
        self.range = reward_range or (-LARGEST_REWARD, LARGEST_REWARD)
        self.rounds: list[Round] = list(history)
        self.problems = history.problems
        self.n = len(self.rounds)
        self.left_out = history.left_out
        self.rewards, self.probabilities = history.rewards, history.probabilities
        self.right_stands_for = right_stands_for(history.stands_for)
        self.stands_for = np.where(self.right_stands_for, history.stands_for, 1.0)
        self.right_reward = (self.rewards >= self.range[0]) & (self.rewards <= self.range[1])
        self.right_probability = (self.probabilities >= SMALLEST) & (self.probabilities <= 1.0)
        self.labels = history.actions
        self.wrong_pmfs: dict[int, str] = {}
        self.pmfs: list[tuple[Round, Mapping[object, float]]] = []
        self.with_pmf: list[int] = []
        for i, one in enumerate(self.rounds):
            if one.pmf is None or not self.right_probability[i]:
                continue
            fault = pmf_fault(one)
            if fault:
                self.wrong_pmfs[i] = fault
            else:
                self.pmfs.append((one, one.pmf))
                self.with_pmf.append(i)


def _rows(log: _Log) -> Iterator[Fault]:
    total = log.n + len(log.problems)
    n_bad = sum(not one.is_sound for one in log.problems)
    for n_rows, (row, sentence, is_sound) in log.left_out:
        if is_sound:
            yield Fault(
                "warning",
                f"{n_rows:,} of {total:,} rows hold no round, row {row} the first: {sentence}",
                "no fault if you know why; if it depends on what came of a decision whether it is "
                "among them, every estimate is biased",
            )
        else:
            yield Fault(
                "error" if n_bad > 0.01 * total else "warning",
                f"{n_rows:,} of {total:,} rows could not be read, row {row} the first: {sentence}",
                "mend what writes the log; rows that are lost by their content bias every estimate",
            )


def _size(log: _Log) -> Iterator[Fault]:
    if log.n < MIN_ROUNDS:
        yield Fault(
            "error",
            f"{log.n} rounds",
            f"log more: {MIN_ROUNDS} are the least that can be evaluated on, thousands are usual",
        )
    elif log.n < FEW_ROUNDS:
        yield Fault("warning", f"only {log.n} rounds", "log more before you draw conclusions")


def _dropped(log: _Log) -> Iterator[Fault]:
    wrong = ~log.right_stands_for
    if wrong.any():
        yield Fault(
            "error",
            f"{wrong.sum():,} rounds stand for a number of rounds that cannot be, round "
            f"{_first(wrong)} the first",
            "log 1 / (1 - the probability that a round like it was dropped), or nothing where none "
            "was",
        )


def _rewards(log: _Log) -> Iterator[Fault]:
    missing = np.isnan(log.rewards)
    outside = ~missing & ~log.right_reward
    if missing.any():
        yield Fault(
            "error",
            f"{missing.sum():,} rewards are missing, that of round {_first(missing)} the first",
            "join rewards before you log rounds; where none is to come, log 0",
        )
    if outside.any():
        least, most = log.rewards[outside].min(), log.rewards[outside].max()
        low, high = log.range
        yield Fault(
            "error",
            f"{outside.sum():,} rewards are not from {low:g} to {high:g}: they go from {least:g} "
            f"to {most:g}, that of round {_first(outside)} is the first",
            "mend what writes the log, or give a reward_range that holds all rewards; any unit "
            "will do, as long as numbers are finite",
        )
    if log.right_reward.all() and log.n > 1 and (log.rewards == log.rewards[0]).all():
        yield Fault(
            "warning",
            f"every reward is {log.rewards[0]:g}",
            "check how rewards are joined to rounds; nothing can be learned from one value",
        )


def _probabilities(log: _Log) -> Iterator[Fault]:
    given = log.probabilities
    for wrong, what in [
        (np.isnan(given), "missing"),
        (given < SMALLEST, "0 or less"),
        (given > 1.0, "above 1"),
    ]:
        if wrong.any():
            yield Fault(
                "error",
                f"{wrong.sum():,} probabilities are {what}, that of round {_first(wrong)} the "
                "first",
                "log the chance that the chosen action had at the time, as Agent.act gives it; it "
                "cannot be made up later",
            )


def _exploration(log: _Log) -> Iterator[Fault]:
    given = log.probabilities[log.right_probability]
    advice = "let the logging policy explore, as Agent(floor=0.02) does"
    if len(given) == 0:
        return
    if (given == 1.0).all():
        yield Fault("error", "every round was logged with probability 1", advice)
    elif (given == 1.0).mean() > 0.9:
        share = (given == 1.0).mean()
        yield Fault("warning", f"{share:.1%} of rounds were logged with probability 1", advice)


def _pmfs(log: _Log) -> Iterator[Fault]:
    if log.wrong_pmfs:
        first, sentence = next(iter(log.wrong_pmfs.items()))
        yield Fault(
            "error",
            f"{len(log.wrong_pmfs):,} rounds have a pmf that cannot be right, round {first} the "
            f"first: {sentence}",
            "log the very distribution that the action was drawn from",
        )


def _calibration(log: _Log) -> Iterator[Fault]:
    """Whether actions were chosen as often as logged probabilities say.

    With pmfs, choices of each action, and choices of like probability, are counted: the logged
    probabilities sum to what is expected, whatever the contexts and however the policy learned.
    Without, 1 / probability averages the number of actions that had a chance.
    """
    given = log.probabilities[log.right_probability]
    if len(given) < MIN_ROUNDS or (given == 1.0).all():
        return
    advice = (
        "log the probability with which the action was drawn, after every rule that may change the "
        "choice; estimates that use these are wrong"
    )
    if log.pmfs:
        yield from _calibration_by_pmf(log, advice)
        return
    sizes = log.stands_for[log.right_probability]
    sizes = sizes / sizes.mean()
    inverse = sizes / given
    terms = ratio_terms(inverse, sizes)
    low, high = mean_interval(terms, 1.0, typical_weight(inverse), 1.0 - LEVEL)
    n_labels = len(log.labels)
    if low > n_labels:
        yield Fault(
            "error",
            f"1 / probability averages {inverse.mean():.3g}, but cannot be more than the number of "
            f"actions, {n_labels}: logged probabilities are too small",
            advice,
        )
    elif high < n_labels:
        yield Fault(
            "warning",
            f"1 / probability averages {inverse.mean():.3g}; it would be {n_labels}, the number of "
            "actions, if each had a chance in every round",
            "if only some were eligible, log the pmf of every round; otherwise some had no "
            "chance, or logged probabilities are too large",
        )


def _calibration_by_pmf(log: _Log, advice: str) -> Iterator[Fault]:
    """Count choices by action, and by probability; compare the worst count with chance.

    A round that stands for several is counted so often, and the luck of which ones were dropped
    adds to that of the choices (Horvitz and Thompson, 1952).
    """
    index = {label: i for i, label in enumerate(log.labels)}
    label = np.array([index[one] for _, pmf in log.pmfs for one in pmf])
    p = np.array([chance for _, pmf in log.pmfs for chance in pmf.values()])
    chosen = np.array([one == done.action for done, pmf in log.pmfs for one in pmf])
    lengths = [len(pmf) for _, pmf in log.pmfs]
    times = np.repeat(log.stands_for[log.with_pmf], lengths)
    of_choice, of_dropping = times * p * (1.0 - p), times * (times - 1.0) * (chosen - p) ** 2
    edges = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0])
    part = np.maximum(np.searchsorted(edges, p), 1)
    names = [f"action {one!r:.40}" for one in log.labels]
    groups = [(label == i, name) for i, name in enumerate(names)]
    groups += [
        (part == i, f"actions of probability {edges[i - 1]:g} to {edges[i]:g}")
        for i in range(1, len(edges))
    ]
    worst, n_tests = (1.0, ""), 0
    for group, name in groups:
        count = float(times[group] @ chosen[group])
        expected, luck = float(times[group] @ p[group]), float(of_choice[group].sum())
        if luck > 0.0:
            n_tests += 1
            variance = luck + float(of_dropping[group].sum())
            told = (
                f"{name}: chosen {count:,.0f} times, but logged probabilities say {expected:,.0f}"
            )
            # Few large counts are as skewed as few events: count in units of what one stands for.
            unit = variance / luck
            p_value = count_p_value(count / unit, expected / unit, variance / unit**2)
            worst = min(worst, (p_value, told))
    if worst[0] * n_tests < LEVEL:
        yield Fault("error", worst[1], advice)


def _support(log: _Log) -> Iterator[Fault]:
    counts = Counter(one.action for one in log.rounds)
    never = [repr(label) for label in log.labels if counts[label] == 0]
    rarely = [f"{label!r} ({n})" for label, n in counts.items() if n < min(RARELY, 0.1 * log.n)]
    if never:
        yield Fault(
            "warning",
            f"eligible, but never played: {listed(never)}",
            "give every action a chance, as Agent(floor=0.02) does, or take it out",
        )
    if rarely:
        yield Fault(
            "warning",
            f"played less than {RARELY} times: {listed(rarely)}",
            "log more rounds or a higher floor before you judge policies that want these actions",
        )
    if log.pmfs:
        smallest = np.array([min(pmf.values()) for _, pmf in log.pmfs])
        zero = float((smallest <= 0.0).mean())
        if zero > 0.01:
            yield Fault(
                "warning",
                f"in {zero:.1%} of rounds some eligible action had probability 0",
                "keep a floor under every action's probability, as Agent(floor=0.02) does; "
                "policies that want such actions cannot be evaluated",
            )
        smallest = smallest[smallest > 0.0]
    else:
        smallest = log.probabilities[log.right_probability]
    if len(smallest) == 0:
        return
    # With pmfs, what is usual: a policy is rarely at odds with the log in its rarest rounds.
    least = float(np.quantile(smallest, 0.05) if log.pmfs else smallest.min())
    if least * log.n < 2.0 * MIN_EFFECTIVE:
        yield Fault(
            "warning",
            f"probabilities go down to {least:.2g}, so that one round can weigh {1 / least:,.0f} "
            f"of {log.n:,}",
            "log more rounds, or keep a higher floor under every action's probability",
        )


def _reward_drift(log: _Log) -> Iterator[Fault]:
    """Whether rewards change with time, apart from what the logging policy learned.

    reward / probability averages the rewards of all actions alike, however they were chosen.
    """
    usable = log.right_reward & log.right_probability
    if log.n < 40 or usable.sum() < 0.5 * log.n:
        return
    rewards, stands_for = log.rewards[usable], log.stands_for[usable]
    plain, p_plain = _halves(rewards, stands_for)
    if rewards.min() < rewards.max():
        rewards = unit_of(rewards, log.declared).of(rewards)
    _, p_uniform = _halves(rewards / log.probabilities[usable], stands_for)
    fell = plain[1] < plain[0]
    if p_uniform < 0.5 * LEVEL or (fell and p_plain < 0.5 * LEVEL):
        yield Fault(
            "warning",
            f"the mean reward went from {plain[0]:.3g} in the first half to {plain[1]:.3g} in the "
            "second, more than chance and a policy that learns explain",
            "find out what changed (actions, users, how rewards are counted); evaluate on the "
            "recent part",
        )


def _halves(values: Floats, stands_for: Floats) -> tuple[tuple[float, float], float]:
    """The means of the two halves, and the p-value of their being equal."""
    middle = len(values) // 2
    halves = []
    for some in (slice(middle), slice(middle, None)):
        sizes = stands_for[some] / stands_for[some].mean()
        halves.append(ratio_terms(sizes * values[some], sizes))
    first, second = halves
    means = float(first.mean()), float(second.mean())
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    rounding = 1e-12 * float(np.abs(values).max())
    if error <= rounding:
        return means, 1.0 if abs(means[0] - means[1]) <= rounding else 0.0
    return means, 2.0 * normal_tail(abs(means[0] - means[1]) / error)


def _duplicates(log: _Log) -> Iterator[Fault]:
    first: dict[str, int] = {}
    identical: list[str] = []
    conflicting: list[str] = []
    for i, one in enumerate(log.rounds):
        if one.id is not None:
            before = first.setdefault(one.id, i)
            if before != i:
                (identical if one == log.rounds[before] else conflicting).append(one.id)
    if conflicting:
        yield Fault(
            "error",
            f"{len(conflicting):,} rounds have the id of another but differ from it: "
            f"{listed(conflicting)}",
            "give every decision its own id, and log it once, when its reward is known",
        )
    if identical:
        yield Fault(
            "warning",
            f"{len(identical):,} rounds are there twice: {listed(identical)}",
            "keep the first of each id; a retry probably wrote them again",
        )
    # Rounds without ids: equal neighbours count if rounds further apart are equal less often.
    equal = [_n_equal(log.rounds, lag) for lag in (1, *range(11, 21))]
    expected = (sum(equal[1:]) + 0.1) / 10
    if equal[0] and poisson_at_least(equal[0], expected) < LEVEL:
        yield Fault(
            "warning",
            f"{equal[0]:,} rounds repeat the one before to the last digit",
            "log ids, and each round once; repeated rounds pretend to be evidence",
        )


def _n_equal(rounds: "list[Round]", lag: int) -> int:
    pairs = zip(rounds, rounds[lag:], strict=False)
    return sum(a.id is None and a.action == b.action and a == b for a, b in pairs)


def _times(log: _Log) -> Iterator[Fault]:
    given = np.array([np.nan if one.time is None else one.time for one in log.rounds])
    times = given[np.isfinite(given)]
    back = int((np.diff(times) < 0.0).sum())
    if 0 < len(times) < log.n:
        yield Fault(
            "warning",
            f"{log.n - len(times):,} of {log.n:,} rounds have no time",
            "log it with every round, in seconds since the epoch, or with none",
        )
    if back:
        yield Fault(
            "warning",
            f"{back:,} rounds are earlier than the one before them",
            "rewards that come late do this, and it is no harm to estimates; but explorers that "
            "learn along the log, and checks for drift, take its order for the order of events: "
            "History(sorted(history, key=lambda one: one.time))",
        )


def _first(wrong: np.typing.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(wrong)[0])


CHECKS: dict[str, tuple[Callable[[_Log], Iterator[Fault]], str]] = {
    "dropped rounds": (_dropped, "none, or those that were kept say for how many they stand"),
    "rewards": (_rewards, "all are finite numbers, and vary"),
    "probabilities": (_probabilities, "all are above 0 and at most 1"),
    "exploration": (_exploration, "other actions had a chance"),
    "pmfs": (_pmfs, "those that are there sum to 1 and agree with the probabilities"),
    "calibration": (_calibration, "actions were chosen as often as their probabilities say"),
    "support": (_support, "every action was played, none too rarely"),
    "drift of rewards": (_reward_drift, "both halves of the log have rewards alike"),
    "duplicates": (_duplicates, "no round is there twice"),
    "times": (_times, "rounds are in the order of time, or have none"),
}
"""The checks of rounds by name, each with what it says when all is well."""
