"""Power cuts: what a disk may hold when the machine stops, made from a record of what was written.

A shim between SQLite and the file system records every write, truncation and sync of the database
and of its WAL. An image is made of the record up to any moment: of each file all that was written
before its last sync, and of what was written since some of the sectors, in an arbitrary
order; a file that was never synced may be missing. One that was deleted may be there again, until
SQLite syncs the directory, which it does with the first sync of a new file. The index of the WAL
(-shm) is memory, and lost.

What this does not cover: a disk that says that it has synced and has not, damage to sectors that
were not being written, and the kernel's own bugs.
"""

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from melee import Agent
from melee.agent.recovering import recover
from melee.journal import Journal, verify
from melee.journal.events import is_next
from melee.journal.sqlite import FILE, SQLite
from tests.agent_lives import ACTIONS, Clock
from tests.journals import SHARED_MEMORY, keeper_of, live

apsw = pytest.importorskip(
    "apsw", reason="the file system's shim is apsw's: melee-bandits[journal]"
)

SECTOR = 512


FileSystem: Any = apsw.VFS
File: Any = apsw.VFSFile


class Recording(FileSystem):  # type: ignore[misc]
    """The usual file system, with a record of what changes in it."""

    def __init__(self, name):
        self.log, self.name = [], name
        super().__init__(name, "")

    def xOpen(self, name, flags):  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name))
        return RecordedFile(self.log, path.name, name, flags)

    def xDelete(self, name, sync_directory):  # noqa: N802
        super().xDelete(name, sync_directory)
        self.log.append(("delete", Path(name).name, int(sync_directory), b""))


class RecordedFile(File):  # type: ignore[misc]
    def __init__(self, log, short, name, flags):
        self._log, self._short = log, short
        super().__init__("", name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        super().xWrite(data, offset)
        self._log.append(("write", self._short, offset, bytes(data)))

    def xTruncate(self, size):  # noqa: N802
        super().xTruncate(size)
        self._log.append(("truncate", self._short, size, b""))

    def xSync(self, flags):  # noqa: N802
        super().xSync(flags)
        self._log.append(("sync", self._short, 0, b""))


class Life:
    """What was written in the life of an agent, and when each event was acknowledged."""

    def __init__(self, seed):
        parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self.directory = Path(tempfile.mkdtemp(prefix="melee-power-", dir=parent))
        vfs = Recording(f"recording-{seed}")
        self.log = vfs.log
        store = SQLite(self.directory, writing=True, vfs=vfs.name)
        store.execute("PRAGMA wal_autocheckpoint = 12")  # so that checkpoints happen all the time
        journal = Journal.of(store)
        append = store.append
        self.states: dict[int, str] = {}  # fingerprints, by the number of the last event

        def noted(drafts):
            head = append(drafts)
            self.log.append(("acknowledged", "", head.seq, b""))
            self.states[head.seq] = self.agent.fingerprint if self.agent else ""
            return head

        journal._commits._write = noted
        clock, self.agent = Clock(), None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("melee.agent.overdue.time", clock)
            agent = Agent(ACTIONS, "epsilon-greedy", seed=seed, journal=journal)
            self.agent, self.states[1] = agent, agent.fingerprint
            live(agent, 0, 60, seed=seed, clock=clock)
            self.checksums = {one.seq: one.checksum for one in store.rows(0)}
            kept = keeper_of(agent).snapshot()
            journal.compact(keep_days=0)
            assert store.start().seq == kept
            live(agent, 60, 90, seed=seed, clock=clock)
        self.checksums |= {one.seq: one.checksum for one in store.rows(0)}
        files = (self.directory / "snapshots").iterdir()
        self.snapshots = {path.name: path.read_bytes() for path in files}
        store.close()

    def images(self, n, rng):
        """Files by name, and the number of the last event that was acknowledged."""
        cuts = sorted(rng.randrange(len(self.log)) for _ in range(n))
        synced: dict[str, bytearray] = {}
        since: dict[str, list[tuple[str, int, bytes]]] = {}
        acknowledged, position = 0, 0
        deleted: dict[str, bytearray] = {}  # what may be there again
        for cut in cuts:
            for kind, name, number, data in self.log[position:cut]:
                if kind == "acknowledged":
                    acknowledged = number
                elif kind == "delete":
                    since.pop(name, None)
                    if name in synced:
                        deleted[name] = synced.pop(name)
                    if number:
                        deleted.clear()
                elif kind == "sync":
                    if name not in synced:
                        deleted.clear()
                    content = synced.setdefault(name, bytearray())
                    for change in since.pop(name, []):
                        apply(content, change)
                else:
                    since.setdefault(name, []).append((kind, number, data))
            position = cut
            back = {name: one for name, one in deleted.items() if rng.random() < 0.5}
            yield self.image({**back, **synced}, since, rng), acknowledged

    def image(self, synced, since, rng):
        files = {}
        share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for name in {*synced, *since}:
            if name not in synced and rng.random() < 0.5:
                continue
            content = bytearray(synced.get(name, b""))
            parts = []
            for kind, number, data in since.get(name, []):
                if kind == "truncate":
                    parts.append((kind, number, data))
                starts = range(0, len(data), SECTOR)
                parts += [("write", number + at, data[at : at + SECTOR]) for at in starts]
            kept = [one for one in parts if rng.random() < share]
            if rng.random() < 0.7:
                rng.shuffle(kept)
            for one in kept:
                apply(content, one)
            files[name] = bytes(content)
        return files


def apply(content, change):
    kind, number, data = change
    if kind == "truncate":
        del content[number:]
    else:
        if len(content) < number:
            content.extend(bytes(number - len(content)))
        content[number : number + len(data)] = data


def check(life, files, acknowledged, directory, *, deep):
    """What is on the disk is the chain up to some event, and no acknowledged one is missing."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "snapshots").mkdir(parents=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    journal = Journal(directory)
    head, start = journal.head, journal.start
    assert head.seq >= acknowledged, "an acknowledged event is lost"
    assert head.seq == 0 or head.checksum == life.checksums[head.seq]
    place = start
    for event in journal.store.rows(start.seq):
        assert is_next(place, event)
        assert event.checksum == life.checksums[event.seq]
        place = event.head
    assert place == head
    if deep and head.seq:
        for name, content in life.snapshots.items():
            if f"@{head.seq + 1:015d}" > name[name.index("@") :]:
                (directory / "snapshots" / name).write_bytes(content)
        assert list(verify(journal)) == []
        assert recover(journal)[0].fingerprint == life.states[head.seq]
    journal.close()


@pytest.fixture(scope="module")
def life():
    yield from make_life(3)


def make_life(seed):
    life = Life(seed)
    yield life
    shutil.rmtree(life.directory, ignore_errors=True)


def cut(life, n, rng):
    with tempfile.TemporaryDirectory(prefix="melee-image-", dir=life.directory.parent) as directory:
        for number, (files, acknowledged) in enumerate(life.images(n, rng)):
            check(life, files, acknowledged, Path(directory) / "journal", deep=number % 50 == 0)


def test_nothing_acknowledged_is_lost_in_2000_power_cuts(life):
    cut(life, 2_000, random.Random(0))


def test_an_image_without_what_was_synced_is_noticed(life):
    """The check can fail: a disk that forgets synced sectors loses acknowledged events."""
    rng, noticed = random.Random(1), 0
    lying = [one for one in life.log if one[0] != "sync" or one[1] == FILE]
    honest, life.log = life.log, lying
    try:
        for files, acknowledged in life.images(40, rng):
            try:
                with tempfile.TemporaryDirectory(dir=life.directory.parent) as directory:
                    check(life, files, acknowledged, Path(directory) / "journal", deep=False)
            except Exception:
                noticed += 1
            except AssertionError:
                noticed += 1
    finally:
        life.log = honest
    assert noticed > 10


@pytest.mark.long
@pytest.mark.parametrize("seed", range(15))
def test_nothing_acknowledged_is_lost_in_150000_power_cuts(seed):
    for one in make_life(100 + seed):
        cut(one, 10_000, random.Random(seed))
