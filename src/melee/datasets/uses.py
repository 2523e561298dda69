"""The suite `production`: uses by name, each a task that is always the same.

They are drawn from other streams of random numbers than the tasks of training, so a policy that was
trained on `melee.datasets.production.production` has seen none of them.
"""

from melee.datasets.payments import Clicks, Graded, Numbers, Revenue
from melee.datasets.production import Use, task_of
from melee.task import Task

USES: dict[str, Use] = {
    # Clicks, by the rate of a uniform choice.
    "clicks-0.3pct-5-linear": Use(
        pays=Clicks(0.003), n_rounds=200_000, n_actions=5, n_features=8, effect="linear",
        strength=0.6, main=0.4,
    ),
    "clicks-1pct-10-tree": Use(
        pays=Clicks(0.01), n_rounds=100_000, n_actions=10, n_features=6, effect="tree",
        strength=0.6, main=0.3,
    ),
    "clicks-2pct-20-mixed": Use(
        pays=Clicks(0.02), n_rounds=50_000, n_actions=20, n_features=12, effect="mixed",
        strength=0.6, main=0.3,
    ),
    "clicks-3pct-12-linear": Use(
        pays=Clicks(0.03), n_rounds=50_000, n_actions=12, n_features=8, effect="linear",
        strength=0.4, main=0.5,
    ),
    "clicks-3pct-50-linear": Use(
        pays=Clicks(0.03), n_rounds=50_000, n_actions=50, n_features=10, effect="linear",
        strength=0.6,
    ),
    "clicks-5pct-5-tree": Use(
        pays=Clicks(0.05), n_rounds=20_000, n_actions=5, n_features=5, effect="tree", strength=0.5,
    ),
    "clicks-5pct-8-smooth": Use(
        pays=Clicks(0.05), n_rounds=20_000, n_actions=8, n_features=4, effect="smooth",
        strength=0.6, main=0.3,
    ),
    "clicks-10pct-10-mixed": Use(
        pays=Clicks(0.1), n_rounds=20_000, n_actions=10, n_features=10, effect="mixed",
        strength=0.6, main=0.5,
    ),
    "clicks-30pct-4-linear": Use(
        pays=Clicks(0.3), n_rounds=3000, n_actions=4, n_features=5, effect="linear", strength=0.5,
    ),
    "clicks-30pct-20-tree": Use(
        pays=Clicks(0.3), n_rounds=10_000, n_actions=20, n_features=8, effect="tree", strength=0.7,
    ),
    "clicks-60pct-3-smooth": Use(
        pays=Clicks(0.6), n_rounds=3000, n_actions=3, n_features=3, effect="smooth", strength=0.6,
    ),
    # A/B tests: no context at all.
    "ab-3pct-5": Use(pays=Clicks(0.03), n_rounds=20_000, n_actions=5, strength=0.25),
    "ab-10pct-2": Use(pays=Clicks(0.1), n_rounds=10_000, n_actions=2, strength=0.2),
    "ab-30pct-10": Use(pays=Clicks(0.3), n_rounds=10_000, n_actions=10, strength=0.25),
    # Successes: little is left to gain, and it is worth much.
    "success-90pct-5-linear": Use(
        pays=Clicks(0.9), n_rounds=20_000, n_actions=5, n_features=6, effect="linear", strength=0.6,
    ),
    "success-95pct-6-tree": Use(
        pays=Clicks(0.95), n_rounds=50_000, n_actions=6, n_features=8, effect="tree",
        strength=0.8, main=0.5,
    ),
    "success-99pct-4-linear": Use(
        pays=Clicks(0.99), n_rounds=100_000, n_actions=4, n_features=5, effect="linear",
        strength=0.8,
    ),
    "success-99.5pct-3-mixed": Use(
        pays=Clicks(0.995), n_rounds=200_000, n_actions=3, n_features=6, effect="mixed",
        strength=0.8,
    ),
    # Graded rewards, by the band in which they lie.
    "graded-low-5-linear": Use(
        pays=Graded(0.0, 0.4, middle=0.3, precision=4.0), n_rounds=5000, n_actions=5,
        n_features=6, effect="linear", strength=0.5, main=0.5,
    ),
    "graded-middle-10-smooth": Use(
        pays=Graded(0.2, 0.8, precision=6.0), n_rounds=5000, n_actions=10, n_features=4,
        effect="smooth", strength=0.6,
    ),
    "graded-high-5-tree": Use(
        pays=Graded(0.6, 1.0, middle=0.7, precision=4.0), n_rounds=5000, n_actions=5,
        n_features=8, effect="tree", strength=0.5, main=0.3,
    ),
    "graded-narrow-8-linear": Use(
        pays=Graded(0.9, 0.98, precision=8.0), n_rounds=10_000, n_actions=8, n_features=6,
        effect="linear", strength=0.5,
    ),
    "graded-tiny-5-mixed": Use(
        pays=Graded(0.41, 0.43, precision=5.0), n_rounds=5000, n_actions=5, n_features=5,
        effect="mixed", strength=0.5,
    ),
    "ratings-6-mixed": Use(
        pays=Graded(0.0, 1.0, middle=0.7, precision=3.0, levels=5), n_rounds=5000, n_actions=6,
        n_features=10, effect="mixed", strength=0.6, main=0.6,
    ),
    # Money, and numbers of any kind.
    "revenue-6-linear": Use(
        pays=Revenue(0.05, 40.0), n_rounds=20_000, n_actions=6, n_features=6, effect="linear",
        strength=0.6, main=0.3,
    ),
    "revenue-cents-10-smooth": Use(
        pays=Revenue(0.1, 0.05, spread=0.8), n_rounds=20_000, n_actions=10, n_features=4,
        effect="smooth", strength=0.6,
    ),
    "revenue-heavy-4-tree": Use(
        pays=Revenue(0.1, 2000.0, spread=1.6, by_rate=0.3), n_rounds=100_000, n_actions=4,
        n_features=6, effect="tree", strength=0.6,
    ),
    "seconds-5-linear": Use(
        pays=Numbers(20.0, 12.0, noise=2.0, shape="skewed"), n_rounds=10_000, n_actions=5,
        n_features=6, effect="linear", strength=0.5, main=0.8,
    ),
    "losses-8-tree": Use(
        pays=Numbers(-2000.0, 400.0, noise=1.5, shape="laplace"), n_rounds=10_000, n_actions=8,
        n_features=8, effect="tree", strength=0.5, main=0.5,
    ),
    # Sizes: many actions, many columns, hardly any good action, short and long.
    "actions-100-linear": Use(
        pays=Clicks(0.1), n_rounds=50_000, n_actions=100, n_features=8, effect="linear",
        strength=0.8,
    ),
    "features-60-linear": Use(
        pays=Clicks(0.2), n_rounds=20_000, n_actions=5, n_features=60, effect="linear",
        strength=0.7,
    ),
    "mostly-bad-30-linear": Use(
        pays=Clicks(0.05), n_rounds=20_000, n_actions=30, n_features=6, effect="linear",
        strength=0.8, own=0.7, bad=0.9,
    ),
    "short-500-3-linear": Use(
        pays=Clicks(0.3), n_rounds=500, n_actions=3, n_features=4, effect="linear", strength=0.8,
    ),
    "short-1000-5-mixed": Use(
        pays=Graded(0.1, 0.9), n_rounds=1000, n_actions=5, n_features=8, effect="mixed",
        strength=0.7,
    ),
    "long-100000-10-tree": Use(
        pays=Clicks(0.05), n_rounds=100_000, n_actions=10, n_features=10, effect="tree",
        strength=0.5, main=0.5,
    ),
    "long-200000-3-linear": Use(
        pays=Clicks(0.02), n_rounds=200_000, n_actions=3, n_features=4, effect="linear",
        strength=0.3, main=0.5,
    ),
    # What changes in time.
    "drift-slow-5-linear": Use(
        pays=Clicks(0.2), n_rounds=20_000, n_actions=5, n_features=5, effect="linear",
        strength=0.7, drift="slow",
    ),
    "drift-sudden-6": Use(
        pays=Clicks(0.1), n_rounds=20_000, n_actions=6, strength=0.5, drift="sudden",
    ),
    "come-and-go-12-linear": Use(
        pays=Clicks(0.1), n_rounds=10_000, n_actions=12, n_features=5, effect="linear",
        strength=0.7, comes_and_goes=True,
    ),
    "come-and-go-20": Use(
        pays=Graded(0.0, 1.0, precision=4.0), n_rounds=5000, n_actions=20, strength=0.6,
        comes_and_goes=True,
    ),
    "late-200-5-linear": Use(
        pays=Clicks(0.1), n_rounds=10_000, n_actions=5, n_features=5, effect="linear",
        strength=0.6, delay=200.0,
    ),
    "late-1000-4": Use(
        pays=Clicks(0.3), n_rounds=5000, n_actions=4, strength=0.4, delay=1000.0,
    ),
}  # fmt: skip
"""Names begin with what is paid or with what is special, then comes the number of actions."""


def load_use(name: str, *, keep_rows: bool = False) -> Task:
    """The task of a use of this suite.

    >>> load_use("ab-10pct-2")
    Task('ab-10pct-2', 10030 rows, 1 features, 2 actions)
    """
    from melee.rng import generator  # here, because it compiles

    rng = generator(0, "production suite", name)
    return task_of(USES[name], name, rng, origin="suite production", keep_rows=keep_rows)
