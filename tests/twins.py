"""The slow twin of every explorer and learner, as `melee.testing` takes them."""

import dataclasses
import inspect
import math
from typing import Any

from melee.explorers import melee as learned
from melee.explorers import melee_paper
from melee.explorers.base import unlabelled
from melee.explorers.hidden import Units
from melee.learners.adaptive import HOW
from tests import naive, naive_melee, naive_paper


def of_class(kind, **rest):
    """Makes a twin of a class from an explorer's settings: those that the class annotates."""
    names = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]

    def make(explorer, problem, key):
        settings = {name: getattr(explorer, name) for name in names if name not in rest}
        settings |= {name: given(explorer, problem) for name, given in rest.items()}
        n_inputs = problem.n_inputs
        if hasattr(explorer, "learner"):
            learner = explorer.model(problem.learning_rate)
            settings["model"] = lambda: model_twin(learner, n_inputs)
            settings["optimizer"] = explorer.optimizer
        return kind(problem.n_actions, n_inputs, key, **settings)

    return make


def model_twin(learner, n_inputs):
    """One model of a learner."""
    if learner.name == "sgd":
        kind = {"plain": naive.Sgd, "adaptive": naive.AdaptiveSgd}[learner.steps]
        return kind(n_inputs, learner.learning_rate, learner.loss == "logistic")
    exact = learner.name == "ridge" and learner.fits(1, n_inputs)
    return (naive.Ridge if exact else naive.DiagonalRidge)(n_inputs, learner.ridge)


def adaptive_twin(learner, n_inputs, n_rows, *, n_hidden=0, how=HOW):
    """The learner of all models, which learn from one another."""
    exact = learner.name == "adaptive" and learner.fits(n_rows, n_inputs)
    return naive_melee.Adaptive(
        n_rows, n_inputs, learner.ridge, learner.strong, exact=exact, n_hidden=n_hidden, how=how
    )


def adaptive_rows(learner, n_inputs, n_rows):
    """All models of such a learner, as `melee.testing` takes them."""
    return adaptive_twin(learner, n_inputs, n_rows).rows()


def exploring_rounds(explorer, problem):
    return (
        math.ceil(explorer.tau * problem.n_rounds) if explorer.rounds is None else explorer.rounds
    )


def paper_policy(explorer, problem):
    return dict(zip(melee_paper.SCHEMA, melee_paper.load_policy(explorer.policy), strict=True))


def labelled_rows(explorer, problem):
    return problem.labelled


def melee(explorer, problem, key):
    policy, budget, _ = learned.load_policy(explorer.policy)
    learner = adaptive_twin(
        explorer.model(),
        problem.n_inputs,
        problem.n_actions,
        n_hidden=problem.n_hidden,
        how=policy.how,
    )
    settings = {"guard": explorer.guard, "mu": explorer.mu}
    return naive_melee.Melee(problem.n_actions, learner, policy, budget, **settings)


TWINS = {
    "epsilon-greedy": of_class(naive.EpsilonGreedy),
    "epsilon-decreasing": of_class(naive.EpsilonDecreasing),
    "eg-epsilon-greedy": of_class(naive.EgEpsilonGreedy),
    "linucb": of_class(naive.LinUcb),
    "gated-ucb": of_class(naive.GatedUcb),
    "tau-first": of_class(naive.TauFirst, exploring=exploring_rounds),
    "cover": of_class(naive.Cover),
    "cover-nu": of_class(naive.CoverNu),
    "uniform": of_class(naive.Uniform),
    "regcb-opt": of_class(naive.RegCbOpt),
    "regcb-elim": of_class(naive.RegCbElim),
    "squarecb": of_class(naive.SquareCb),
    "bagging": of_class(naive.Bagging),
    "thompson": of_class(naive.Thompson),
    "softmax": of_class(naive.Softmax),
    "full-information": of_class(naive.FullInformation),
    "banditron": of_class(naive.Banditron),
    "banditron-melee": of_class(
        naive_paper.BanditronMelee, policy=paper_policy, labelled=labelled_rows
    ),
    "melee-paper": of_class(naive_paper.MeleePaper, policy=paper_policy, labelled=labelled_rows),
    "melee": melee,
}
"""By an explorer's name: what makes the twin of what it does itself."""

LEARNER_TWINS: dict[str, Any] = {
    "sgd": model_twin,
    "ridge": model_twin,
    "diagonal": model_twin,
    "adaptive": adaptive_rows,
    "adaptive-diagonal": adaptive_rows,
}
"""By a learner's name: what makes the twin of one of its models, or those of all of them."""


def twin(explorer, problem, key):
    """The twin of any explorer, behind hidden units and a scaling of its own where it has them."""
    make, hidden = TWINS[explorer.name], getattr(explorer, "hidden", 0)
    if getattr(explorer, "cold", False):
        problem = unlabelled(problem)
    n_features = problem.n_features + hidden
    wide = dataclasses.replace(problem, n_features=n_features, n_hidden=hidden)

    def inside():
        made = make(explorer, wide, key)
        if hidden:
            units = Units.draw(problem.n_features, hidden)
            made = naive.Widened(made, units.columns, units.weights, hidden)
        return made

    if getattr(explorer, "cold", False):
        return naive.Rescaled(inside, first=2, unscaled=True)
    return naive.Rescaled(inside) if getattr(explorer, "rescale", False) else inside()
