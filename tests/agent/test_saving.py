"""Saved agents: they go on as if nothing had happened, and no file does any harm."""

import contextlib
import copy
import functools
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from melee import Agent, DataError, Decision, InputError, MeleeError
from melee.agent.file import pack, unpack
from melee.agent.pending import _are_plain
from melee.errors import MeleeWarning
from melee.history import History
from tests.agent_lives import (
    ACTIONS,
    Clock,
    named_context,
    number_context,
    play,
    reward_of,
    sealed,
    small_agent,
)
from tests.news import SPECS

HALF_LIVES = {"melee": 100, "linucb": 100, "bagging": 100, "squarecb": 100}
LAST = 345


@pytest.fixture
def clock(monkeypatch):
    """The time that agents see, so that even their fingerprints can be compared."""
    clock = Clock()
    monkeypatch.setattr("melee.agent.overdue.time", clock)
    return clock


def split_points(spec):
    """Ten rounds to stop after: some are at the joints, others anywhere."""
    rng = np.random.default_rng(SPECS.index(spec))
    return sorted({0, 1, 120, 262, *rng.choice(np.arange(2, LAST), 6, replace=False).tolist()})


# --- going on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_a_loaded_agent_goes_on_as_if_it_had_never_stopped(spec, clock):
    agent = Agent(ACTIONS, spec, seed=9, half_life=HALF_LIVES.get(spec))
    kept: dict[int, bytes] = {}
    ids: list[tuple[str, Any]] = []
    decisions: list[Decision] = []
    first = 0
    for point in split_points(spec):
        decisions += play(agent, clock, first, point, ids)
        kept[point], first = agent.to_bytes(), point
    decisions += play(agent, clock, first, LAST, ids)
    assert agent.n_learned_ > 280
    assert agent.n_pending_ > 10

    for point, content in kept.items():
        last = LAST if point in (0, 120, 262) else min(point + 40, LAST)
        loaded = Agent.from_bytes(content)
        assert play(loaded, clock, point, last, ids[:point]) == decisions[point:last]
        if last == LAST:
            assert loaded.fingerprint == agent.fingerprint
            assert loaded.summary() == agent.summary()
            assert loaded.feature_names_ == agent.feature_names_


@pytest.mark.parametrize("spec", SPECS)
def test_loading_and_saving_give_the_same_file_again(spec, tmp_path):
    agent = small_agent(spec, n_rounds=30)
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "agent").read_bytes()
    assert loaded.n_pending_ == 2
    assert repr(loaded) == repr(agent)


@pytest.mark.parametrize("spec", SPECS)
def test_an_agent_of_numbers_goes_on_too(spec, clock):
    agent = small_agent(spec, n_rounds=40, n_pending=9, named=False)
    loaded = Agent.from_bytes(agent.to_bytes())
    for number in range(40, 60):
        decision = agent.act(number_context(number))
        assert loaded.act(number_context(number)) == decision
        for one in (agent, loaded):
            one.learn(decision.id, reward_of(number, decision.action))
    for one in (agent, loaded):
        assert one.learn("waiting 8", 0.5)
    assert loaded.fingerprint == agent.fingerprint


def test_a_new_column_after_loading_is_as_one_without(clock):
    """What the past had in a new feature is not what the map says of it now."""
    agent = Agent(ACTIONS, "linucb")
    for number in range(10):
        decision = agent.act({"age": 20.0 + number})
        agent.learn(decision.id, reward_of(number, decision.action))
    loaded = Agent.from_bytes(agent.to_bytes())
    for one in (agent, loaded):
        for number in range(10, 30):
            context = {"age": 20.0 + number, "late": 5.0 + number}
            one.learn(one.act(context).id, 0.5)
            one.learn(one.act({}).id, 0.25)
    assert loaded.fingerprint == agent.fingerprint


def test_rewards_of_given_up_and_done_decisions_are_known_after_loading(clock):
    agent = small_agent("uniform", timeout=10.0, default_reward=0.25)
    agent.learn("waiting 0", 1.0)
    clock.now += 11
    assert agent.give_up() == 1
    loaded = Agent.from_bytes(agent.to_bytes())
    assert not loaded.learn("waiting 0", 1.0)
    assert not loaded.learn("waiting 1", 0.25)
    with pytest.raises(InputError, match="has the reward 1 already"):
        loaded.learn("waiting 0", 0.5)
    assert loaded.timeout == 10.0


def test_a_file_does_not_say_where_to_write(tmp_path):
    agent = small_agent("uniform", n_rounds=3, log=tmp_path / "log.jsonl")
    with pytest.warns(MeleeWarning, match="pass log=... to go on with it"):
        loaded = Agent.from_bytes(agent.to_bytes())
    assert loaded.log is None
    before = len(History.read(tmp_path / "log.jsonl"))
    loaded.learn("waiting 0", 1.0)
    assert len(History.read(tmp_path / "log.jsonl")) == before


def test_a_log_is_continued_after_loading(tmp_path):
    agent = small_agent("uniform", n_rounds=3, log=tmp_path / "log.jsonl")
    loaded = Agent.from_bytes(agent.to_bytes(), log=tmp_path / "log.jsonl")
    loaded.learn("waiting 0", 1.0)
    last = list(History.read(tmp_path / "log.jsonl"))[-1]
    assert last.id == "waiting 0"
    assert last.pmf == dict.fromkeys(ACTIONS, 0.25)


def test_surrogates_and_odd_names_survive(clock):
    agent = Agent(["\ud800", "", "\0", None, True, 0.5, -7, ("a", ("b", None))], "uniform")
    context = {"\ud800": "\udfff", "": "", "\0": 1.0, "x": ["", "\n"]}
    for number in range(9):
        agent.learn(agent.act(context, id=f"\0 {number}").id, 0.5)
    agent.act(context, id="\0")
    loaded = Agent.from_bytes(agent.to_bytes())
    assert loaded.fingerprint == agent.fingerprint
    assert loaded.act(context) == agent.act(context)
    assert [type(label) for label in loaded.actions_] == [type(one) for one in agent.actions_]


# --- copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_are_equal_and_share_nothing(copied, clock):
    agent = small_agent("linucb")
    twin = copied(agent)
    before = agent.fingerprint
    assert twin.fingerprint == before
    twin.learn("waiting 0", 1.0)
    twin.add_actions(["late"])
    assert agent.fingerprint == before
    assert agent.act(named_context(3)) == copied(Agent.from_bytes(small_agent().to_bytes())).act(
        named_context(3)
    )


@pytest.mark.parametrize("spec", SPECS)
def test_a_clone_is_fresh_and_has_the_same_parameters(spec):
    agent = small_agent(spec, half_life=50, timeout=5.0, default_reward=0.0, max_features=60)
    for one in (agent, Agent.from_bytes(agent.to_bytes())):
        fresh = clone(one)
        assert fresh.get_params() == agent.get_params()
        assert (fresh.n_learned_, fresh.n_pending_, fresh.feature_names_) == (0, 0, [])
        assert fresh.fingerprint == Agent(**agent.get_params()).fingerprint


def test_parameters_can_be_set_before_the_first_round_only():
    agent = Agent(ACTIONS, "linucb")
    assert agent.set_params(seed=5, explorer="uniform") is agent
    assert agent.fingerprint == Agent(ACTIONS, "uniform", seed=5).fingerprint
    agent.act(named_context(0))
    with pytest.raises(InputError, match="make a new one"):
        agent.set_params(seed=6)
    assert clone(agent).set_params(seed=6).seed == 6


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(1), True])
def test_parameters_of_any_type_of_number_can_be_saved(value):
    agent = Agent(ACTIONS, "uniform", floor=value, timeout=5, default_reward=value)
    assert Agent.from_bytes(agent.to_bytes()).default_reward == value


@pytest.mark.parametrize("text", ["1/2", "0.5"])
def test_parameters_that_are_exact_numbers_can_be_saved(text):
    from decimal import Decimal
    from fractions import Fraction

    value = Fraction(text) if "/" in text else Decimal(text)
    agent = Agent(ACTIONS, "uniform", floor=value, timeout=5, default_reward=value)  # type: ignore[arg-type]
    assert Agent.from_bytes(agent.to_bytes()).default_reward == 0.5


@pytest.mark.parametrize("label", [frozenset("a"), b"bytes", 1j, float("inf"), ("a", b"b"), object])
def test_labels_that_cannot_be_written_are_refused_with_a_sentence(label, tmp_path):
    agent = Agent(["a", label], "uniform")
    with pytest.raises(InputError, match="cannot be written to a file; use texts, numbers"):
        agent.save(tmp_path / "agent")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("actions", [np.array(["a", "b"]), np.arange(3), range(3)])
def test_labels_of_arrays_and_ranges_can_be_saved(actions):
    agent = Agent(actions, "uniform")
    assert Agent.from_bytes(agent.to_bytes()).actions_ == list(actions)


def test_a_label_of_thousands_of_digits_is_refused_when_saving(tmp_path):
    with pytest.raises(MeleeError, match="cannot be written"):
        Agent([10**5000, "a"], "uniform").save(tmp_path / "agent")


# --- damage -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content():
    return small_agent("epsilon-greedy").to_bytes()


def assert_refused(content, part="the content: "):
    with pytest.raises(DataError, match=part) as caught:
        Agent.from_bytes(content)
    assert len(str(caught.value)) < 600


def test_a_flipped_bit_anywhere_is_found(content):
    rng = np.random.default_rng(0)
    header = 28 + int.from_bytes(content[12:20], "little")
    places = {*range(28), *range(header - 40, header + 40), *range(len(content) - 40, len(content))}
    places |= set(rng.integers(len(content), size=400).tolist())
    for place in sorted(places):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        assert_refused(bytes(damaged))


@pytest.mark.long
def test_a_flipped_bit_at_every_byte_is_found(content):
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        assert_refused(bytes(damaged))


def test_a_file_that_was_cut_off_is_found(content):
    rng = np.random.default_rng(1)
    lengths = {*range(100), len(content) - 1, len(content) - 32, len(content) - 33}
    for length in sorted(lengths | set(rng.integers(len(content), size=150).tolist())):
        assert_refused(content[:length])


def test_bytes_that_were_added_are_found(content):
    for more in (b"\0", b"\n", content, b"x" * 1000):
        assert_refused(content + more, "checksum")
    assert_refused(b"\n" + content, "not the file of an agent")


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"\0" * 5000,
        np.random.default_rng(2).bytes(4000),
        pickle.dumps({"actions": ACTIONS}),
        b'{"actions": []}',
        b"PK\3\4 a zip",
    ],
)
def test_a_file_of_something_else_is_refused(other, tmp_path):
    (tmp_path / "other").write_bytes(other)
    with pytest.raises(DataError, match="other: not the file of an agent; check the path"):
        Agent.load(tmp_path / "other")


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing", tmp_path / ("x" * 3000), str(tmp_path / "a\0b")):
        with pytest.raises(DataError, match=r"cannot be read|not a file"):
            Agent.load(path)


def test_a_newer_format_is_called_newer(content):
    about, arrays = unpack(content, "here")
    assert_refused(sealed(about, arrays, version=4), "format version 4.*or a newer one")
    assert_refused(sealed(about, arrays, version=2**32 - 1), "format version 4294967295")
    assert Agent.from_bytes(sealed(about, arrays)).n_learned_ == 12


# --- files made to do harm ----------------------------------------------------------------------


def changed(content, path, value):
    """The file with another value at a place in its JSON, and a right checksum."""
    about, arrays = unpack(content, "here")
    put(about, path, value)
    return sealed(about, arrays)


def put(about, path, value):
    *way, last = path
    for key in way:
        about = about[key]
    assert isinstance(about, list) or last in about
    about[last] = value


@functools.cache
def enough():
    """Bytes of addresses that tests may have: three gigabytes more than when first asked."""
    return (
        int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE") + 3 * 2**30
    )


@contextlib.contextmanager
def little_address_space():
    """Refuse what takes gigabytes: better an error in a test than a machine that stands still."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = enough() if hard == resource.RLIM_INFINITY else min(enough(), hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def little_memory():
    """Fail where more than 100 MB are used."""
    with little_address_space():
        tracemalloc.start()
        try:
            yield
            assert tracemalloc.get_traced_memory()[1] < 100e6
        finally:
            tracemalloc.stop()


HUGE = 10**18
FORGED = [
    (("knowledge", "model", "n_features"), HUGE),
    (("knowledge", "model", "n_features"), 2**19),
    (("knowledge", "model", "n_features"), 0),
    (("knowledge", "model", "n_features"), -3),
    (("knowledge", "model", "n_features"), 2.5),
    (("knowledge", "model", "n_features"), "9"),
    (("knowledge", "model", "n_features"), float("nan")),
    (("knowledge", "model", "n_features"), None),
    (("knowledge", "model", "n_actions"), HUGE),
    (("knowledge", "model", "n_actions"), -4),
    (("knowledge", "model", "n_actions"), "4"),
    (("knowledge", "model", "n_learned"), HUGE**3),
    (("knowledge", "model", "n_learned"), -1),
    (("knowledge", "model", "n_learned"), float("nan")),
    (
        (
            "knowledge",
            "total_reward",
        ),
        float("nan"),
    ),
    (
        (
            "knowledge",
            "total_reward",
        ),
        float("-inf"),
    ),
    (("knowledge", "model", "generation"), -1),
    (("knowledge", "model", "settings"), []),
    (("knowledge", "model", "settings"), ["nan"] * 9),
    (("knowledge", "model", "settings"), {"a": "0x1p0"}),
    (("knowledge", "model", "settings", "scaling.factor"), "nan"),
    (("knowledge", "model", "settings", "scaling.factor"), "inf"),
    (("knowledge", "model", "settings", "scaling.factor"), "-0x1p0"),
    (("knowledge", "model", "settings", "scaling.factor"), 5),
    (("knowledge", "model", "settings", "inner.epsilon"), "0x1p3"),
    (("knowledge", "model", "settings", "first"), "0x1p3"),
    (("knowledge", "model", "kind"), [True]),
    (("knowledge", "model"), None),
    (("knowledge", "model"), []),
    (("knowledge", "model"), {}),
    (("knowledge",), "models"),
    (
        (
            "knowledge",
            "labels",
        ),
        [],
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        ["a", "b", "c"],
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        ["a", "a", "b", "c"],
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        [["a"], "b", "c", "d"],
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        [{"a": 1}, "b", "c", "d"],
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        [float("nan"), "b", "c", "d"],
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        ["a"] * 10**5,
    ),
    (
        (
            "knowledge",
            "labels",
        ),
        4,
    ),
    (
        (
            "knowledge",
            "plays",
        ),
        [1, 2],
    ),
    (
        (
            "knowledge",
            "plays",
        ),
        ["many"] * 4,
    ),
    (("knowledge", "plays", 0), -1),
    (
        (
            "knowledge",
            "rewards",
        ),
        [float("nan")] * 4,
    ),
    (
        (
            "knowledge",
            "rewards",
        ),
        [float("inf")] * 4,
    ),
    (
        (
            "knowledge",
            "rewards",
        ),
        None,
    ),
    (("ids", "count"), "x"),
    (("ids", "count"), -1),
    (
        (
            "knowledge",
            "n_learned",
        ),
        float("inf"),
    ),
    (
        (
            "knowledge",
            "n_learned",
        ),
        -1,
    ),
    (
        (
            "knowledge",
            "version",
        ),
        "new",
    ),
    (("ids",), {}),
    (("ids", "prefix"), "\ud800"),
    (("ids", "prefix"), ""),
    (("ids", "prefix"), "x" * 1000),
    (("pending", "n_given_up"), -1),
    (("pending", "actions"), [[]]),
    (("pending", "actions"), [["a", "a"]]),
    (("pending", "actions"), 5),
    (("pending",), None),
    (("knowledge", "features", "max_features"), 1),
    (("knowledge", "features", "max_features"), -1),
    (("knowledge", "features", "width"), -1),
    (("knowledge", "features", "width"), 3),
    (("knowledge", "features", "width"), HUGE),
    (("knowledge", "features", "first_bucket"), 10**6),
    (("knowledge", "features", "absent"), [float("nan")] * 9),
    (("knowledge", "features", "absent"), [0.0] * 150),
    (("knowledge", "features", "absent"), []),
    (("knowledge", "features", "columns", "age", "number"), 10**6),
    (("knowledge", "features", "columns", "age", "number"), -2),
    (("knowledge", "features", "columns", "age", "count"), -2),
    (("knowledge", "features", "columns", "age", "mean"), float("inf")),
    (("knowledge", "features", "columns", "age", "square"), -1.0),
    (("knowledge", "features", "columns", "age", "levels"), {"a": 10**6}),
    (("knowledge", "features", "columns", "age", "levels"), []),
    (("knowledge", "features", "columns"), []),
    (("knowledge", "features", "names"), [1, 2, 3]),
    (("knowledge", "features", "names"), []),
    (
        (
            "knowledge",
            "features",
        ),
        None,
    ),
    (("waiting", 0), ["id"]),
    (("waiting", 0, 0), 5),
    (("waiting", 0, 0), "\udfff"),
    (("waiting", 0, 6), 0),
    (("waiting", 0, 6), -1),
    (("waiting", 0, 1), None),
    (("waiting", 0, 1), {"age": [1.0]}),
    (("waiting", 0, 1), {"age": float("nan")}),
    (("waiting", 0, 1), "text"),
    (("waiting", 0, 2), ["a"]),
    (("waiting", 0, 3), 0.0),
    (("waiting", 0, 3), -1.0),
    (("waiting", 0, 3), 7.0),
    (("waiting", 0, 3), float("nan")),
    (("waiting", 0, 4), float("nan")),
    (("waiting", 0, 4), "now"),
    (("waiting", 0, 5), "new"),
    (("waiting",), {"a": 1}),
    (("waiting",), 5),
    (("done",), [["a", "b"]]),
    (("done",), [["a", float("nan")]]),
    (("done",), [["a", 7e300]]),
    (("done",), [["a"]]),
    (("done",), [["\ud800", 0.5]]),
    (("done",), [["a", 0.5]] * 100_001),
    (("parameters", "seed"), -1),
    (("parameters", "seed"), None),
    (("parameters", "floor"), 7),
    (("parameters", "floor"), "0.02"),
    (("parameters", "half_life"), 0),
    (("parameters", "half_life"), "long"),
    (("parameters", "timeout"), float("nan")),
    (("parameters", "max_pending"), 0),
    (("parameters", "max_pending"), None),
    (("parameters", "max_features"), None),
    (("parameters", "explorer"), "nonsense"),
    (("parameters", "explorer"), 5),
    (("parameters", "explorer"), "linucb"),
    (("parameters", "explorer"), "bagging:bags=50000000"),
    (("parameters", "explorer"), "linucb:hidden=20000"),
    (("parameters", "actions"), 5),
    (("parameters", "actions"), [["a"]]),
    (("logged",), 5),
    (("parameters",), []),
]


@pytest.mark.parametrize(
    ("path", "value"), FORGED, ids=lambda one: f"{one!r:.40}".replace("\n", " ")
)
def test_a_forged_file_is_refused_and_takes_little_memory(path, value, content):
    forged = changed(content, path, value)
    with little_memory():
        assert_refused(forged)


@pytest.mark.parametrize(
    ("kinds", "block"),
    [
        ({"a": ["float64", [HUGE, HUGE]]}, b""),
        ({"a": ["float64", [2**31, 2**31]]}, b"x" * 8),
        ({"a": ["float64", [0, HUGE]]}, b""),
        ({"a": ["float64", [-1, -8]]}, b"x" * 64),
        ({"a": ["float64", [1.0]]}, b"x" * 8),
        ({"a": ["float64", [True]]}, b"x" * 8),
        ({"a": ["float64", "8"]}, b"x" * 64),
        ({"a": ["float64", [1] * 100]}, b"x" * 8),
        ({"a": ["object", [1]]}, b"x" * 8),
        ({"a": ["float64", [2]]}, b"x" * 8),
        ({"a": ["float64", [1]]}, b"x" * 16),
        ({"a": ["float64", [1]]}, b"x" * 8),
        ({}, b"x"),
        ([], b""),
        (None, b"x" * 8),
        (7, b""),
        ({"a": ["float64"]}, b""),
        ({"a": [["float64"], [1]]}, b"x" * 8),
        ({f"model.{n}": ["uint8", [0]] for n in range(1001)}, b""),
        ({f"model.{n}": ["uint8", [0]] for n in range(999)}, b""),
    ],
)
def test_arrays_that_a_file_cannot_hold_are_refused(kinds, block, content):
    about, _ = unpack(content, "here")
    with little_memory():
        assert_refused(sealed(about, kinds=kinds, block=block))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"arrays": []}',
        b'{"arrays": [], "models": []}',
        b"[" * 100_000,
        b'{"arrays": ' + b"[" * 100_000,
        b"9" * 5000,
        b"{} {}",
    ],
)
def test_json_of_something_else_is_refused(text):
    assert_refused(sealed(text), "copy")


@pytest.mark.parametrize(
    "place",
    [
        ("knowledge", "labels"),
        ("knowledge", "plays"),
        ("knowledge", "features"),
        ("pending", "actions"),
        ("waiting",),
        ("done",),
    ],
)
def test_json_of_any_depth_is_refused(place, content):
    """Just below the depth at which JSON is refused, showing it must not fail either."""
    about, arrays = unpack(content, "here")
    kinds = {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}
    block = b"".join(array.tobytes() for array in arrays.values())
    put(about, place, "PLACE")
    text = json.dumps({**about, "arrays": kinds})
    for depth in [*range(5, 800, 100), *range(800, 1000, 3)]:
        nested = text.replace('"PLACE"', "[" * depth + "]" * depth)
        assert_refused(sealed(nested.encode(), block=block))


def test_every_missing_part_is_noticed(content):
    about, _ = unpack(content, "here")
    known = about["knowledge"]
    places: list[tuple[Any, ...]] = [(key,) for key in about if key != "melee_version"]
    places += [(key, inner) for key in ("parameters", "ids", "pending") for inner in about[key]]
    places += [("knowledge", inner) for inner in known]
    places += [("knowledge", key, one) for key in ("features", "model") for one in known[key]]
    column = known["features"]["columns"]["age"]
    places += [("knowledge", "features", "columns", "age", one) for one in column]
    assert len(places) > 40
    for place in places:
        about, arrays = unpack(content, "here")
        part: Any = about
        for key in place[:-1]:
            part = part[key]
        del part[place[-1]]
        assert_refused(sealed(about, arrays))


def test_arrays_that_are_unknown_misshapen_or_not_finite_are_refused(content):
    about, arrays = unpack(content, "here")
    for name in ("more", "model.more", "model.inner.more", "young.optimism", "pending.contexts"):
        for more in (np.zeros(3), np.zeros((2, 3))):
            assert_refused(pack(about, {**arrays, name: more}))
    assert_refused(
        pack(about, {**arrays, "model.inner.more": np.zeros(3)}), "inner.more.* does not"
    )
    for name, array in arrays.items():
        for wrong in (array[..., None], array.astype(np.uint8), array.ravel()[:0]):
            assert_refused(pack(about, {**arrays, name: wrong}))
        for value in (np.nan, np.inf, 1e308, -1e200) if array.dtype == np.float64 else ():
            wrong = array.copy()
            wrong.flat[-1] = value
            assert_refused(pack(about, {**arrays, name: wrong}))


@pytest.mark.parametrize("spec", ["epsilon-greedy", "melee", "eg-epsilon-greedy", "linucb:exact=0"])
@pytest.mark.parametrize("value", [1e150, -1e12, -1.0, 0.0])
def test_numbers_that_no_learning_leads_to_are_refused_or_do_no_harm(spec, value):
    about, arrays = unpack(small_agent(spec).to_bytes(), "here")
    for name, array in arrays.items():
        if array.dtype == np.float64:
            live_a_little(pack(about, {**arrays, name: np.full(array.shape, value)}))


def test_sums_that_cannot_be_negative_are_refused_if_they_are():
    about, arrays = unpack(small_agent("melee").to_bytes(), "here")
    for name in ("plays", "guard.fallbacks"):
        path = f"model.inner.inner.{name}"
        with pytest.raises(DataError, match=f"{name} holds numbers that no learning leads to"):
            Agent.from_bytes(pack(about, {**arrays, path: np.full(arrays[path].shape, -1e-3)}))


@pytest.mark.parametrize("spec", ["epsilon-greedy", "linucb", "melee", "eg-epsilon-greedy"])
@pytest.mark.parametrize("n_rounds", [12, 300])
def test_a_file_that_lacks_an_array_is_read_as_if_that_were_fresh(spec, n_rounds):
    """So a later version may have one more array or setting, and still read this one's files."""
    agent = small_agent(spec, n_rounds=n_rounds)
    content = agent.to_bytes()
    everything, arrays = unpack(content, "here")
    # Rounds that are counted have to be there, and both halves of the nodes of trees.
    if n_rounds > 256:
        needed: tuple[str, ...] = ("model.kept", "forest.columns", "forest.children")
    else:
        needed = ("model.kept", "model.rounds", "model.rewards", "model.probabilities")
    for name in [name for name in arrays if not name.endswith(needed)]:
        others = {one: array for one, array in arrays.items() if one != name}
        loaded = Agent.from_bytes(pack(everything, others))
        assert sum(loaded.act(named_context(7)).probabilities) == pytest.approx(1.0)
        assert loaded.learn("waiting 0", 1.0)
        assert loaded.n_learned_ == n_rounds + 1
    for name in everything["knowledge"]["model"]["settings"]:
        about, _ = unpack(content, "here")
        del about["knowledge"]["model"]["settings"][name]
        assert Agent.from_bytes(pack(about, arrays)).n_learned_ == n_rounds
    fresh = {one: array for one, array in arrays.items() if one != "model.optimism"}
    assert Agent.from_bytes(pack(everything, fresh)).fingerprint == agent.fingerprint


def test_a_file_without_its_arrays_takes_no_memory_for_them():
    about, arrays = unpack(small_agent("linucb", named=False).to_bytes(), "here")
    features = about["knowledge"]["features"]
    features["width"], features["names"] = 9000, ["x"] * 9000
    about["knowledge"]["model"]["n_features"] = 9000
    about["waiting"] = []
    some = {name: array for name, array in arrays.items() if name == "model.optimism"}
    with little_memory():
        assert_refused(sealed(about, some), "most of its arrays are missing")


def test_a_waiting_context_of_numbers_that_is_not_there_is_noticed():
    about, arrays = unpack(small_agent(named=False).to_bytes(), "here")
    rows = arrays["pending.contexts"]
    assert rows.shape == (2, 3)
    for wrong in (rows[:1], rows[:0], rows[:, :2], np.zeros((3, 3)), np.zeros(2), rows * np.nan):
        assert_refused(pack(about, {**arrays, "pending.contexts": wrong}))
    del arrays["pending.contexts"]
    assert_refused(pack(about, arrays))


def test_probabilities_that_wait_for_the_log_have_to_fit(tmp_path):
    agent = small_agent("linucb", log=tmp_path / "log.jsonl")
    about, arrays = unpack(agent.to_bytes(), "here")
    rows = arrays["pending.probabilities"]
    assert rows.shape == (8,)
    wrongs = [rows[:7], rows.reshape(2, 4), rows * 2.0, -rows, rows * np.nan, np.r_[rows, rows]]
    for wrong in wrongs:
        assert_refused(pack(about, {**arrays, "pending.probabilities": wrong}))


def in_a_process(code, *, limit=3 * 2**30):
    """Run code where a crash or a flood of memory hurts nobody; what it prints."""
    start = f"""
        import resource, sys
        resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
        import numpy as np
        from melee import Agent, MeleeError
        from melee.agent.file import pack, unpack
        from tests.agent_lives import *
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_small_file_never_takes_much_memory():
    """Sizes that only multiply later: squares of features, many models, hidden units."""
    said = in_a_process(
        """
        def tried(name, spec, *changes, kind=None):
            about, arrays = unpack(small_agent(spec).to_bytes(), "here")
            for path, value in changes:
                *way, last = path
                part = about
                for key in way:
                    part = part[key]
                part[last] = value
            before = peak()
            try:
                Agent.from_bytes(sealed(about, arrays))
                print(name, "loads")
            except MeleeError:
                if peak() - before > 300:
                    print(name, f"takes {peak() - before:.0f} MB")
            except BaseException as error:
                print(name, type(error).__name__)

        model = ("knowledge", "model")
        tried("squares", "linucb", ((*model, "n_features"), 10_000))
        tried("more squares", "linucb", ((*model, "n_features"), 200_000))
        tried("products of texts", "linucb", ((*model, "n_features"), "x" * 1000),
              ((*model, "n_actions"), 10**6))
        tried("products of lists", "linucb", ((*model, "n_features"), [0] * 100),
              ((*model, "n_actions"), 10**7))
        tried("bags", "bagging", (("parameters", "explorer"), "bagging:bags=20000000"))
        tried("policies", "cover", (("parameters", "explorer"), "cover:policies=20000000"))
        tried("hidden", "linucb", (("parameters", "explorer"), "linucb:hidden=1000000:exact=0"),
              ((*model, "kind"), [False, True]))
        tried("hidden exact", "linucb", (("parameters", "explorer"), "linucb:hidden=9000"),
              ((*model, "kind"), [True, True]))
        tried("melee", "melee", ((*model, "n_features"), 9000))
        """
    )
    assert said == ""


@pytest.mark.parametrize("spec", ["epsilon-greedy", "melee"])
def test_whole_numbers_out_of_range_never_reach_compiled_code(spec):
    said = in_a_process(
        f"""
        content = small_agent({spec!r}, n_rounds=20).to_bytes()
        for place in unpack(content, "here")[1]:
            for value in (-1, -300, 10**9, -(10**12), 2**62):
                about, arrays = unpack(content, "here")
                if arrays[place].dtype != np.int64:
                    continue
                wrong = arrays[place].copy()
                wrong.flat[:] = value
                if (wrong == arrays[place]).all():
                    continue  # as in trees that are not grown yet
                arrays[place] = wrong
                print(place, value, flush=True)
                try:
                    agent = Agent.from_bytes(pack(about, arrays))
                except MeleeError:
                    print("refused", flush=True)
                    continue
                for number in range(5):
                    decision = agent.act(named_context(number))
                    agent.learn(decision.id, 1.0)
                agent.add_actions(["late"])
                print("works", agent.n_learned_, flush=True)
        """
    )
    answers = said.split("\n")[1::2]
    assert answers
    assert set(answers) <= {"refused", ""}


def test_models_of_two_sizes_are_refused():
    """A young model with fewer features than the contexts have would read beyond its memory."""
    agent = small_agent("linucb", named=False, half_life=10)
    about, arrays = unpack(agent.to_bytes(), "here")
    narrow = Agent(ACTIONS, "linucb", seed=5, half_life=10)
    for number in range(12):
        narrow.learn(narrow.act(number_context(number)[:1]).id, 0.5)
    other, others = unpack(narrow.to_bytes(), "here")
    about["knowledge"]["young"] = other["knowledge"]["young"]
    young = {name: array for name, array in others.items() if name.startswith("young.")}
    assert young
    assert_refused(pack(about, {**arrays, **young}), "a model of another size")


def leaves(part, way=()):
    """All places in a JSON value."""
    if isinstance(part, dict) and part:
        return [place for key, one in part.items() for place in leaves(one, (*way, key))]
    if isinstance(part, list) and part:
        return [place for key, one in enumerate(part) for place in leaves(one, (*way, key))]
    return [way]


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, -1, 2, 1e308, -0.0, 2**31, 2**63, 2**64, float("nan"), float("inf")]),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(-3, 3), max_size=2),
)


some_changes = st.lists(st.tuples(st.integers(0, 10**6), anything), min_size=1, max_size=2)
"""Which leaf is replaced, and by what."""


def fuzz(changes, kind):
    """Replace one or two values: the file must be refused, or be that of an agent that works."""
    about, arrays = unpack(file_of(kind), "here")
    for number, value in changes:
        places = leaves(about)
        put(about, places[number % len(places)], value)
    with little_address_space(), contextlib.suppress(MeleeError):
        live_a_little(sealed(about, arrays))


def live_a_little(content):
    try:
        agent = Agent.from_bytes(content)
    except DataError:
        return
    if agent.log is not None:
        return  # a path like any other; nothing is written to it here
    make = number_context if agent.feature_names_[:1] == ["x0"] else named_context
    for number in range(5):
        with contextlib.suppress(MeleeError):
            decision = agent.act(make(number))
            assert sum(decision.pmf.values()) == pytest.approx(1.0, abs=1e-9)
            assert min(decision.probabilities) >= 0.0
            agent.learn(decision.id, 0.5)
    again = Agent.from_bytes(agent.to_bytes())
    assert again.fingerprint == agent.fingerprint


@functools.cache
def file_of(kind):
    """Files of a few kinds: named or not, forgetting, with some actions closed, settled or not."""
    if kind == "numbers":
        agent = small_agent("linucb", named=False)
    elif kind == "old":
        agent = small_agent("softmax", n_rounds=300)
    elif kind == "forgetting":
        agent = small_agent("squarecb", half_life=5)
    elif kind == "melee":
        agent = small_agent("melee", timeout=1e9, default_reward=0.5)
    else:
        agent = small_agent("epsilon-greedy")
        agent.act(named_context(1), actions=ACTIONS[:2])
    return agent.to_bytes()


@pytest.mark.filterwarnings("ignore::melee.errors.MeleeWarning")
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
@given(changes=some_changes)
@pytest.mark.parametrize("kind", ["named", "numbers", "old", "forgetting", "melee"])
def test_a_file_with_any_value_replaced_is_refused_or_works(changes, kind):
    fuzz(changes, kind)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::melee.errors.MeleeWarning")
@settings(suppress_health_check=list(HealthCheck), max_examples=3000)
@given(changes=some_changes)
@pytest.mark.parametrize("kind", ["named", "numbers", "old", "forgetting", "melee"])
def test_a_file_with_any_value_replaced_is_refused_or_works_always(changes, kind):
    fuzz(changes, kind)


# --- saving while others go on ------------------------------------------------------------------


def test_others_go_on_while_an_agent_is_encoded_and_written(tmp_path, monkeypatch, clock):
    """What is written is the agent of the moment when the save began."""
    agent = small_agent("linucb")
    before = agent.fingerprint
    noted, go_on = threading.Event(), threading.Event()

    def slow(*args, **rows):
        noted.set()
        assert go_on.wait(60)
        return pack(*args, **rows)

    monkeypatch.setattr("melee.agent.storing.pack", slow)
    saving = threading.Thread(target=agent.save, args=(tmp_path / "agent",))
    saving.start()
    assert noted.wait(60)
    for number in range(20):  # in this thread, while the other one stands still
        decision = agent.act(named_context(200 + number))
        agent.learn(decision.id, 1.0)
    agent.learn("waiting 0", 1.0)
    agent.add_actions(["late"])
    assert sum(agent.pmf(named_context(3)).values()) == pytest.approx(1.0)
    go_on.set()
    saving.join(60)
    assert Agent.load(tmp_path / "agent").fingerprint == before
    assert agent.n_learned_ == 33


def test_noting_a_hundred_thousand_decisions_takes_a_moment():
    agent = Agent(ACTIONS, "uniform")
    contexts = [named_context(number) for number in range(50)] * 20
    while agent.n_pending_ < 100_000:
        agent.act_many(contexts)
    before = time.thread_time()  # of this thread only: the machine may be busy
    noted = agent._noted()  # all that is done under the lock
    assert time.thread_time() - before < 0.1
    assert len(noted.pending.waiting) == 100_000


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_save_that_fails_midway_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    path = tmp_path / "agent"
    agent = small_agent("uniform")
    agent.save(path)
    before = path.read_bytes()
    agent.learn("waiting 0", 1.0)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(step, full)
        with pytest.raises(DataError, match="No space left on device"):
            agent.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["agent"]
    agent.save(path)
    assert Agent.load(path).fingerprint == agent.fingerprint


def test_a_path_that_cannot_be_written_is_refused(tmp_path):
    agent = small_agent("uniform")
    (tmp_path / "file").write_text("here")
    paths = [tmp_path / "missing" / "agent", tmp_path / "file" / "agent", tmp_path / "\0"]
    for path in [*paths, tmp_path / ("x" * 3000)]:
        with pytest.raises(DataError, match="cannot be written"):
            agent.save(path)
    directory = tmp_path / "directory"
    directory.mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        agent.save(directory)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["directory", "file"]


def test_a_file_of_another_policy_of_the_same_name_goes_on_as_it_was(content):
    """Its models hold the policy that they were started with; a warning says that it is another."""
    other = changed(content, ("identity",), "epsilon-greedy:trained on other things")
    with pytest.warns(MeleeWarning, match="of another version when it was saved"):
        loaded = Agent.from_bytes(other)
    assert loaded.pmf({"age": 30}) == Agent.from_bytes(content).pmf({"age": 30})


@pytest.mark.parametrize(
    ("done", "plain"),
    [
        ([["a", 1.0], ["b", None]], True),
        ([["a", None]], True),
        ([], False),
        ([["a", float("nan")]], False),
        ([["a", 1e13]], False),
        ([["a", True]], False),
        ([["a", 1]], False),
        ([["\ud800", 1.0]], False),
        ([[1, 1.0]], False),
        ([["a", 1.0, 2.0]], False),
        (["ab"], False),
    ],
)
def test_rewards_of_the_past_are_checked_at_once_only_where_all_are_ordinary(done, plain):
    assert _are_plain(done) is plain
