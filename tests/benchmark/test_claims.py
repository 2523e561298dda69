"""The tables of claims about `melee`, from results that are made up."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from benchmarks import claims, melee_rewards, pages, production_shares
from benchmarks.claims import Row, difference, of_development, rows_of, spread, won
from melee.benchmark.results import CellResult, Results
from melee.datasets import load_suite
from melee.datasets.uses import USES
from melee.explorers import parse
from melee.statistics import LevelCheck, Share, compare_pairs

OVER_OWN = claims.as_listed(f"linucb{production_shares.OWN}:alpha=0.6")
POLICIES = ["melee", "melee:policy=seed1", "melee:policy=seed2"]
FAMILIES = {"linucb": ["linucb:alpha=0.1", "linucb:alpha=0.2"], "greedy": ["epsilon-greedy"]}
LEVELS = {
    "melee": 0.70,
    "melee:policy=seed1": 0.72,
    "melee:policy=seed2": 0.74,
    "linucb:alpha=0.1": 0.40,
    "linucb:alpha=0.2": 0.50,
    "epsilon-greedy": 0.90,
}


def made(datasets, levels, n_seeds=3, n_rounds=200, families=None, shares=None):
    """Rewards drawn at these rates; shares as given, or the rates."""
    rng = np.random.default_rng(0)
    return Results.of(
        CellResult(
            dataset,
            (families or {}).get(dataset, dataset),
            n_rounds,
            2,
            2,
            explorer,
            seed,
            (rng.random(n_rounds) < rate) * 1.0,
            0.0,
            share=rate if shares is None else shares[explorer][dataset],
        )
        for dataset in datasets
        for explorer, rate in levels.items()
        for seed in range(n_seeds)
    )


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def row_of(lines, name):
    """The cells of the table's row whose first cell is this."""
    return next(cells for cells in map(cells_of, lines) if cells[0] == name)


def test_families_stand_at_their_best_setting_and_policies_as_one_row():
    scores = {spec: np.array([level, level]) for spec, level in LEVELS.items()}
    rows = rows_of(scores, {"melee": POLICIES}, {**FAMILIES, "never played": ["uniform"]})
    assert [row.name for row in rows] == ["greedy", "melee", "linucb"]
    assert rows[1].specs == POLICIES
    assert_allclose(rows[1].means, [0.70, 0.72, 0.74])
    assert rows[2].specs == [parse("linucb:alpha=0.2").short_spec]


def test_a_difference_is_that_of_the_mean_over_policies_with_students_interval():
    rng = np.random.default_rng(1)
    mine = Row("melee", POLICIES, rng.random((3, 8)))
    other = Row("linucb", ["linucb"], rng.random((1, 8)))
    found = difference(mine, other, np.arange(8))
    apart = mine.values.mean(axis=0) - other.values[0]
    low, high = stats.ttest_1samp(apart, 0.0).confidence_interval(0.95)
    assert_allclose([found.mean, found.low, found.high], [apart.mean(), low, high])
    assert_allclose(found.of_policies, (mine.values - other.values).mean(axis=1))


def test_datasets_of_one_family_make_the_interval_wider_and_a_single_one_has_none():
    # Two families of four equal differences each are two observations, not eight.
    mine = Row("melee", ["melee"], np.repeat([[0.0, 0.1]], 4, axis=1))
    other = Row("linucb", ["linucb"], np.zeros((1, 8)))
    alone, together = (difference(mine, other, c) for c in (np.arange(8), np.repeat([0, 1], 4)))
    assert (alone.told, together.told) == (1, 0)
    assert together.high > alone.high
    single = difference(mine, other, np.zeros(8, dtype=np.int64))
    assert np.isnan(single.low)
    assert (str(single), single.told) == ("+0.0500", 0)


@pytest.mark.parametrize(("shift", "told"), [(0.5, 1), (-0.5, -1), (0.0, 0)])
def test_a_difference_tells_what_its_interval_tells(shift, told):
    values = np.random.default_rng(2).normal(size=(1, 20)) * 0.1
    found = difference(
        Row("a", ["a"], values - values.mean() + shift),
        Row("b", ["b"], np.zeros((1, 20))),
        np.arange(20),
    )
    assert found.told == told


def test_wins_are_counted_for_every_policy_by_either_test():
    results = made([f"d{i}" for i in range(6)], LEVELS)
    mine = Row("melee", POLICIES, np.zeros((3, 6)))
    worse = Row("linucb", ["linucb:alpha=0.1"], np.zeros((1, 6)))
    assert won(results, mine, worse, "rounds") == "6.0–0.0 (net +6 to +6)"
    alone = Row("melee", ["melee"], np.zeros((1, 6)))
    assert won(results, worse, alone, "rounds") == "0–6"
    cells = [one for one in results if one.explorer in ("melee", "linucb:alpha=0.1")]
    (held,) = compare_pairs(Results.of(cells), test="seeds")
    assert 0 < held.wins < 6  # which the paper's test does not see
    assert won(results, alone, worse, "seeds") == f"{held.wins}–{held.losses}"
    assert re.fullmatch(r"0\.0–\d\.\d \(net -\d to [+-]\d\)", won(
        results, mine, Row("greedy", ["epsilon-greedy"], np.zeros((1, 6))), "rounds"
    ))  # fmt: skip


def test_one_seed_has_no_test_over_seeds():
    results = made(["d0", "d1"], LEVELS, n_seeds=1)
    one, other = (Row(n, [n], np.zeros((1, 2))) for n in ("melee", "epsilon-greedy"))
    assert won(results, one, other, "seeds") == "–"


def test_the_papers_development_sets_are_found_by_name_by_rows_and_by_object():
    families = {entry.name: entry.family for entry in load_suite("paper300")}
    found = of_development(families)
    assert len(found) == len(set(found))
    assert {"car", "splice-953", "waveform-5000"} <= set(found)  # in two-class form
    assert {"glass", "prnn_fglass"} <= set(found)  # the same rows under two names
    assert {"mfeat-pixel", "mfeat-zernike", "mfeat-factors"} <= set(found)  # the same digits
    assert not {"kr-vs-kp", "iris", "quake-772", "quake-948"} & set(found)
    assert not any(name.startswith("fri_c") for name in found)


def test_levels_are_measured_or_quoted_from_where_they_were(tmp_path):
    check = LevelCheck(0.01, 30, Share(24, 200), Share(1, 200))
    assert "12.0% of 200 comparisons by the paper's test, on 0.5%" in claims.level_of(check)
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nA/A check: 9% by one, 1% by the other.\n")
    assert claims.level_of(None, page).endswith(": 9% by one, 1% by the other.")
    page.write_text("# Page\n")
    assert claims.level_of(None, page).endswith("(reproduction.md).")
    assert "paper's test" in claims.level_of(None)  # our own page has them


def test_the_table_of_rewards_sets_development_apart_and_names_both_tests():
    datasets = {"car": "car", "glass": "g", "prnn_fglass": "g", "iris": "iris", "quake": "quake"}
    results = made(datasets, LEVELS, families=datasets)
    text = melee_rewards.text_of(results, {"melee": POLICIES}, FAMILIES, None)
    whole, apart = text.split("**The 2 apart from development.**")
    assert "3 are development sets in another form: car, glass, prnn_fglass." in apart
    for part, names in [(whole, list(datasets)), (apart, ["iris", "quake"])]:
        lines = part.splitlines()
        head = next(line for line in lines if line.startswith("| explorer"))
        assert "test over seeds" in head
        assert "the paper's test" in head
        kept = claims.part_of(results, names, results.explorers)
        means = dict(zip(kept.explorers, kept.mean_rewards().mean(axis=0), strict=True))
        mine = spread([means[one] for one in POLICIES])
        assert row_of(lines, "**melee**")[2] == f"**{mine}**"
        cells = row_of(lines, "linucb")
        assert cells[2] == f"{means['linucb:alpha=0.2']:.4f}"
        gaps = [means[one] - means["linucb:alpha=0.2"] for one in POLICIES]
        assert cells[3].startswith(f"{np.mean(gaps):+.4f} (")
        assert cells[4] == f"{min(gaps):+.4f} to {max(gaps):+.4f}"


def test_the_words_below_the_table_follow_the_numbers():
    results = made([f"d{i}" for i in range(6)], LEVELS)
    text = melee_rewards.text_of(results, {"melee": POLICIES}, FAMILIES, None)
    assert re.search(r"`melee` is behind: greedy by 0\.1\d\d\d\.", text)
    assert "It is ahead of: linucb." in text
    assert "No interval contains 0." in text
    assert "All are apart from the development sets." in text


def test_other_ways_to_play_melee_are_compared_policy_by_policy():
    cold = list(map(claims.as_listed, claims.own_specs("seed1,seed2", ":cold=true")))
    levels = {**LEVELS, **dict(zip(cold, (0.69, 0.71, 0.73), strict=True))}
    results = made(["d0", "d1", "d2"], levels)
    mine = {"melee": POLICIES, "melee, cold": cold}
    text = melee_rewards.text_of(results, mine, FAMILIES, None)
    cells = row_of(text.splitlines(), "melee, cold")
    means = dict(zip(results.explorers, results.mean_rewards().mean(axis=0), strict=True))
    gaps = [means[a] - means[b] for a, b in zip(POLICIES, cold, strict=True)]
    assert cells[4] == f"{min(gaps):+.4f} to {max(gaps):+.4f}"
    assert "melee, cold" not in text.rsplit("|", 1)[1]  # it is no other family


def test_the_quick_settings_are_some_of_all_and_families_can_be_named():
    for family, specs in melee_rewards.QUICK.items():
        every = {parse(spec).short_spec for spec in melee_rewards.FAMILIES[family]}
        assert {parse(spec).short_spec for spec in specs} <= every
    assert list(claims.named(melee_rewards.QUICK, "thompson,linucb")) == ["thompson", "linucb"]
    assert claims.named(melee_rewards.FAMILIES, "") == melee_rewards.FAMILIES
    with pytest.raises(SystemExit, match="no family 'linucp'; expected some of linucb"):
        claims.named(melee_rewards.QUICK, "linucp")


@pytest.fixture(scope="module")
def production():
    """All uses but one; `melee` is bad in drift and A/B tests, gated UCB is good there."""
    uses = [use for use in USES if use != "late-1000-4"]
    weak = {use: use.startswith(("drift", "ab-")) for use in uses}
    shares = {
        "melee": {use: 0.3 if weak[use] else 0.9 for use in uses},
        "melee:policy=seed1": {use: 0.5 if weak[use] else 0.9 for use in uses},
        "linucb": dict.fromkeys(uses, 0.7),
        "linucb:alpha=0.5": dict.fromkeys(uses, 0.75),
        OVER_OWN: dict.fromkeys(uses, 0.65),
        "gated-ucb": {use: 0.95 if weak[use] else 0.2 for use in uses},
        "uniform": dict.fromkeys(uses, 0.0),
    }
    levels = dict.fromkeys(shares, 0.5)
    results = made(uses, levels, n_seeds=2, n_rounds=2, shares=shares)
    results.datasets.append("late-1000-4")
    mine = list(shares)[:2]
    return production_shares.text_of(results, mine), uses, weak


def test_shares_of_policies_stand_in_one_row(production):
    (page, _, rows), uses, weak = production
    n, n_weak = len(uses), sum(weak.values())
    means = [(0.9 * (n - n_weak) + low * n_weak) / n for low in (0.3, 0.5)]
    cells = row_of(page.splitlines(), "**melee**")
    assert cells[2] == spread(means, ".3f")
    assert cells[4] == "0.40 (0.30 to 0.50)"
    assert cells[6] == f"{n_weak}" + f" ({n_weak} to {n_weak})"
    assert [row.name for row in rows][:2] == ["melee", "linucb"]


def test_the_page_says_what_falls_short(production):
    (page, *_), uses, weak = production
    assert f"{len(uses)} of {len(USES)} uses" in page
    assert "Not played by all, and left out: late-1000-4." in page
    low = next(line for line in page.splitlines() if "below 0.60 on" in line)
    assert all((f"{use} 0.40" in low) == weak[use] for use in uses)
    far = next(line for line in page.splitlines() if "More than 0.10 behind" in line)
    assert all((f"{use} 0.55" in far) == weak[use] for use in uses)
    assert "number 1 of" in page
    assert "linucb at its best reaches 0.750 over a ridge, and 0.650 over the learner" in page
    assert "No family is ahead of it." in page


def test_every_kind_has_its_best_other_family_and_the_best_in_hindsight(production):
    (page, *_), uses, _ = production
    lines = page.splitlines()
    drift = row_of(lines, "drift")
    assert drift[1:5] == ["2", "0.400 (0.300 to 0.500)", "gated-ucb", "0.950"]
    assert drift[5].startswith("-0.5500")
    assert drift[6] == "0.950"
    clicks = row_of(lines, "clicks")
    assert clicks[2:5] == ["0.900 (0.900 to 0.900)", "linucb", "0.750"]
    for use in uses:
        assert any(belongs(USES[use]) for belongs in production_shares.KINDS.values()), use


def test_kinds_are_what_their_names_say():
    kinds = {
        kind: {use for use in USES if belongs(USES[use])}
        for kind, belongs in production_shares.KINDS.items()
    }
    assert kinds["A/B tests, no context"] == {use for use in USES if use.startswith("ab-")}
    assert kinds["drift"] == {"drift-slow-5-linear", "drift-sudden-6"}
    assert "success-99pct-4-linear" not in kinds["clicks"]
    assert kinds["successes, 90 % and more"] == {u for u in USES if u.startswith("success")}
    assert {"revenue-6-linear", "seconds-5-linear"} <= kinds["revenue, other numbers"]
    assert {"actions-100-linear", "clicks-3pct-50-linear"} <= kinds["20 actions and more"]


def test_the_first_page_has_melee_and_at_most_five_others(production):
    (_, first, _), _, _ = production
    lines = first.splitlines()[2:]
    assert [cells_of(line)[0] for line in lines] == [
        "**`melee`**, nothing tuned",
        "linucb, tuned",
        "gated-ucb, tuned",
        "uniform, tuned",
    ]
    rows = [Row(f"e{i}", [f"e{i}"], np.full((1, 3), 0.9 - 0.1 * i)) for i in range(8)]
    last = Row("melee", ["melee"], np.zeros((1, 3)))
    names = [cells_of(line)[0] for line in production_shares.short([*rows, last], ["a"] * 3)[2:]]
    assert names == [*(f"e{i}, tuned" for i in range(5)), "**`melee`**, nothing tuned"]


def test_the_picture_has_melee_and_the_nine_best_others(tmp_path):
    rows = [Row(f"e{i:02}", [f"e{i:02}"], np.full((1, 2), 0.99 - 0.05 * i)) for i in range(12)]
    rows.append(Row("melee", ["melee"], np.zeros((1, 2))))
    production_shares.draw(rows, ["one", "two"], tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    drawn = set(re.findall(r"<!-- (e\d\d|melee)  ", text))
    assert drawn == {"melee", *(f"e{i:02}" for i in range(9))}


@pytest.mark.parametrize(
    ("name", "page"),
    [("production", "melee.md"), ("production", "../README.md"), ("paper", "melee.md"),
     ("multiclass", "melee.md"), ("live", "how-to/evaluation.md"),
     ("intervals", "how-to/evaluation.md")],
)  # fmt: skip
def test_the_pages_have_the_places_that_are_written_to(name, page, tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    (docs / "how-to").mkdir(parents=True)
    (docs / page).write_text((pages.DOCS / page).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(pages, "DOCS", docs)
    pages.put(name, "| new |", page)
    text = (docs / page).read_text(encoding="utf-8")
    assert f"<!-- {name}: begin -->\n\n| new |\n\n<!-- {name}: end -->" in text
