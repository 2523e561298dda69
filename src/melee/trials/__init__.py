"""Trying things safely: another explorer on a share of the decisions, or as a shadow of all.

    tally.py         what rounds say of two that are compared, at any time
    shadow.py        Shadow: what another explorer, or an apprentice, would have chosen and earned
    side_by_side.py  SideBySide: two that decide about shares of the traffic
    beginning.py     a trial begins with all that is known
    trials.py        Trials: an agent and its trials as one

What trials there are is part of the agent (`melee.agent.trials`). All that is said of them is
derived from the journal by reading it, beside whoever decides: so it can be derived again by
anybody, at any time, and costs deciding nothing.
"""

from melee.trials.shadow import Shadow
from melee.trials.side_by_side import SideBySide
from melee.trials.tally import Compared
from melee.trials.trials import Trials, compare

__all__ = ["Compared", "Shadow", "SideBySide", "Trials", "compare"]
