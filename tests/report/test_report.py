"""What the report says, against the results that it was made from."""

import csv
import dataclasses
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.benchmark.results import CellResult, Results
from melee.errors import InputError
from melee.report import charts, collect, write_report
from melee.statistics import check_levels, mean_differences, win_loss_matrix
from tests.report.fabricate import fabricate


def embedded(path):
    """The data inside a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text())
    assert found is not None
    return json.loads(found[1])


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def results():
    return fabricate(8, 5, failed=(3,))


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    return write_report(results, tmp_path_factory.mktemp("report"))


def test_the_page_asks_for_nothing_from_a_network(report):
    text = report.read_text()
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", text)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text


def test_the_page_has_the_rewards_of_the_results(results, report):
    data = embedded(report)
    complete = [one for one in data["datasets"] if one["complete"]]
    assert [one["name"] for one in complete] == results.complete_datasets()
    assert_allclose([one["reward"] for one in complete], results.mean_rewards(), atol=1e-6)
    headline = {data["explorers"][row["explorer"]]: row for row in data["headline"]}
    for i, explorer in enumerate(results.explorers):
        assert headline[explorer]["reward"] == pytest.approx(
            results.mean_rewards()[:, i].mean(), abs=1e-6
        )
        cells = [
            results.cell(dataset, explorer, seed)
            for dataset in results.complete_datasets()
            for seed in results.seeds
        ]
        seconds = 1000 * sum(c.seconds for c in cells) / sum(len(c.rewards) for c in cells)
        assert headline[explorer]["seconds"] == pytest.approx(seconds, abs=1e-6)


def with_shares(results, unknown=()):
    """The same results, as if expected rewards were known on all but some datasets."""
    cells = [
        one
        if one.dataset in unknown or one.problem
        else dataclasses.replace(one, share=2.0 * one.mean_reward - 1.0, expected_reward=0.5)
        for one in results
    ]
    return Results.of(cells, results.about)


def test_shares_are_shown_by_use_where_they_are_known(results, tmp_path):
    known = with_shares(results, unknown=("dataset-2",))
    path = write_report(known, tmp_path)
    shares = embedded(path)["shares"]
    names = [one for one in results.complete_datasets() if one != "dataset-2"]
    assert shares["datasets"] == names
    rows = [results.complete_datasets().index(one) for one in names]
    expected = 2.0 * results.mean_rewards()[rows] - 1.0
    assert_allclose(shares["values"], expected, atol=1e-6)
    assert_allclose(shares["mean"], expected.mean(axis=0), atol=1e-6)
    assert_allclose(shares["worst"], expected.min(axis=0), atol=1e-6)
    best = int(expected.mean(axis=0).argmax())
    assert shares["order"][0] == best
    said = embedded(path)["summary"]
    assert f"over 6 uses: {results.explorers[best]} {expected[:, best].mean():.2f} (worst" in said
    told = {
        (row["dataset"], row["explorer"]): float(row["share"])
        for row in table(path.parent / "tables" / "shares.csv")
    }
    for i, explorer in enumerate(results.explorers):
        assert told["worst", explorer] == pytest.approx(expected[:, i].min())
    cells = table(path.parent / "tables" / "results.csv")
    assert {row["share"] == "" for row in cells if row["dataset"] == "dataset-2"} == {True}
    assert {row["share"] == "" for row in cells if row["dataset"] != "dataset-2"} == {False}
    assert (path.parent / "figures" / "shares.svg").exists()


def test_where_all_uses_have_shares_they_decide_the_order(results):
    upside_down = Results.of(
        [
            one if one.problem else dataclasses.replace(one, share=-one.mean_reward)
            for one in results
        ],
        results.about,
    )
    data = collect(upside_down)
    assert data.order == collect(results).order[::-1]
    assert [row.explorer for row in data.headline] == data.order
    assert data.summary.startswith("Mean share of what can be gained, over 7 uses: ")
    assert data.headline[0].gap is None


def test_where_all_uses_have_shares_explorers_are_compared_by_them(results, tmp_path, monkeypatch):
    monkeypatch.setattr(charts, "figures", lambda data: {})  # which take a second or two
    # A use that pays a thousand times as much decides every mean reward, and no mean share.
    paid = [
        one
        if one.dataset != "dataset-0" or one.problem
        else dataclasses.replace(one, rewards=1000.0 * one.rewards)
        for one in with_shares(results)
    ]
    plain, data = collect(results), collect(Results.of(paid, results.about))
    assert (plain.by_share, data.by_share) == (False, True)
    for row, same in zip(data.headline, plain.headline, strict=True):
        assert row.explorer == same.explorer
        if row.gap is not None and same.gap is not None:
            assert row.gap == pytest.approx([2.0 * number for number in same.gap])
        assert row.p_value == pytest.approx(same.p_value)
    leader, second = data.order[:2]
    gap = next(row.gap for row in data.headline if row.explorer == second)
    assert gap is not None
    names = data.explorers
    assert f" {names[second]} follows, {-gap[0]:.2f} behind, with a 95 % interval" in data.summary
    assert "of shares" in data.headline_note
    path = write_report(Results.of(paid, results.about), tmp_path)
    rows = {row["explorer"]: row for row in table(path.parent / "tables" / "headline.csv")}
    assert rows[names[second]]["difference_of"] == "share"
    assert float(rows[names[second]]["against_leader"]) == pytest.approx(gap[0])
    assert rows[names[leader]]["against_leader"] == ""


def test_without_shares_there_is_no_table_of_them(results, report, tmp_path):
    assert embedded(report)["shares"] is None
    assert "uses" not in embedded(report)["summary"]
    small = fabricate(1, 1, 1)
    write_report(with_shares(small), tmp_path)
    files = [tmp_path / "tables" / "shares.csv", tmp_path / "figures" / "shares.png"]
    assert [path.exists() for path in files] == [True, True]
    write_report(small, tmp_path)  # what is no longer true goes
    assert [path.exists() for path in files] == [False, False]


def test_the_best_explorer_comes_first(report):
    rewards = [row["reward"] for row in embedded(report)["headline"]]
    assert rewards == sorted(rewards, reverse=True)


def test_a_curve_ends_at_the_mean_reward_of_its_dataset(results, report):
    data = embedded(report)
    curves = [one for one in data["curves"] if one["dataset"] is not None]
    assert [one["dataset"] for one in curves] == results.complete_datasets()
    ends = np.array([[curve[-1] for curve in one["mean"]] for one in curves])
    assert_allclose(ends / data["curve_scale"], results.mean_rewards(), atol=1e-4)
    assert all(np.all(np.diff(one["x"]) > 0) and len(one["x"]) <= 30 for one in curves)
    over_all = next(one for one in data["curves"] if one["dataset"] is None)
    assert_allclose(
        [curve[-1] / data["curve_scale"] for curve in over_all["mean"]],
        results.mean_rewards().mean(axis=0),
        atol=1e-4,
    )


def test_a_band_is_the_standard_error_over_seeds(results):
    one = next(one for one in collect(results).curves if one.dataset == "dataset-0")
    x = one.x[-1]
    ends = [results.cell("dataset-0", results.explorers[2], s).mean_reward for s in results.seeds]
    assert x == results.cell("dataset-0", results.explorers[2], 0).n_rounds
    assert one.band is not None
    assert one.band[2][-1] == pytest.approx(np.std(ends, ddof=1) / np.sqrt(len(ends)))


def test_wins_are_the_datasets_that_the_scatter_colours(results):
    data = collect(results)
    k = len(data.explorers)
    assert len(data.tests) == 2
    for test in data.tests:
        for i in range(k):
            for j in range(i + 1, k):
                signs = test.signs[f"{i},{j}"]
                assert len(signs) == data.n_complete
                assert (signs.count("+"), signs.count("-")) == (test.wins[i][j], test.wins[j][i])


def test_headline_and_matrix_are_those_of_the_statistics(results):
    data = collect(results)
    assert data.tests[0].wins == win_loss_matrix(results, test="seeds").wins.tolist()
    assert data.tests[1].wins == win_loss_matrix(results).wins.tolist()
    net = win_loss_matrix(results, test="seeds").net.sum(axis=1)
    assert [row.net for row in data.headline] == [int(net[row.explorer]) for row in data.headline]
    rows = {data.explorers[row.explorer]: row for row in data.headline}
    leader = next(name for name, row in rows.items() if row.gap is None)
    for one in mean_differences(results):
        if one.row == leader:
            assert rows[one.column].gap == (-one.mean, -one.high, -one.low)
        if one.column == leader:
            assert rows[one.row].gap == (one.mean, one.low, one.high)


def test_a_sign_agrees_with_the_difference_that_it_colours(results):
    data = collect(results)
    complete = [one for one in data.datasets if one.complete]
    for test in data.tests:
        for pair, signs in test.signs.items():
            i, j = map(int, pair.split(","))
            for one, sign in zip(complete, signs, strict=True):
                gap = (one.reward[i] or 0.0) - (one.reward[j] or 0.0)
                assert sign == "0" or (gap > 0) == (sign == "+")


def test_the_a_a_check_stands_beside_each_test(results):
    again = fabricate(8, 5, failed=(3,), replicate=1)
    data = collect(results, again)
    checks = check_levels(results, again)
    for test, kind in zip(data.tests, ("seeds", "rounds"), strict=True):
        shares = [getattr(checks[name], kind) for name in data.explorers]
        assert test.a_a_rates == [one.share for one in shares]
        found = sum(one.count for one in shares)
        assert f"The test told {found} of 35 such pairs apart" in test.a_a


def test_without_an_a_a_check_the_report_says_so(results):
    assert {test.a_a for test in collect(results).tests} == {
        "Not run, so how often this test errs here is not known."
    }
    other = collect(results, fabricate(8, 4))
    assert "the A/A check was given results of 5 explorers" in other.tests[0].a_a
    assert other.tests[0].a_a_rates is None


def test_with_one_seed_only_the_papers_test_is_shown():
    (test,) = collect(fabricate(n_seeds=1)).tests
    assert "needs at least two" in test.note


def test_the_test_that_holds_its_level_comes_first(results):
    data = collect(results)
    assert [test.name for test in data.tests] == ["A test that holds its level", "The paper’s test"]
    assert "By the test that holds its level " in data.summary
    assert "the row’s sum in the matrix of the test that holds its level." in data.headline_note
    alone = collect(fabricate(n_seeds=1))
    assert "By the paper’s test " in alone.summary
    assert "the row’s sum in the matrix of the paper’s test." in alone.headline_note


def test_the_spread_over_seeds_stands_beside_every_mean(results, report):
    data = embedded(report)
    complete = [one for one in data["datasets"] if one["complete"]]
    for row in complete:
        for i, explorer in enumerate(results.explorers):
            means = [results.cell(row["name"], explorer, s).mean_reward for s in results.seeds]
            assert row["spread"][i] == pytest.approx(np.std(means, ddof=1), abs=1e-6)
    assert "The spread is the standard deviation over seeds" in data["datasets_note"]
    told = table(report.parent / "tables" / "datasets.csv")
    first = next(row for row in told if row["dataset"] == complete[0]["name"])
    assert float(first["spread_over_seeds"]) == pytest.approx(complete[0]["spread"][0], abs=1e-6)
    alone = collect(fabricate(n_seeds=1))
    assert {value for row in alone.datasets for value in row.spread} == {None}
    assert "run more to see the spread" in alone.datasets_note


@pytest.mark.parametrize(
    ("n_datasets", "n_explorers", "said"),
    [
        (
            6,
            4,
            "With 3 families the smallest p that Wilcoxon’s test can give is 0.25, and 0.75 after",
        ),
        (2, 2, "With 1 family the smallest p that Wilcoxon’s test can give is 1, and 1 after"),
        (14, 2, "can give is 0.016, and 0.016 after the correction. "),
        (18, 2, None),
    ],
)
def test_the_smallest_p_that_can_be_is_said_where_it_matters(n_datasets, n_explorers, said):
    data = collect(fabricate(n_datasets, n_explorers, rounds=(60, 90)))
    note = data.headline_note + " "
    assert ("smallest p" in note) == (said is not None)
    assert said is None or said in note
    assert ("here no difference can be significant" in note) == (n_datasets <= 6)


def test_no_p_value_is_below_the_smallest(results):
    from melee.statistics import least_p_value, wilcoxon_holm

    steady = Results.of(
        [
            dataclasses.replace(
                one, rewards=np.full(5, 0.1 * results.explorers.index(one.explorer))
            )
            for one in fabricate(10, 3)
        ]
    )
    found = wilcoxon_holm(steady)
    assert {round(one.p_value, 12) for one in found} == {least_p_value(5)}


def test_a_page_has_the_title_that_it_is_given(results, tmp_path, monkeypatch):
    monkeypatch.setattr(charts, "figures", lambda data: {})  # which take a second or two
    path = write_report(fabricate(1, 1, 1), tmp_path, title=" Spring <i>2026</i> ")
    assert embedded(path)["title"] == "Spring <i>2026</i>"
    assert "<title>Spring &lt;i&gt;2026&lt;/i&gt;</title>" in path.read_text()
    assert collect(results).title == "fabricated: explorers compared"
    assert collect(results, title="  ").title == "fabricated: explorers compared"


def test_shares_stand_in_the_headline_and_by_dataset(results):
    known = with_shares(results, unknown=("dataset-2",))
    data = collect(known)
    assert data.shares is not None
    for row in data.headline:
        assert row.share == data.shares.mean[row.explorer]
        assert row.worst_share == data.shares.worst[row.explorer]
    rows = {row.name: row for row in data.datasets}
    assert rows["dataset-2"].share == [None] * 5
    assert rows["dataset-0"].share == pytest.approx(data.shares.values[0])
    of_seeds = [known.cell("dataset-0", data.explorers[1], seed).share for seed in known.seeds]
    assert rows["dataset-0"].share_spread[1] == pytest.approx(np.std(of_seeds, ddof=1))
    assert rows["dataset-2"].share_spread == [None] * 5
    assert "Shares are there where a dataset knows" in data.datasets_note
    without = collect(results)
    assert {row.share for row in without.headline} == {None}
    assert "hares" not in without.datasets_note


def test_long_names_fit_into_figures_and_stay_apart(recwarn):
    long = [f"vw:--cover 16 --nounif --psi 0.1 --cb_type dr -l {rate}" for rate in (0.1, 2)]
    short = fabricate(4, 2, rounds=(60, 90))
    names = dict(zip(short.explorers, long, strict=True))
    cells = [dataclasses.replace(one, explorer=names[one.explorer]) for one in short]
    data = collect(Results.of(cells))
    charts.figures(data)
    assert [str(one.message) for one in recwarn if "layout" in str(one.message)] == []
    drawn = {charts._named(data, i) for i in range(2)}
    assert drawn == {f"{name[:18]}…{name[-17:]}" for name in long}
    assert len(drawn) == 2


def test_failures_are_counted_named_and_explained(report):
    data = embedded(report)
    assert data["facts"][0] == ["7 of 8", "datasets"]
    assert "7 of 8 datasets are complete" in data["failures_note"]
    assert "dataset-3" in data["failures_note"]
    assert data["failures"] == [
        {
            "dataset": "dataset-3",
            "who": "every explorer and seed",
            "reason": "dataset-3: cannot be read; check the file",
        }
    ]


def test_a_cell_that_died_and_one_that_never_ran_are_told_apart(results):
    cells = [one for one in results if one.dataset != "dataset-3"]
    cells[0] = dataclasses.replace(cells[0], rewards=np.empty(0), problem="killed: out of memory")
    data = collect(Results.of(cells[:-1]))
    first, last = data.explorers[0], data.explorers[-1]
    assert [(one.who, one.reason) for one in data.failures] == [
        (f"{first}, seed 0", "killed: out of memory"),
        (f"{last}, seed 2", "not run yet"),
    ]
    assert data.n_complete == 5
    row = data.datasets[0]
    assert row.reward[0] is None
    assert row.reward[1] is not None


def test_the_summary_names_the_leader_and_never_a_reference(results):
    data = collect(fabricate(8, 6))
    assert "full-information" in data.explorers
    leader = next(row for row in data.headline if not row.reference)
    assert data.summary.startswith(data.explorers[leader.explorer])
    assert leader.gap is None
    assert all(row.gap is not None for row in data.headline if row is not leader)


def test_names_cannot_leave_their_place(tmp_path):
    name = "</script><script>alert(1)"
    results = fabricate(2, 3, names=[name, "{{title}} $x$ & <b>"])
    results.about["suite"] = "<i>suite"
    path = write_report(results, tmp_path)
    text = path.read_text()
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert text.count("<script") == 2
    assert "<title>&lt;i&gt;suite" in text
    assert [one["name"] for one in embedded(path)["datasets"]] == [name, "{{title}} $x$ & <b>"]
    assert table(tmp_path / "tables" / "results.csv")[0]["dataset"] == name


def test_tables_hold_what_the_page_shows(results, report):
    tables = report.parent / "tables"
    rows = table(tables / "results.csv")
    assert list(rows[0]) == [
        "dataset",
        "n_rounds",
        "n_features",
        "n_actions",
        "explorer",
        "seed",
        "mean_reward",
        "seconds",
        "expected_reward",
        "share",
    ]
    assert len(rows) == 7 * 5 * 3
    for row in rows:
        one = results.cell(row["dataset"], row["explorer"], int(row["seed"]))
        assert float(row["mean_reward"]) == one.mean_reward
    data = collect(results)
    wins = table(tables / "wins.csv")
    assert len(wins) == 2 * 5 * 4
    for row in wins:
        i, j = data.explorers.index(row["row"]), data.explorers.index(row["column"])
        test = next(one for one in data.tests if one.name == row["test"])
        assert (int(row["wins"]), int(row["losses"])) == (test.wins[i][j], test.wins[j][i])
    assert len(table(tables / "headline.csv")) == 5
    assert table(tables / "failures.csv")[0]["dataset"] == "dataset-3"
    assert len(table(tables / "datasets.csv")) == 8 * 5


def test_figures_come_as_svg_and_png(report):
    names = {path.name for path in (report.parent / "figures").iterdir()}
    assert names == {
        f"{name}.{ending}"
        for name in ("cdf", "heat-map", "scatter", "learning-curves", "critical-difference", "cost")
        for ending in ("svg", "png")
    }
    for path in (report.parent / "figures").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    for path in (report.parent / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_the_same_results_give_the_same_bytes(results, report, tmp_path):
    write_report(results, tmp_path)
    first = sorted(path for path in report.parent.rglob("*") if path.is_file())
    assert len(first) == 1 + 12 + 8
    for path in first:
        assert path.read_bytes() == (tmp_path / path.relative_to(report.parent)).read_bytes(), path


@pytest.mark.parametrize("shape", [(1, 4, 1), (4, 2, 1), (3, 1, 2)])
def test_small_benchmarks_have_a_report(tmp_path, shape):
    data = embedded(write_report(fabricate(*shape), tmp_path))
    assert len(data["headline"]) == shape[1]
    assert (data["ranks"] is None) == (shape[0] < 2 or shape[1] < 2)
    assert data["summary"]


def test_explorers_that_earn_the_same_everywhere_have_a_report(tmp_path):
    cells = [
        CellResult(f"d{d}", f"d{d}", 20, 2, 2, name, seed, np.ones(20), 0.0)
        for d in range(3)
        for name in ("a", "b", "c")
        for seed in range(2)
    ]
    data = embedded(write_report(Results.of(cells), tmp_path))
    assert all(row["share_best"] == 1.0 for row in data["headline"])
    assert all(set(signs) == {"0"} for test in data["tests"] for signs in test["signs"].values())


def test_without_a_complete_dataset_there_is_a_sentence_instead_of_figures(tmp_path):
    write_report(fabricate(2, 1), tmp_path)  # its figures must not stay
    assert list((tmp_path / "figures").iterdir()) != []
    data = embedded(write_report(fabricate(2, 3, failed=(0, 1)), tmp_path))
    assert data["facts"][0] == ["0 of 2", "datasets"]
    assert "None of the 2 datasets has a run of every explorer" in data["nothing"]
    assert data["headline"] == []
    assert len(data["failures"]) == 2
    assert list((tmp_path / "figures").iterdir()) == []


def test_no_result_at_all_is_refused(tmp_path):
    with pytest.raises(InputError, match="no result to report yet; run melee bench first"):
        write_report(Results.of([]), tmp_path)
