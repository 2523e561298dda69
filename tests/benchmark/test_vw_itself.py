"""VowpalWabbit itself in benchmarks; `make test-peers` runs this where it is installed."""

import numpy as np
import pytest

from melee import Task, prepare
from melee.benchmark.vw import GRID, version
from melee.distributions import sample
from melee.errors import InputError
from melee.rng import generator
from tests.benchmark.made import NoEngine, bench
from tests.benchmark.test_vw import vw

vowpalwabbit = pytest.importorskip(
    "vowpalwabbit", reason="VowpalWabbit is not installed; make test-peers installs it"
)

ALGORITHMS = [settings[0] for settings in GRID.values()]


@pytest.fixture(scope="module")
def prepared():
    """Three actions, of which the context tells the best in most rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(830, 4))
    labels = np.argmax(x[:, :3] + 0.3 * rng.normal(size=(830, 3)), axis=1)
    return prepare(Task.from_labels("made", x, labels), seed=0)


def through_adf(options, prepared, seed):
    """The actions of a multi-line example per row, as VW's users write them: the slow twin."""
    task = prepared.task
    rng = generator(seed, "vw", task.number)
    uniforms = rng.random(prepared.n_rounds)
    flat = "-q sa --ignore_linear s --noconstant --quiet"
    itself = vowpalwabbit.Workspace(
        f"--cb_explore_adf {options} {flat} --random_seed {rng.integers(1, 2**31)}"
    )
    actions = []
    for u, row in zip(uniforms, prepared.order, strict=True):
        x = prepared.inputs(np.array([row]))[0, :-1]
        shared = "shared |s " + " ".join(f"f{i}:{value:.9g}" for i, value in enumerate(x))
        lines = [f"|a a{k}" for k in range(task.n_actions)]
        pmf = np.array(itself.predict([shared, *lines]))
        action = sample(pmf, u)
        lines[action] = f"0:{1 - task.rewards[row, action]:.9g}:{pmf[action]:.9g} {lines[action]}"
        itself.learn([shared, *lines])
        actions.append(action)
    itself.finish()
    return actions


@pytest.mark.parametrize("options", ["--epsilon 0.1", "--squarecb --gamma_scale 100", "--regcbopt"])
def test_it_decides_as_vowpal_wabbit_does_with_an_example_per_action(prepared, options):
    run = vw(f"vw:{options}").play(prepared, seed=3)
    alike = np.mean(run.actions == through_adf(options, prepared, 3))
    assert alike > 0.98  # sums in another order


@pytest.mark.parametrize("options", ALGORITHMS)
def test_every_algorithm_of_the_grid_learns(prepared, options):
    vw(f"vw:{options}").try_out()
    run = vw(f"vw:{options} -l 0.5").play(prepared, seed=0)
    assert run.rewards[400:].mean() > 0.6  # a third by chance, 0.88 at best
    assert ((run.probabilities > 0.0) & (run.probabilities <= 1.0 + 1e-6)).all()


def test_a_seed_gives_a_run_again_and_another_gives_another(prepared):
    bag = vw("vw:--bag 4 --greedify")
    first, again, other = (bag.play(prepared, seed=seed) for seed in (0, 0, 1))
    assert first.actions.tolist() == again.actions.tolist() != other.actions.tolist()


def test_options_that_it_does_not_know_are_refused_with_its_reason():
    with pytest.raises(InputError, match=r"refuses these options \(unrecognised option '--nosuch'"):
        vw("vw:--nosuch 3").try_out()
    with pytest.raises(InputError, match="'nix' is not a valid choice for option --cb_type"):
        vw("vw:--cb_type nix").try_out()


def test_processes_play_it_once(suite, tmp_path):
    specs = ["uniform", "vw:--cb_explore_adf --regcb", "vw:--squarecb --interactions ab,cd"]
    results = bench(suite, tmp_path / "out", specs=specs, n_seeds=1, workers=2)
    assert sorted(results.complete_datasets()) == ["graded", "plain", "three"]
    assert results.about["VowpalWabbit"] == version()
    assert all(one.seconds > 0.0 for one in results if not one.problem)
    bench(suite, tmp_path / "out", specs=specs, n_seeds=1, engine=NoEngine())
