"""The checks of an explorer, each a function that takes one and raises where it does not hold."""

import dataclasses
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Protocol

import numpy as np

from melee.arrays import Floats
from melee.bandit import Bandit
from melee.distributions import sample
from melee.explorers import Explorer, Problem, parse
from melee.explorers.interface import distribution, reveal
from melee.explorers.registry import REGISTRY
from melee.loop import problem_of, scaling_for, simulate
from melee.preparation import Prepared, prepare
from melee.rng import ACT, LEARN, start_round, stream, uniform
from melee.scaling import scale_row
from melee.settings import read_settings
from melee.states import arrays_of
from melee.task import Task
from melee.testing import growing
from melee.testing.checks import (
    Check,
    blobs,
    easy,
    graded,
    hard,
    refuses,
    require,
    require_close,
    require_distribution,
    select,
)


class Twin(Protocol):
    """The definition once more, slowly: what to compare an explorer with, round by round.

    Contexts come as the explorer's state sees them, scaled and with a 1 at the end. A twin whose
    `atol` is set may differ by that much; else by 1e-9.
    """

    def pmf(self, x: Floats, t: int) -> Floats:
        """The probability of every action in round t."""

    def learn(self, x: Floats, t: int, action: int, rewards: Floats, probability: float) -> None:
        """Absorb round t; bandits look at the reward of their action alone."""


MakesTwin = Callable[[Any, Problem, int], Twin]
"""Makes a twin from the explorer, the problem, and the first word of the run's random stream."""


def check_explorer(
    explorer: str | Explorer, twin: MakesTwin | None = None, *, leave_out: Collection[str] = ()
) -> None:
    """Run all checks on an explorer; the first that does not hold raises an AssertionError.

    Parameters
    ----------
    explorer
        An explorer or its SPEC string; it must be registered.
    twin
        Makes its slow twin, to be compared with round by round: a class or function that takes
        the explorer, the `Problem` and the key of the random stream.
    leave_out
        Names of checks that do not apply.

    Examples
    --------
    >>> check_explorer("uniform")
    """
    for check in checks_for_explorer(explorer, twin, leave_out=leave_out):
        check()


def checks_for_explorer(
    explorer: str | Explorer, twin: MakesTwin | None = None, *, leave_out: Collection[str] = ()
) -> list[Check]:
    """The checks that apply to an explorer, in order; see `check_explorer`.

    >>> print(checks_for_explorer("uniform")[0])
    settings_are_written_and_read_again
    """
    chosen = parse(explorer)
    functions: list[Callable[[Any], None]] = [*ALWAYS]
    if chosen.learns:
        functions += WHERE_IT_LEARNS
    if twin is not None:
        functions.append(_named(partial(_compare, twin=twin), "a_run_agrees_with_its_twin"))
    if not refuses(lambda: chosen.begin(Problem(2, 3, n_rounds=30))):
        functions += WITHOUT_LABELLED_ROWS
    if not refuses(lambda: chosen.begin_cold(Problem(2, 3))):
        functions += growing.CHECKS
    found = (
        Check(function.__name__, chosen.short_spec, partial(function, chosen))
        for function in functions
    )
    return select(found, leave_out)


def _named(function: Any, name: str) -> Any:
    function.__name__ = name
    return function


# --- settings -----------------------------------------------------------------------------------


def settings_are_written_and_read_again(explorer: Explorer) -> None:
    """A SPEC string makes the explorer that wrote it; explorers can be told apart."""
    kind = type(explorer)
    known = not refuses(lambda: REGISTRY.find(explorer.name))
    require(
        known and REGISTRY.find(explorer.name) is kind,
        f"{kind.__name__} is not registered as '{explorer.name}'; call melee.register, or give its "
        "package an entry point",
    )
    for spec in (explorer.spec, explorer.short_spec):
        require(parse(spec) == explorer, f"{spec} makes {parse(spec)} where {explorer} wrote it")
    require(hash(parse(explorer.spec)) == hash(explorer), "equal explorers have unlike hashes")
    require(kind().short_spec == explorer.name, "its name alone does not mean its defaults")
    require((kind.__doc__ or "").strip(), f"{kind.__name__} has no docstring to be listed with")


def bad_settings_are_refused(explorer: Explorer) -> None:
    """Settings of a wrong type, and keys that do not exist, get a sentence."""
    for field in dataclasses.fields(explorer):
        values: Any = {field.name: object()}
        refused = refuses(partial(dataclasses.replace, explorer, **values))
        require(refused, f"an object() for {field.name} is not refused")
    unknown = refuses(lambda: read_settings(type(explorer), ["no_such_key=1"], "it"))
    require(unknown, "a key that does not exist is not refused")


# --- probabilities ------------------------------------------------------------------------------


def probabilities_are_a_distribution(explorer: Explorer) -> None:
    """In every round, for few and for many actions; decisions are drawn from what is shown."""
    for n_actions in (2, 3, 12, 100):
        prepared = prepare(graded(70, n_actions=n_actions, n_features=3, seed=n_actions))
        _play(Bandit.for_prepared(prepared, explorer, seed=2), prepared)


def actions_are_drawn_as_often_as_logged(explorer: Explorer) -> None:
    """Over many seeds, each action as often as its probability says."""
    bandit, x = _trained(explorer)
    pmf, counts, n = bandit.pmf(x), np.zeros(4), 4000
    for seed in range(n):
        bandit._rng = stream(seed, "exploration")
        action, p = bandit.act(x)
        require(p == pmf[action], f"action {action} was logged with {p} and has {pmf[action]}")
        counts[action] += 1
    require(counts[pmf == 0].sum() == 0, "an action of probability 0 was drawn")
    deviations = np.sqrt(n * pmf * (1.0 - pmf))
    require(
        (np.abs(counts - n * pmf) <= 4.0 * deviations + 1.0).all(),
        f"of {n} draws {counts.tolist()} were of each action, whose probabilities are "
        f"{pmf.tolist()}",
    )


def renaming_actions_renames_the_result(explorer: Explorer) -> None:
    """No action is special by its number."""
    task, new_name = graded(100, n_actions=5, n_features=3, seed=8), np.array([3, 0, 4, 1, 2])
    prepared = prepare(task)
    renamed_rewards = task.rewards[:, np.argsort(new_name)]
    turned = Task("renamed", task.contexts, renamed_rewards, reward_range=task.reward_range)
    other = dataclasses.replace(prepared, task=turned)
    bandit, renamed = (Bandit.for_prepared(p, explorer, seed=2) for p in (prepared, other))
    renamed._rng = bandit._rng.copy()
    for row in prepared.order:
        x = task.contexts[row]
        require_close(renamed.pmf(x)[new_name], bandit.pmf(x), "renamed")
        action, p = bandit.act(x)
        absorb(bandit, x, action, task.rewards[row], p)
        absorb(renamed, x, int(new_name[action]), other.task.rewards[row], p)


# --- runs ---------------------------------------------------------------------------------------


def row_by_row_decides_as_a_whole_pass(explorer: Explorer) -> None:
    """A bandit, given the rows one by one, makes the decisions of `simulate`, to the bit."""
    run, prepared = simulate(hard(), explorer, seed=7), hard()
    decisions = _play(Bandit.for_prepared(prepared, explorer, seed=7), prepared)
    require([a for a, _ in decisions] == run.actions.tolist(), "the actions differ")
    require([p for _, p in decisions] == run.probabilities.tolist(), "the probabilities differ")
    earned = prepared.task.rewards[prepared.order, run.actions]
    require((run.rewards == earned).all(), "the rewards are not those of the actions")


def python_decides_as_machine_code(explorer: Explorer) -> None:
    """The functions as Python runs them decide as the compiled pass does."""
    prepared, n = hard(), 60
    prepared = dataclasses.replace(prepared, order=prepared.order[:n])
    run = simulate(prepared, explorer, seed=7)
    state, scaling = explorer.begin(problem_of(prepared, n)), scaling_for(explorer, prepared)
    rng = stream(7, "exploration", prepared.task.number)
    task = prepared.task
    x, pmf = np.empty(task.n_features + 1), np.empty(task.n_actions)
    with np.errstate(all="ignore"):  # words overflow
        for t, row in enumerate(prepared.order, 1):
            scale_row(scaling, task.contexts[row], x)
            start_round(rng, t, ACT)
            distribution(state, x, t, rng, pmf)
            action, p = int(run.actions[t - 1]), float(run.probabilities[t - 1])
            require_close(pmf[action], p, f"round {t}")
            drawn = sample(pmf, uniform(rng))
            require(drawn == action, f"round {t}: action {drawn} where {action} was expected")
            start_round(rng, t, LEARN)
            reveal(state, x, t, rng, action, task.rewards[row].copy(), p)


def the_seed_decides_the_run(explorer: Explorer) -> None:
    """The same seed gives the same run, and another seed another where anything is random."""
    first, again = (simulate(hard(), explorer, seed=1) for _ in range(2))
    require((first.actions == again.actions).all(), "two runs of one seed differ")
    require((first.probabilities == again.probabilities).all(), "two runs of one seed differ")
    others = [simulate(hard(), explorer, seed=seed).actions for seed in range(2, 8)]
    by_chance = bool((first.probabilities < 1).any())
    differ = any((first.actions != other).any() for other in others)
    require(differ == by_chance, f"other seeds {'do not ' * (not differ)}change the run")


def a_single_round_is_played(explorer: Explorer) -> None:
    """A run may be as short as that."""
    run = simulate(easy(), explorer, max_rounds=1)
    require(run.actions.shape == (1,), f"{len(run.actions)} rounds were played")
    require(0 < run.probabilities[0] <= 1, f"the probability is {run.probabilities[0]}")


def an_easy_task_is_played_better_than_by_chance(explorer: Explorer) -> None:
    """Three blobs in the plane, well apart."""
    reached = np.mean([simulate(easy(), explorer, seed=s).mean_reward for s in range(3)])
    require(reached > 1 / 3 + 0.25, f"it earned {reached:.3f} a round where chance earns 0.333")


def odd_columns_do_no_harm(explorer: Explorer) -> None:
    """Constant, repeated, empty and tiny columns beside one that tells the action."""
    task = blobs(230, n_actions=2, n_features=1, seed=5)
    x = task.contexts
    columns = [x, np.full_like(x, 1e6), x, np.zeros_like(x), x * 1e-9]
    for given in (task, Task("odd", np.hstack(columns), task.rewards)):
        run = simulate(given, explorer, seed=1)
        _require_probabilities(run.probabilities)
        if explorer.learns:
            require(
                run.mean_reward > 0.6, f"it earned {run.mean_reward:.3f} where chance earns 0.5"
            )


def rewards_that_never_vary_leave_a_distribution(explorer: Explorer) -> None:
    """All rewards 0, or all 1."""
    task = graded(120, n_actions=3, n_features=2, seed=9)
    for value in (0.0, 1.0):
        run = simulate(Task("flat", task.contexts, np.full((120, 3), value)), explorer)
        _require_probabilities(run.probabilities)


def contexts_of_any_size_leave_a_distribution(explorer: Explorer) -> None:
    """Numbers as small and as large as a context may hold."""
    for size in (1e-300, 1e30, 1e99):
        rng = np.random.default_rng(6)
        bandit = Bandit(explorer, n_features=2, n_actions=3, n_rounds=30)
        for i in range(15):
            x = rng.normal(size=2) * (size if i % 2 else 1.0)
            action, p = bandit.act(x)
            require_distribution(bandit.pmf(x), f"contexts of size {size}:")
            absorb(bandit, x, action, np.round(rng.random(3)), p)
        learned = arrays_of(bandit._state.polopt if hasattr(bandit._state, "polopt") else ())
        finite = all(np.isfinite(array).all() for array in learned)
        require(finite, f"contexts of size {size} left numbers in its learner that are not finite")


def memory_does_not_grow_with_rounds(explorer: Explorer) -> None:
    """Arrays are changed in place; none is replaced."""
    bandit, x = _trained(explorer, n_rounds=20)
    before = [(id(a), a.shape) for a in arrays_of(bandit._state)]
    for _ in range(200):
        action, p = bandit.act(x)
        absorb(bandit, x, action, np.full(4, 0.5), p)
    require([(id(a), a.shape) for a in arrays_of(bandit._state)] == before, "its arrays changed")


def asking_changes_nothing(explorer: Explorer) -> None:
    """Decisions without a reward leave no trace in later ones."""
    prepared = hard()
    asked, quiet = (Bandit.for_prepared(prepared, explorer, seed=3) for _ in range(2))
    for row in prepared.order[:30]:
        x, rewards = prepared.task.contexts[row], prepared.task.rewards[row]
        for another in prepared.task.contexts[:3]:
            asked.act(another)
        decision = quiet.act(x)
        require(asked.act(x) == decision, "a bandit that was asked more often decides otherwise")
        for bandit in (asked, quiet):
            absorb(bandit, x, decision.action, rewards, decision.probability)


def two_bandits_share_nothing(explorer: Explorer) -> None:
    """What one learns, another does not know."""
    trained, _ = _trained(explorer)
    kept = [array.copy() for array in arrays_of(trained._state)]
    _trained(explorer, seed=1)
    same = all((a == b).all() for a, b in zip(arrays_of(trained._state), kept, strict=True))
    require(same, "a second bandit changed the first one's state")


ALWAYS: Iterable[Callable[[Any], None]] = (
    settings_are_written_and_read_again,
    bad_settings_are_refused,
    probabilities_are_a_distribution,
    actions_are_drawn_as_often_as_logged,
    renaming_actions_renames_the_result,
    row_by_row_decides_as_a_whole_pass,
    python_decides_as_machine_code,
    the_seed_decides_the_run,
    a_single_round_is_played,
    odd_columns_do_no_harm,
    rewards_that_never_vary_leave_a_distribution,
    memory_does_not_grow_with_rounds,
    asking_changes_nothing,
    two_bandits_share_nothing,
)
WHERE_IT_LEARNS = (an_easy_task_is_played_better_than_by_chance,)
WITHOUT_LABELLED_ROWS = (contexts_of_any_size_leave_a_distribution,)


# --- against the definition ---------------------------------------------------------------------


def _compare(explorer: Explorer, twin: MakesTwin) -> None:
    """A whole run, decision by decision."""
    n_rounds, seed = 120, 5
    prepared = prepare(graded(n_rounds + 30, n_actions=4, n_features=3, seed=2), seed=0)
    task, problem = prepared.task, problem_of(prepared, prepared.n_rounds)
    bandit = Bandit.for_prepared(prepared, explorer, seed=seed)
    other = twin(explorer, problem, int(stream(seed, "exploration", task.number)[0]))
    x = np.empty(task.n_features + 1)
    for t, row in enumerate(prepared.order, 1):
        raw, rewards = task.contexts[row], task.rewards[row]
        scale_row(scaling_for(explorer, prepared), raw, x)
        atol = getattr(other, "atol", 1e-9)
        require_close(bandit.pmf(raw), other.pmf(x.copy(), t), f"round {t}", atol)
        action, p = bandit.act(raw)
        absorb(bandit, raw, action, rewards, p)
        other.learn(x.copy(), t, action, rewards, p)


# --- playing ------------------------------------------------------------------------------------


def _play(bandit: Bandit, prepared: Prepared) -> list[tuple[int, float]]:
    """Row by row: the decisions, each checked to come from the distribution that is shown."""
    decisions = []
    for t, row in enumerate(prepared.order, 1):
        x, rewards = prepared.task.contexts[row], prepared.task.rewards[row]
        action, p = bandit.act(x)
        pmf = bandit.pmf(x)
        require_distribution(pmf, f"round {t} of {len(pmf)} actions:")
        require(0 < p == pmf[action], f"round {t}: {p} was logged and {pmf[action]} is shown")
        absorb(bandit, x, action, rewards, p)
        decisions.append((action, p))
    return decisions


def _trained(explorer: Explorer, *, n_rounds: int = 40, seed: int = 0) -> tuple[Bandit, Floats]:
    """A bandit that has been through some rounds of a task, and a context to ask it about."""
    prepared = prepare(graded(n_rounds + 31, n_actions=4, n_features=3, seed=seed), seed=seed)
    bandit = Bandit.for_prepared(prepared, explorer, seed=seed)
    for row in prepared.order[:n_rounds]:
        x = prepared.task.contexts[row]
        action, p = bandit.act(x)
        absorb(bandit, x, action, prepared.task.rewards[row], p)
    return bandit, prepared.task.contexts[prepared.order[-1]]


def absorb(bandit: Bandit, x: Floats, action: int, rewards: Floats, p: float) -> None:
    """One simulated round; all rewards are shown only to an explorer that looks at them."""
    if bandit.explorer.sees_all_rewards:
        bandit.reveal(x, action, rewards, p)
    else:
        bandit.learn(x, action, float(rewards[action]), p)


def _require_probabilities(given: Floats) -> None:
    fine = np.isfinite(given).all() and ((given > 0) & (given <= 1)).all()
    require(fine, "a decision was logged with a probability that is none")
