"""The page in a real browser, from a file, without a network."""

import dataclasses
import re

import pytest

from melee.benchmark.results import Results
from melee.report import collect
from melee.report.html import page as text_of
from tests.report import webdriver
from tests.report.fabricate import fabricate

pytestmark = pytest.mark.skipif(bool(webdriver.missing()), reason=webdriver.missing())

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{data}}"
NAMES = ["wine", "iris", HOSTILE, "digits", "Ünïcode 数据", "iris-2"]


def write_page(results, directory):
    """The page alone: it needs neither the figures nor the tables beside it."""
    path = directory / "report.html"
    path.write_text(text_of(collect(results)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def window():
    with webdriver.browser() as window:
        yield window


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    results = fabricate(names=NAMES, failed=(3,))
    return write_page(results, tmp_path_factory.mktemp("report"))


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def page(request, window, report):
    window.open(report, width=request.param)
    yield window
    assert window.complaints() == []


def names(window):
    return window.run(
        "return [...document.querySelectorAll('#rows tbody th')].map(e => e.firstChild.data)"
    )


def test_every_section_shows_something_and_nothing_is_wider_than_the_page(page):
    assert page.texts("#facts li")[0] == "5 of 6 datasets"
    assert len(page.texts(".headline tbody tr")) == 4
    for name in ("ranks", "cdf", "scatter", "learning", "cost"):
        assert page.run("return document.querySelectorAll(arguments[0]).length", f"#{name} svg") > 0
    width = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.run(width) == 0


def test_names_are_text_even_if_they_look_like_markup(page):
    assert HOSTILE in names(page)
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert page.run("return document.scripts.length") == 2


def test_the_table_sorts_by_the_pressed_column_and_back(page):
    assert names(page)[0] == "wine"
    page.click("#rows thead th:nth-child(1) button")
    ascending = names(page)
    assert ascending[1:5] == ["digits", "iris", "iris-2", "Ünïcode 数据"]
    page.click("#rows thead th:nth-child(1) button")
    assert names(page) == ascending[::-1]
    page.run("document.querySelector('#rows thead th:nth-child(5) button').click()")
    values = page.texts("#rows tbody td:nth-child(5)")
    assert values[-1] == "–"  # a dataset without a run is last in any order
    assert values[:-1] == sorted(values[:-1], reverse=True)
    pressed = "return document.querySelector('#rows th:nth-child(5)').getAttribute('aria-sort')"
    assert page.run(pressed) == "descending"


def test_the_table_filters_by_name(page):
    page.type("#filter", "IRIS")
    assert names(page) == ["iris", "iris-2"]
    assert page.texts("#count") == ["2 of 6 datasets"]


def test_the_table_switches_to_seconds(page):
    before = page.texts("#rows tbody td")
    page.choose("#measure", "seconds per 1000 rounds")
    assert page.texts("#rows tbody td") != before


def test_the_scatter_shows_the_chosen_pair(page):
    page.choose("#scatter-x", "melee")
    page.choose("#scatter-y", "epsilon-greedy")
    labels = page.texts("#scatter-chart text")
    assert {"melee: mean reward", "epsilon-greedy: mean reward"} <= set(labels)
    assert len(page.texts("#scatter-chart .mark")) == 5
    counts = [int(text.rsplit(": ", 1)[1]) for text in page.texts("#scatter-legend li")]
    assert sum(counts) == 5


def test_swapping_the_pair_swaps_the_winners(page):
    page.choose("#scatter-x", "melee")
    page.choose("#scatter-y", "linucb:alpha=0.1")
    before = [text.rsplit(": ", 1)[1] for text in page.texts("#scatter-legend li")]
    page.choose("#scatter-x", "linucb:alpha=0.1")
    page.choose("#scatter-y", "melee")
    after = [text.rsplit(": ", 1)[1] for text in page.texts("#scatter-legend li")]
    assert after == [before[1], before[0], before[2]]


def test_the_keyboard_reads_the_scatters_datasets(page):
    page.run("document.querySelector('#scatter-chart svg').focus()")
    seen = set()
    for _ in range(5):
        page.run(
            "document.querySelector('#scatter-chart svg').dispatchEvent("
            "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
        )
        assert page.run("return document.getElementById('tip').hidden") is False
        seen.add(page.texts("#tip")[0].split("\n")[0])
    assert seen == {"wine", "iris", HOSTILE, "Ünïcode 数据", "iris-2"}


def test_learning_curves_follow_the_chosen_dataset(page):
    page.choose("#learning-pick", HOSTILE)
    assert "3 seeds" in page.texts("#learning-note")[0]
    assert page.run("return document.querySelectorAll('#learning-chart .curve').length") == 4


def test_the_matrix_switches_its_test(page):
    page.click("#matrix-test button:nth-child(2)")
    shown = "return [...document.querySelectorAll('#matrices > div')].map(e => e.checkVisibility())"
    assert page.run(shown) == [False, True]


def test_the_test_that_holds_its_level_is_shown_first(page):
    assert page.texts("#matrix-test button[aria-pressed=true]") == ["A test that holds its level"]
    shown = "return [...document.querySelectorAll('#matrices > div')].map(e => e.checkVisibility())"
    assert page.run(shown) == [True, False]
    assert page.run("return document.querySelector('#scatter-test').value") == "0"


def test_the_table_shows_the_spread_over_seeds(page):
    page.choose("#measure", "mean reward ± spread over seeds")
    cells = page.texts("#rows tbody tr:first-child td")[3:]
    assert all(re.fullmatch(r"0\.\d{4} ± 0\.\d{4}", cell) for cell in cells)
    assert page.run("return document.querySelectorAll('#scatter-chart .spread').length") == 10


def test_light_and_dark_differ_and_the_button_switches(page):
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = page.run(colour)
    page.click("#theme")
    assert page.run(colour) != before
    page.click("#theme")
    assert page.run(colour) == before


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (1, 3, 1), (3, 1, 2), (2, 20, 2)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_small_and_wide_benchmarks_open_without_a_complaint(window, tmp_path, shape):
    window.open(write_page(fabricate(*shape), tmp_path))
    assert window.complaints() == []
    assert len(window.texts(".headline tbody tr")) == shape[1]


def test_a_benchmark_without_a_complete_dataset_says_so(window, tmp_path):
    window.open(write_page(fabricate(2, 3, failed=(0, 1)), tmp_path))
    assert window.complaints() == []
    for name in ("headline", "matrix", "cdf", "scatter", "learning", "cost"):
        assert "nothing to compare yet" in window.texts(f"#{name}")[0]
    assert len(window.texts(".failures tbody tr")) == 2


def test_shares_are_a_table_of_uses_and_explorers(window, tmp_path):
    results = Results.of(
        [dataclasses.replace(one, share=one.mean_reward) for one in fabricate(names=NAMES)]
    )
    window.open(write_page(results, tmp_path), width=1280)
    rows = window.run(
        "return [...document.querySelectorAll('#shares-table tbody th')].map(e => e.textContent)"
    )
    assert rows == ["mean", "worst", *NAMES]
    cells = "document.querySelectorAll('#shares-table tbody td').length"
    assert window.run(f"return {cells}") == len(rows) * len(results.explorers)
    assert window.complaints() == []
