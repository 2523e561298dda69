"""Candidates that come again are found quickly: as they were read, and as rows."""

from typing import Any, NamedTuple

import numpy as np

from melee.agent.arguments import read_labels
from melee.agent.offered import Offered, listed, offer
from melee.agent.pairs import LEAST_ROOM
from melee.arrays import Floats
from melee.contexts import Context, read_features
from melee.errors import shown
from melee.features import FeatureMap
from melee.labels import Label, check_label

MOST_KEPT = 2**15
"""Candidates whose rows are kept."""


ANY = -1
"""Stands for all revisions of a map as long as its layout stays."""


class _Latest(NamedTuple):
    """What was offered the last time, which is often what is offered the next."""

    given: dict[Label, Context]
    offered: Offered
    table: Floats
    revision: int  # of the map that the table is by, or any


class _Kept(NamedTuple):
    """A candidate's features, and where its row is."""

    features: Context
    row: int
    is_known: bool  # whether learning them would find nothing new
    revision: int  # of the map that the row is by, or any


class Familiar:
    """Candidates that were offered lately, and their rows; all of it can be found anew.

    Parameters
    ----------
    traits
        The map from candidates' features to rows. When its layout changes, all rows are dropped;
        when only the means do that stand for missing numbers, those in which numbers are missing.
    """

    def __init__(self, traits: FeatureMap) -> None:
        self.traits = traits
        self.clear()

    def clear(self) -> None:
        """Have no rows."""
        self.kept: dict[Label, _Kept] = {}
        self._table = np.zeros((LEAST_ROOM, self.traits.n_features))
        self._layout = self.traits.layout
        self._latest: _Latest | None = None

    def read(self, actions: Any) -> Offered:
        """The candidates that a caller offers; changes nothing that matters."""
        latest = self._latest
        again = latest is not None and _same(latest.given, actions)
        if again and latest is not None and tuple(actions) == latest.offered.labels:
            return latest.offered
        pairs = listed(actions)
        kept, features = self.kept, []
        labels = tuple(label if type(label) is str else check_label(label) for label, _ in pairs)
        if type(actions) is not dict:  # whose labels differ
            read_labels(labels, 1)
        for label, (_, given) in zip(labels, pairs, strict=True):
            known = kept.get(label)
            if known is None or not _same(known.features, given):
                features.append(read_features(given, f"candidate {shown(label)}"))
            else:
                features.append(known.features)
        return offer(labels, tuple(features))

    def is_latest(self, offered: Offered) -> bool:
        """Whether these were offered the last time."""
        return self._latest is not None and self._latest.offered is offered

    def rows(self, offered: Offered) -> Floats:
        """The rows of candidates."""
        if self._layout != self.traits.layout:
            self.clear()
        valid = (ANY, self.traits.revision)
        latest = self._latest
        if latest is not None and latest.offered is offered and latest.revision in valid:
            return latest.table
        if len(self.kept) > MOST_KEPT:
            self.clear()
        kept, places = self.kept, np.empty(len(offered.labels), np.int64)
        revision = ANY
        for i, (label, features) in enumerate(zip(offered.labels, offered.features, strict=True)):
            known = kept.get(label)
            if known is None or known.features is not features or known.revision not in valid:
                known = self._keep(label, features)
            places[i] = known.row
            if known.revision != ANY:
                revision = known.revision
        table = self._table[places]
        named = dict(zip(offered.labels, offered.features, strict=True))
        self._latest = _Latest(named, offered, table, revision)
        return table

    def is_known(self, label: Label) -> bool:
        """Whether learning the features of a candidate, which has a row, would find nothing new."""
        kept = self.kept[label]
        return kept.is_known or self._keep(label, kept.features).is_known

    def _keep(self, label: Label, features: Context) -> _Kept:
        place = len(self.kept)
        if label in self.kept:
            place = self.kept[label].row
        elif place == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        is_known = self.traits.encode(features, self._table[place])
        revision = ANY if self.traits.has_numbers(features) else self.traits.revision
        self.kept[label] = _Kept(features, place, is_known, revision)
        return self.kept[label]


def _same(known: Any, given: Any) -> bool:
    """Whether features are those that are known, to be found quickly."""
    if type(given) is not dict or type(known) is not dict:
        return False
    try:
        return bool(known == given)
    except Exception:  # whatever an object of the caller's raises
        return False
