import errno
import json
import os
import signal
import subprocess
import sys
from io import FileIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from melee.benchmark.cells import Dataset, Plan
from melee.benchmark.files import write_checked
from melee.benchmark.store import CellStore, Record
from melee.errors import DataError
from tests.benchmark.made import wait_until

A_PLAN = Plan(
    "suite", (Dataset("d", "f", "hash", 90, 3, 2),), ("uniform",), ("uniform",), ("agent",),
    (0, 1), None, True, "code",
)  # fmt: skip


def some_records():
    rng = np.random.default_rng(0)
    return [
        Record.of("a" * 32, (rng.random(53) < 0.5).astype(float), 0.25),
        Record.of("b" * 32, rng.random(17), 0.5, 0.25, -0.5),
        Record.failure("c" * 32, "dataset ü: it cannot be read"),
        Record.of("d" * 32, np.ones(200), 1.0),
    ]


def as_stored(record):
    return (record.rewards.tolist(), record.seconds, record.problem)


ORIGINAL = {record.key: as_stored(record) for record in some_records()}


def write_log(directory):
    with CellStore.open(directory) as store:
        for record in some_records():
            store.add(record)
    return (directory / "cells.log").read_bytes()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("store"))


def put(directory, content):
    directory.mkdir(exist_ok=True)
    with CellStore.open(directory):
        pass
    (directory / "cells.log").write_bytes(content)


def kept(store):
    return {record.key: as_stored(record) for record in store.records()}


@given(
    st.one_of(
        st.lists(st.sampled_from([0.0, 1.0]), max_size=70), st.lists(st.floats(0, 1), max_size=70)
    ),
    st.floats(0, 1e6),
)
def test_a_record_gives_back_the_rewards_it_was_made_of(rewards, seconds):
    record = Record.of("k", np.array(rewards, dtype=float), seconds)
    assert record.rewards.tolist() == rewards
    assert record.rewards.dtype == np.float64
    assert (record.n, record.seconds, record.problem) == (len(rewards), seconds, "")


def test_rewards_of_zero_and_one_take_an_eighth_of_a_byte():
    record = Record.of("k", (np.random.default_rng(0).random(80_000) < 0.5).astype(float), 0.0)
    assert len(record.payload) < 80_000 / 8 * 1.01


def test_what_was_added_is_there_when_opened_again(tmp_path):
    write_log(tmp_path / "s")
    store = CellStore.read(tmp_path / "s")
    assert kept(store) == ORIGINAL
    assert len(store) == 4
    assert "c" * 32 in store
    assert store.failed("c" * 32)
    assert not store.failed("a" * 32)
    assert store.seconds("b" * 32) == 0.5
    assert not store.damage


def test_the_latest_of_two_records_of_a_cell_counts(tmp_path):
    with CellStore.open(tmp_path) as store:
        store.add(Record.failure("k", "no memory"))
        store.add(Record.of("k", np.ones(3), 0.1))
        assert not store.failed("k")
    assert kept(CellStore.read(tmp_path)) == {"k": ([1.0, 1.0, 1.0], 0.1, "")}


@settings(max_examples=150)
@given(data=st.data())
def test_a_flipped_bit_costs_the_record_it_is_in_and_is_named(data, log, tmp_path_factory):
    at = data.draw(st.integers(0, 8 * len(log) - 1))
    damaged = bytearray(log)
    damaged[at // 8] ^= 1 << at % 8
    directory = tmp_path_factory.mktemp("flipped")
    put(directory, bytes(damaged))
    for opened in (CellStore.read, CellStore.open):
        with opened(directory) as store:
            found = kept(store)
            assert found.items() <= ORIGINAL.items()
            assert len(found) == 3
            assert len(store.damage) == 1
            assert str(directory / "cells.log") in store.damage[0]
    with CellStore.open(directory) as store:  # opening for writing has mended it
        assert not store.damage
        assert kept(store) == found
        for record in some_records():
            if record.key not in store:
                store.add(record)
        assert kept(store) == ORIGINAL
    assert kept(CellStore.read(directory)) == ORIGINAL


@settings(max_examples=150)
@given(data=st.data())
def test_a_file_cut_anywhere_keeps_the_whole_records_before(data, log, tmp_path_factory):
    length = data.draw(st.integers(0, len(log)))
    directory = tmp_path_factory.mktemp("cut")
    put(directory, log[:length])
    found = kept(CellStore.read(directory))
    assert list(found.items()) == list(ORIGINAL.items())[: len(found)]
    with CellStore.open(directory) as store:
        assert kept(store) == found
        assert len(store.damage) <= 1
        store.add(Record.of("new", np.ones(5), 0.0))
    again = CellStore.read(directory)
    assert not again.damage
    assert {key: value for key, value in kept(again).items() if key != "new"} == found
    assert "new" in again


@settings(max_examples=40)
@given(junk=st.binary(max_size=60), place=st.integers(0, 4))
def test_junk_between_records_hides_none_of_them(junk, place, tmp_path_factory):
    directory = tmp_path_factory.mktemp("junk")
    with CellStore.open(directory) as store:
        ends = [0]
        for record in some_records():
            store.add(record)
            ends.append((directory / "cells.log").stat().st_size)
    content = (directory / "cells.log").read_bytes()
    put(directory, content[: ends[place]] + junk + content[ends[place] :])
    assert kept(CellStore.read(directory)) == ORIGINAL


class FullDisk(FileIO):
    """A file that takes a part of what is written, and then nothing."""

    def write(self, content):
        if len(content) > 20:
            return super().write(bytes(content)[:20])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_gets_a_sentence_and_leaves_no_torn_record(tmp_path):
    write_log(tmp_path)
    before = (tmp_path / "cells.log").read_bytes()
    with CellStore.open(tmp_path) as store:
        assert store._log is not None
        store._log.close()
        store._log = FullDisk(tmp_path / "cells.log", "a")
        with pytest.raises(DataError, match="no space left on the disk; what was finished is kept"):
            store.add(Record.of("e" * 32, np.random.default_rng(0).random(500), 0.1))
        assert "e" * 32 not in store
    assert (tmp_path / "cells.log").read_bytes() == before
    assert not CellStore.read(tmp_path).damage


def test_a_plan_that_does_not_fit_on_the_disk_gets_a_sentence(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with CellStore.open(tmp_path) as store:
        monkeypatch.setattr("melee.benchmark.files.write_atomically", full)
        with pytest.raises(DataError, match="no space left on the disk"):
            store.save_plan(A_PLAN, {})


def test_records_are_forced_to_the_disk_now_and_then_and_at_the_end(tmp_path, monkeypatch):
    synced, now, sync = [], [100.0], os.fsync

    def note(descriptor):
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    with CellStore.open(tmp_path) as store:
        monkeypatch.setattr("melee.benchmark.store.time.monotonic", lambda: now[0])
        monkeypatch.setattr(os, "fsync", note)
        log = (tmp_path / "cells.log").stat().st_ino
        for seconds, n_synced in [(0.0, 1), (0.4, 1), (0.4, 1), (0.4, 2), (0.1, 2)]:
            now[0] += seconds
            store.add(Record.of("k", np.ones(3), 0.1))
            assert synced == [log] * n_synced
    assert synced == [log] * 3


def test_an_interrupt_while_a_record_is_written_leaves_none_of_it(tmp_path):
    class Interrupted(FileIO):
        def write(self, content):
            super().write(bytes(content)[:20])
            raise KeyboardInterrupt

    write_log(tmp_path)
    with CellStore.open(tmp_path) as store:
        assert store._log is not None
        store._log.close()
        store._log = Interrupted(tmp_path / "cells.log", "a")
        with pytest.raises(KeyboardInterrupt):
            store.add(Record.failure("e" * 32, "x"))
    assert kept(CellStore.read(tmp_path)) == ORIGINAL


def test_the_plan_comes_back_as_it_was(tmp_path):
    with CellStore.open(tmp_path) as store:
        store.save_plan(A_PLAN, {"suite": "s"})
    plan, about = CellStore.read(tmp_path).load_plan()
    assert plan == A_PLAN
    assert plan.cells == A_PLAN.cells
    assert about == {"suite": "s"}


@given(data=st.data())
def test_a_flipped_bit_in_the_plan_never_goes_unnoticed(data, tmp_path_factory):
    directory = tmp_path_factory.mktemp("plan")
    with CellStore.open(directory) as store:
        store.save_plan(A_PLAN, {"suite": "s"})
    content = bytearray((directory / "plan.json").read_bytes())
    at = data.draw(st.integers(0, 8 * len(content) - 1))
    content[at // 8] ^= 1 << at % 8
    (directory / "plan.json").write_bytes(content)
    try:
        plan, about = CellStore.read(directory).load_plan()
    except DataError as error:
        assert str(directory / "plan.json") in str(error)  # noqa: PT017 - or else it is harmless
        assert "melee bench" in str(error)  # noqa: PT017
    else:
        assert (plan, about) == (A_PLAN, {"suite": "s"})


def test_a_second_driver_is_told_who_the_first_is(tmp_path):
    with (
        CellStore.open(tmp_path),
        pytest.raises(DataError, match=rf"another run is writing there \(process {os.getpid()}\)"),
    ):
        CellStore.open(tmp_path)
    with CellStore.open(tmp_path):
        pass


def test_a_killed_driver_holds_no_lock(tmp_path):
    code = (
        "import sys, time; from melee.benchmark.store import CellStore;"
        "store = CellStore.open(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "open\n"
        with pytest.raises(DataError, match=rf"process {driver.pid}\)"):
            CellStore.open(tmp_path)
        assert CellStore.read(tmp_path).damage == []  # looking is allowed
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    wait_until(lambda: can_open(tmp_path))


def can_open(directory):
    with CellStore.open(directory):
        return True


def test_what_a_killed_driver_was_writing_is_cleared_away(tmp_path):
    write_log(tmp_path)
    for name in ["plan.json", "datasets.json", "cells.log", "store.json"]:
        (tmp_path / f".{name}.0123abcd.tmp").write_text("half")
    (tmp_path / ".notes.1").write_text("of somebody else")
    with CellStore.open(tmp_path):
        pass
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"store.json", "cells.log", "lock", ".notes.1"}


def test_a_store_whose_making_was_killed_is_made_again(tmp_path):
    for name in ["lock", ".store.json.0123abcd.tmp"]:
        (tmp_path / name).write_text("half")
    with CellStore.open(tmp_path) as store:
        store.add(some_records()[0])
    assert len(CellStore.read(tmp_path)) == 1


def a_file(path: Path):
    path.write_text("x")


def other_files(path: Path):
    path.mkdir()
    (path / "thesis.tex").write_text("x")


def other_store(path: Path):
    path.mkdir()
    (path / "store.json").write_text('{"format": "other", "format_version": 1}')


def no_json(path: Path):
    path.mkdir()
    (path / "store.json").write_bytes(b"\xff\xfe")
    (path / "cells.log").write_bytes(b"of something else")


def newer(path: Path):
    path.mkdir()
    about = {"format": "melee-bench", "format_version": 2, "melee": "9.1"}
    (path / "store.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (a_file, "a file; give a directory for the results"),
        (other_files, "it holds other files and no benchmark; give a new or an empty directory"),
        (other_store, r"store.json: not that of a MELEE benchmark; give another directory"),
        (no_json, r"store.json: not that of a MELEE benchmark; give another directory"),
        (newer, r"format version 2, written by melee 9.1; this is .* reads version 1: install"),
    ],
)
def test_a_directory_of_something_else_is_refused_and_left_alone(make, sentence, tmp_path):
    path = tmp_path / "out"
    make(path)
    before = [(file, file.stat().st_mtime_ns) for file in sorted(path.rglob("*"))]
    with pytest.raises(DataError, match=sentence):
        CellStore.open(path)
    assert [(file, file.stat().st_mtime_ns) for file in sorted(path.rglob("*"))] == before


def test_a_directory_that_cannot_be_made_gets_a_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot be written to"):
        CellStore.open(tmp_path / "file" / "out")


def test_a_plan_of_another_version_gets_a_sentence(tmp_path):
    with CellStore.open(tmp_path) as store:
        plan = A_PLAN.as_dict()
        write_checked(tmp_path / "plan.json", {"plan": plan | {"more": 1}, "about": {}})
        with pytest.raises(
            DataError, match=r"plan.json: the plan of another version of melee; run"
        ):
            store.load_plan()


def test_looking_where_there_is_no_benchmark_gets_a_sentence(tmp_path):
    with pytest.raises(DataError, match=r"no such directory; melee bench --out .* makes it"):
        CellStore.read(tmp_path / "no")
    with (
        CellStore.open(tmp_path / "yes") as store,
        pytest.raises(DataError, match="no run has begun"),
    ):
        store.load_plan()
