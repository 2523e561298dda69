"""What the results of a benchmark say, and how sure one may be of it.

Per dataset (`paired`, `matrix`, `level`): who beats whom, by the paper's test and by one that
holds its level, and a check of both. Across datasets (`across`): relative rewards, mean
differences, signed ranks, rank diagrams.
"""

from melee.statistics.across import (
    MeanDifference,
    RankDiagram,
    SignedRank,
    average_ranks,
    cdf,
    critical_difference,
    least_p_value,
    mean_differences,
    rank_diagram,
    relative_rewards,
    wilcoxon_holm,
)
from melee.statistics.level import LevelCheck, Share, a_a, check_levels, together
from melee.statistics.matrix import Pair, WinLoss, compare_pairs, outcomes, win_loss_matrix
from melee.statistics.paired import Tested, moderated_t, paired_t, seed_t

__all__ = [
    "LevelCheck",
    "MeanDifference",
    "Pair",
    "RankDiagram",
    "Share",
    "SignedRank",
    "Tested",
    "WinLoss",
    "a_a",
    "average_ranks",
    "cdf",
    "check_levels",
    "compare_pairs",
    "critical_difference",
    "least_p_value",
    "mean_differences",
    "moderated_t",
    "outcomes",
    "paired_t",
    "rank_diagram",
    "relative_rewards",
    "seed_t",
    "together",
    "wilcoxon_holm",
    "win_loss_matrix",
]
