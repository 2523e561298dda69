"""Candidates of a log, and what makes two of them alike.

A log of candidates holds the same features again and again. They are kept once each, and a round
has numbers for them. The *embedding* of a candidate is what an estimator knows it by: by default
all of its features, or some that are named, or whatever a function makes of them. Texts and groups
of texts are taken as they are; a number that takes more than `N_BINS` values is cut into as many
bins of equally many offers each, since no two prices of 9.99 and 9.98 would be alike otherwise.

Why bins, and not an estimate of how likely each candidate is given its embedding: the log holds the
probabilities of all candidates, so that of an embedding is a sum of them, with nothing to estimate
and nothing that intervals would have to allow for. What bins cost can be said in one sentence:
candidates within a bin are taken to earn alike.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from melee.arrays import Floats, Ints
from melee.contexts import Context
from melee.errors import InputError, shown, unknown
from melee.labels import Label

if TYPE_CHECKING:
    from melee.history import Round

Embedding: TypeAlias = Sequence[str | int] | Callable[[Context], Hashable] | None
"""Names of features, or positions where these are rows of numbers; or a function of features."""

N_BINS = 10
"""Values of a number that are told apart."""


class Shelf:
    """What was on offer in the rounds of a log.

    Attributes
    ----------
    features
        Of every kind of candidate, once.
    which
        Of each round and place, the kind of candidate, (n, S); -1 where there is none, or where its
        features are not known.
    items
        The same of labels, as the log numbers them.
    places
        Of each round, where every label is.
    """

    def __init__(self, rounds: "Sequence[Round]", index: dict[Label, int]) -> None:
        self.features: list[Context] = []
        self.places: list[Mapping[Label, int]] = []
        kinds: dict[Any, int] = {}
        known: dict[int, int] = {}  # by identity: rounds share what they have in common
        rows: list[list[int]] = []
        self._chosen: list[Context | None] = []
        for round_ in rounds:
            given = round_.features or {}
            self._chosen.append(given.get(round_.action))
            labels = list(given if round_.pmf is None else round_.pmf)
            if round_.action not in labels:
                labels.append(round_.action)
            places = self.places[-1] if self.places else {}
            if labels != list(places):  # rounds that offer the same share it
                places = {label: place for place, label in enumerate(labels)}
            self.places.append(places)
            row = []
            for label in labels:
                index.setdefault(label, len(index))
                features = given.get(label)
                if features is None:
                    row.append(-1)
                    continue
                kind = known.get(id(features))
                if kind is None:
                    kind = known[id(features)] = self._kind(features, kinds)
                row.append(kind)
            rows.append(row)
        self.which = _filled(rows)
        self.items = _filled([[index[label] for label in places] for places in self.places])
        self.widths = np.array([len(places) for places in self.places])

    def _kind(self, features: Context, kinds: dict[Any, int]) -> int:
        # Values are floats, texts and tuples of them: a text of them says whether two are the same.
        key = repr(features) if isinstance(features, dict) else features.tobytes()
        found = kinds.setdefault(key, len(kinds))
        if found == len(self.features):
            self.features.append(features)
        return found

    def chosen(self, i: int) -> Context | None:
        """The features of a round's action, if they are known."""
        return self._chosen[i]

    def offered(self, i: int) -> dict[Label, Context]:
        """The candidates of a round with their features, all of which have to be known."""
        row, places = self.which[i], self.places[i]
        if (row[: len(places)] < 0).any():
            self.check_complete("an agent", i)
        return {label: self.features[row[place]] for label, place in places.items()}

    def check_complete(self, who: str, first: int = 0) -> None:
        """Refuse a log that does not say what could be chosen, from a round on."""
        unknown = (self.which < 0).sum(axis=1) - (self.which.shape[1] - self.widths)
        lacking = np.flatnonzero(unknown[first:] > 0) + first
        if len(lacking):
            i = int(lacking[0])
            raise InputError(
                f"{who} has to know what could be chosen, and round {i} has the features of "
                f"{self.widths[i] - unknown[i]} of its {self.widths[i]} actions; expected those of "
                "all that were eligible, as Agent(log=...) logs them"
            )


def _filled(rows: list[list[int]]) -> Ints:
    """Rows of unequal length as a table, filled with -1."""
    table = np.full((len(rows), max(map(len, rows))), -1)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return table


def alike(shelf: Shelf, embedding: Embedding = None) -> Ints:
    """Of each round and place, the first place of the round with the same embedding, (n, S).

    Places without a candidate are alike to themselves only.
    """
    codes = _codes(shelf, embedding)
    n, width = shelf.which.shape
    own = np.where(shelf.which >= 0, codes[shelf.which], -1 - np.arange(width))
    first = np.empty((n, width), np.int64)
    for place in range(width):
        first[:, place] = (own == own[:, [place]]).argmax(axis=1)
    return first


def gathered(values: Floats, groups: Ints) -> Floats:
    """Values of each row summed into the first place of their group; 0 in the others.

    >>> gathered(np.array([[0.5, 0.2, 0.3]]), np.array([[0, 1, 0]]))
    array([[0.8, 0.2, 0. ]])
    """
    sums = np.zeros_like(values)
    np.add.at(sums, (np.arange(len(values))[:, None], groups), values)
    return sums


def _codes(shelf: Shelf, embedding: Embedding) -> Ints:
    """A number for every kind of candidate; equal where embeddings are."""
    if callable(embedding):
        keys = [_key(embedding, features) for features in shelf.features]
    else:
        names = _names(shelf.features, embedding)
        counts = np.bincount(shelf.which[shelf.which >= 0], minlength=len(shelf.features))
        columns = [
            _column([_value(features, name) for features in shelf.features], counts)
            for name in names
        ]
        keys = list(zip(*columns, strict=True)) if columns else [()] * len(shelf.features)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _key(embedding: Callable[[Context], Hashable], features: Context) -> Hashable:
    own = dict(features) if isinstance(features, dict) else features.copy()
    key = embedding(own)
    try:
        hash(key)
    except TypeError:
        raise InputError(
            f"the embedding of {shown(features)} is {shown(key)}; expected something that can be "
            "compared as a whole: a text, a number, or a tuple of these"
        ) from None
    return key


def _names(features: list[Context], embedding: Any) -> list[Any]:
    """The features to go by: all, or those that are named, which have to exist."""
    known: dict[Any, None] = {}
    for named in features:
        known |= dict.fromkeys(named if isinstance(named, dict) else range(len(named)))
    if embedding is None:
        return list(known)
    if isinstance(embedding, str) or not isinstance(embedding, Sequence) or not embedding:
        raise InputError(
            f"the embedding is {shown(embedding)}; expected names of the candidates' features, "
            "such as ['topic'], or a function of them"
        )
    for name in embedding:
        if name not in known:
            raise unknown("feature of candidates", str(name), [str(feature) for feature in known])
    return list(embedding)


def _value(features: Context, name: Any) -> Any:
    if isinstance(features, dict):
        return features.get(name)
    return float(features[name])


def _column(values: list[Any], counts: Ints) -> list[Hashable]:
    """One feature of every kind of candidate, numbers in bins where they are many."""
    numbers = np.array([value if isinstance(value, float) else np.nan for value in values])
    there = ~np.isnan(numbers)
    if len(np.unique(numbers[there])) > N_BINS:
        ends = _quantiles(numbers[there], counts[there])
        bins = np.searchsorted(ends, numbers)
        return [
            ("bin", int(b)) if t else value for b, t, value in zip(bins, there, values, strict=True)
        ]
    return values


def _quantiles(numbers: Floats, counts: Ints) -> Floats:
    """The numbers that end each bin but the last, by how often each was on offer."""
    order = np.argsort(numbers, kind="stable")
    shares = counts[order].cumsum() / counts.sum()
    ends = np.searchsorted(shares, np.arange(1, N_BINS) / N_BINS)
    return np.unique(numbers[order][np.minimum(ends, len(order) - 1)])
