"""Files that released versions have written are read, and today's are laid out like them."""

import contextlib
import json
import warnings

import pytest
from numpy.testing import assert_allclose

from melee import Agent, artefact
from melee.benchmark.store import CellStore
from melee.history import History
from melee.journal import Journal, events, verify
from melee.version import __version__
from tests.journals import reading
from tools.formats import ACTIONS, CANDIDATES, HOME, READER, SPEC, layouts, shape, unpacked, write

VERSIONS = sorted(path.name for path in HOME.iterdir() if (path / "expected.json").is_file())
MOST_BYTES = 10_000


@pytest.fixture(params=VERSIONS)
def kept(request, tmp_path):
    """The files of a version, and what is to be found in them."""
    place = unpacked(HOME / request.param, tmp_path / "kept")
    with warnings.catch_warnings():  # a later version may have another explorer, and says so
        warnings.simplefilter("ignore", UserWarning)
        yield place, json.loads((place / "expected.json").read_text())


def test_there_are_files_of_this_version():
    assert __version__ in VERSIONS, "run `python -m tools.formats`"


def test_kept_files_are_small():
    sizes = {path: path.stat().st_size for path in HOME.glob("[0-9]*/**/*") if path.is_file()}
    assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}


def test_an_agent_is_read_and_goes_on(kept):
    place, expected = kept
    agent = Agent.load(place / "agent.melee")
    assert agent.n_learned_ == expected["agent"]["learned"]
    assert agent.actions_ == [*ACTIONS, "weather"]
    assert_allclose(list(agent.pmf(READER).values()), expected["agent"]["pmf"], atol=1e-9)
    assert agent.learn("waits", 1.0)
    assert not agent.learn("d1", 1.0)  # as it was


def test_an_agent_with_candidates_is_read_and_goes_on(kept):
    place, expected = kept
    agent = Agent.load(place / "candidates.melee")
    pmf = agent.pmf(READER, actions=CANDIDATES)
    assert agent.n_learned_ == expected["candidates"]["learned"]
    assert_allclose(list(pmf.values()), expected["candidates"]["pmf"], atol=1e-9)
    assert agent.learn("waits", 1.0)


def test_a_history_is_the_same_in_every_format(kept):
    place, expected = kept
    lines = History.read(place / "history.jsonl")
    assert lines.rewards.tolist() == expected["history"]["rewards"]
    assert [found.id for found in lines][-1] == "c1"
    assert lines[-1].features == CANDIDATES
    for ending in ("parquet", "dsjson"):
        assert History.read(place / f"history.{ending}") == lines


def test_a_journal_is_verified_folded_and_gone_on_with(kept):
    place, expected = kept
    with contextlib.closing(reading(place / "journal")) as journal:
        assert list(verify(journal)) == []
    agent = Agent(ACTIONS, SPEC, seed=1, max_features=8, journal=place / "journal")
    assert agent.n_learned_ == expected["journal"]["learned"]
    assert_allclose(list(agent.pmf(READER).values()), expected["journal"]["pmf"], atol=1e-9)
    assert agent.learn("waits too", 1.0)
    agent.close()


def test_a_journal_of_candidates_is_folded_and_gone_on_with(kept):
    place, expected = kept
    journal = Journal(place / "journal", "catalogue")
    agent = Agent(explorer=SPEC, seed=2, max_features=8, journal=journal)
    pmf = agent.pmf(READER, actions=CANDIDATES)
    assert agent.n_learned_ == expected["journal of candidates"]["learned"]
    assert_allclose(list(pmf.values()), expected["journal of candidates"]["pmf"], atol=1e-9)
    assert agent.learn("waits", 1.0)
    agent.close()


def test_a_policy_is_loaded(kept):
    place, expected = kept
    features = ("one feature", "another")
    found = artefact.load(str(place / "policy"), kind="made", schema=features, shapes={"w": (2,)})
    assert found.arrays["w"].tolist() == expected["policy"]["w"]
    assert found.training == {"seed": 0, "tasks": 3}


def test_the_cells_of_a_benchmark_are_read(kept):
    place, expected = kept
    store = CellStore.read(place / "cells")
    first, second, failed = store.records()
    assert [one.rewards.tolist() for one in (first, second)] == expected["cells"]["rewards"]
    assert (first.share, failed.problem) == (0.7, "it could not be played")
    plan, about = store.load_plan()
    assert (plan.suite, about) == ("made", {"note": "made"})
    assert store.damage == []


@pytest.fixture(scope="module")
def today(tmp_path_factory):
    made = tmp_path_factory.mktemp("formats")
    write(made / "written")
    return layouts(unpacked(made / "written", made / "unpacked"))


@pytest.mark.parametrize(
    "name",
    [
        *("agent.melee", "candidates.melee", "history.jsonl", "history.dsjson"),
        *("history.parquet", "journal", "policy", "cells"),
    ],
)
def test_what_is_written_today_is_laid_out_as_this_version_does(name, today, tmp_path):
    kept = layouts(unpacked(HOME / __version__, tmp_path / "kept"))
    assert sorted(kept) == sorted(today)
    assert today[name] == kept[name], (
        f"the format of {name} changed: tests/formats/README.md says what may change; if this "
        "may, write a line into CHANGELOG.md, then run `python -m tools.formats`"
    )


def test_every_kind_of_event_is_kept(today):
    assert sorted(today["journal"]["events"]) == sorted(events.KINDS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([{"a": 1}], [{"a": None}]),
    ],
)
def test_a_layout_notices_names_and_types(before, after):
    assert shape(before) != shape(after)


def test_a_layout_leaves_values_alone():
    assert shape({"b": [1, 2.5], "a": "x"}) == shape({"a": "", "b": [7]})
