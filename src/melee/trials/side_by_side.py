"""`SideBySide`: explorers that decide about shares of the traffic, compared by reading the journal.

Who is drawn into a trial is chance that is known, so rounds weigh one over it: the mean of weighted
rewards is what either would earn if it decided all. Where decisions are about somebody who comes
again, a *unit*, who stays in the same trial, only the first decision about each counts: the others
would be of the same luck, and evidence that may be looked at any time needs luck that is new.
"""

import hashlib
from typing import NamedTuple

from melee.agent.trials import Trial, agent_name
from melee.checks import RewardRange
from melee.explorers import parse
from melee.journal import Event, Journal, events
from melee.trials.shadow import ends_of
from melee.trials.tally import Compared, Tally, in_words

_BITS = 24


class _Drawn(NamedTuple):
    """A decision that waits: the trial that it was drawn into, and the shares there were."""

    trial: str | None
    shares: dict[str, float]


class SideBySide:
    """Rewards of an agent and of the trials that have shares of its decisions.

    Parameters
    ----------
    journal
        Of the agent; it is only read.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.place = journal.start
        self.trials: dict[str, Trial] = {}
        self.tallies: dict[str, Tally] = {}
        self.own: dict[str, int] = {}
        self._agents: dict[str, str | None] = {journal.name: None}
        self._default: dict[str, float | None] = {}
        self._shares: dict[str, float] = {}
        self._waiting: dict[tuple[str, str], _Drawn] = {}
        self._seen: bytearray | None = None

    def begin_with(self, trials: dict[str, Trial]) -> None:
        """Know trials whose beginnings retention has dropped."""
        for one in trials.values():
            if one.name not in self.trials:
                self._begin(one.name, one.explorer, one.share)

    def read(self, most: int | None = None) -> bool:
        """Go through what has happened since, so many events at most; whether that was all."""
        end = self.journal.head
        for n, event in enumerate(self.journal.store.rows(self.place.seq, end.seq), start=1):
            self.place = event.head
            if event.agent in self._agents:
                self._take(event)
            if n == most:
                return False
        self.place = end
        return True

    def _take(self, event: Event) -> None:
        kind, body = event.kind, event.content
        key = (event.agent, str(event.id))
        if kind == events.TRIAL:
            if body["share"] is None:
                self.trials.pop(body["trial"], None)
                self._shares = self._acting()
            else:
                self._begin(body["trial"], body.get("explorer"), body["share"])
        elif kind in (events.CREATED, events.SETTINGS):
            given = body.get("parameters", {})
            if "default_reward" in given:
                self._default[event.agent] = given["default_reward"]
        elif kind == events.DECISION:
            if "unit" in body and "given" not in body and self._is_new(body["unit"]):
                self._waiting[key] = _Drawn(self._agents[event.agent], self._shares)
        elif kind in (events.REWARD, events.RECORD):
            self._add(key, body["reward"])
        elif kind == events.TIME_OUT:
            for id in body["ids"]:
                self._add((event.agent, id), self._default.get(event.agent))

    def _begin(self, name: str, explorer: str | None, share: float) -> None:
        before = self.trials.get(name)
        spec = before.explorer if before is not None else str(explorer)
        self.trials[name] = Trial(name, spec, share, "")
        self._shares = self._acting()
        if share > 0.0:
            self._agents[agent_name(self.journal.name, name)] = name
            self.tallies.setdefault(name, Tally())
            self.own.setdefault(name, 0)

    def _acting(self) -> dict[str, float]:
        return {one.name: one.share for one in self.trials.values() if one.share > 0.0}

    def _is_new(self, unit: str | None) -> bool:
        """Whether this is the first decision about somebody; of a few it is forgotten.

        A bit stands for all whose hash is the same: some who are new are left out, by chance.
        """
        if unit is None:
            return True
        if self._seen is None:
            self._seen = bytearray(1 << (_BITS - 3))
        digest = hashlib.blake2b(unit.encode("utf-8", "surrogatepass"), digest_size=4).digest()
        number = int.from_bytes(digest, "big") >> (32 - _BITS)
        place, bit = number >> 3, 1 << (number & 7)
        is_new = not self._seen[place] & bit
        self._seen[place] |= bit
        return is_new

    def _add(self, key: tuple[str, str], reward: float | None) -> None:
        drawn = self._waiting.pop(key, None)
        if drawn is None or reward is None:
            return
        left = 1.0 - sum(drawn.shares.values())
        for name in [drawn.trial] if drawn.trial is not None else list(drawn.shares):
            share = drawn.shares.get(name)
            if share is None:  # it had ended
                continue
            chance = share / (share + left)  # of the two that are compared
            widest = 1.0 / min(chance, 1.0 - chance)
            if drawn.trial is None:
                self.tallies[name].add(float(reward), 0.0, 1.0 / (1.0 - chance), widest)
            else:
                self.own[name] += 1
                self.tallies[name].add(float(reward), 1.0 / chance, 0.0, widest)

    def compared(self, name: str, reward_range: RewardRange) -> Compared:
        """What is known by now of how a trial does."""
        trial, tally = self.trials[name], self.tallies.get(name, Tally())
        average, baseline = tally.means
        found = tally.difference(reward_range) if self.own.get(name) else None
        return Compared(
            name,
            parse(trial.explorer).short_spec,
            trial.share,
            "share",
            len(tally),
            self.own.get(name, 0),
            average,
            baseline,
            *ends_of(found),
            None,
            in_words(found, name, "the agent", len(tally), estimated=False),
        )
