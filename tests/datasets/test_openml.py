import gzip
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import _openml

from melee.datasets import fetch, openml
from melee.errors import DataError, InputError

N_ROWS = 60


def arff():
    rng = np.random.default_rng(0)
    kinds = rng.choice(["1", "2", "'a b'"], N_ROWS)
    weights = [f"{w:.3f}" if i % 9 else "?" for i, w in enumerate(rng.normal(size=N_ROWS))]
    labels = rng.choice(["no", "yes"], N_ROWS)
    rows = [
        f"{i},{w},{k},{y}" for i, (w, k, y) in enumerate(zip(weights, kinds, labels, strict=True))
    ]
    header = [
        "@RELATION pets",
        "@ATTRIBUTE number NUMERIC",
        "@ATTRIBUTE weight REAL",
        "@ATTRIBUTE kind {1,2,'a b'}",
        "@ATTRIBUTE class {no,yes}",
        "@DATA",
    ]
    return "\n".join(header + rows) + "\n"


def column(index, name, kind, **flags):
    about = {"index": str(index), "name": name, "data_type": kind, "number_of_missing_values": "0"}
    return (
        about | {"is_target": "false", "is_ignore": "false", "is_row_identifier": "false"} | flags
    )


class Server:
    """OpenML's interface on a loopback address, with one dataset; replies may be replaced."""

    def __init__(self):
        self.requests: list[str] = []
        self.replies: dict[str, tuple[int, dict[str, str], bytes]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                status, headers, body = outer.replies.get(
                    self.path, (412, {}, b'{"error":{"code":"111","message":"Unknown dataset"}}')
                )
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()
        self.serve()

    def serve(self, **changes):
        """Publish the dataset, with parts of its description changed."""
        data = arff().encode()
        self.description = {
            "id": "61",
            "name": "pets",
            "version": "3",
            "description": "made for this test",
            "format": "ARFF",
            "status": "active",
            "url": f"{self.base}/data/v1/download/61/pets.arff",
            "md5_checksum": hashlib.md5(data).hexdigest(),
        } | changes
        features = [
            column(0, "number", "numeric", is_row_identifier="true"),
            column(1, "weight", "numeric", number_of_missing_values="7"),
            column(2, "kind", "nominal", nominal_value=["1", "2", "a b"]),
            column(3, "class", "nominal", nominal_value=["no", "yes"], is_target="true"),
        ]
        rows = [{"name": "NumberOfInstances", "value": str(float(N_ROWS))}]
        self.json("/api/v1/json/data/61", {"data_set_description": self.description})
        self.json("/api/v1/json/data/features/61", {"data_features": {"feature": features}})
        self.json("/api/v1/json/data/qualities/61", {"data_qualities": {"quality": rows}})
        self.zipped("/data/v1/download/61/pets.arff", data)

    def json(self, path, content):
        self.zipped(path, json.dumps(content).encode())

    def zipped(self, path, body):
        self.replies[path] = (200, {"Content-Encoding": "gzip"}, gzip.compress(body))

    def stop(self):
        if self.thread.is_alive():
            self.http.shutdown()
            self.thread.join()
            self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    server = Server()
    api = f"{server.base}/api/v1/json/data"
    monkeypatch.setattr(_openml, "_DATA_INFO", api + "/{}")
    monkeypatch.setattr(_openml, "_DATA_FEATURES", api + "/features/{}")
    monkeypatch.setattr(_openml, "_DATA_QUALITIES", api + "/qualities/{}")
    monkeypatch.setattr(_openml, "time", SimpleNamespace(sleep=lambda seconds: None))
    yield server
    server.stop()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MELEE_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "openml"


def stored(cache):
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


def test_a_dataset_is_fetched_once_and_read_from_disk_afterwards(server, cache):
    said: list[str] = []
    first = fetch(61, expected_rows=N_ROWS, progress=said.append)
    assert said == ["fetching dataset 61 from OpenML"]
    n_requests = len(server.requests)
    assert stored(cache) == ["61.json", "61.parquet"]
    server.stop()
    again = fetch(61, expected_rows=N_ROWS, progress=said.append)
    assert len(server.requests) == n_requests
    assert len(said) == 1
    for task in (first, again):
        assert (task.name, task.n_rows, task.action_names) == ("pets", N_ROWS, ("no", "yes"))
        assert task.feature_names == ("weight", "weight is missing", "kind=1", "kind=2", "kind=a b")
        assert task.provenance == "OpenML 61 (pets version 3), labels in 'class'"
        assert task.notes == first.notes
    assert_array_equal(again.contexts, first.contexts)
    assert_array_equal(again.rewards, first.rewards)
    labels = [line.split(",")[3] for line in arff().splitlines()[6:]]
    assert [first.action_names[a] for a in first.rewards.argmax(axis=1)] == labels


def test_the_sidecar_describes_the_stored_rows(server, cache):
    fetch(61)
    about = json.loads((cache / "61.json").read_text())
    rows = (cache / "61.parquet").read_bytes()
    assert about["sha256"] == hashlib.sha256(rows).hexdigest()
    assert about["bytes"] == len(rows)
    facts = ("openml_id", "name", "version", "rows", "columns", "classes")
    assert [about[fact] for fact in facts] == [61, "pets", "3", N_ROWS, 2, 2]
    assert openml.cached(61) == openml.Stored(**about | {"notes": ()})
    assert openml.cached(62) is None


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def empty(path):
    path.write_bytes(b"")


def rename_the_target(path):
    path.write_text(path.read_text().replace('"class"', '"glass"'))


def add_a_row(path):
    path.write_text(path.read_text().replace('"rows": 60', '"rows": 61'))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("61.parquet", flip_a_bit),
        ("61.parquet", truncate),
        ("61.parquet", empty),
        ("61.json", truncate),
        ("61.json", empty),
        ("61.json", rename_the_target),
        ("61.json", add_a_row),
    ],
)
def test_a_damaged_copy_is_noticed_said_and_fetched_again(server, cache, damage, name):
    said: list[str] = []
    first = fetch(61)
    intact = (cache / "61.parquet").read_bytes()
    damage(cache / name)
    again = fetch(61, progress=said.append)
    assert len(said) == 1
    assert said[0].startswith(f"dataset 61: the cached copy was damaged and fetched again: {name}")
    assert again.notes[0] == said[0].removeprefix("dataset 61: ")
    assert again.content_hash == first.content_hash
    assert (cache / "61.parquet").read_bytes() == intact
    assert fetch(61).notes == first.notes


def test_rows_without_their_sidecar_are_fetched_again(server, cache):
    fetch(61)
    (cache / "61.json").unlink()  # as if killed between the two files
    assert openml.cached(61) is None
    fetch(61)
    assert openml.cached(61) is not None


def cut_off(server):
    path = "/data/v1/download/61/pets.arff"
    status, headers, body = server.replies[path]
    server.replies[path] = (status, headers | {"Content-Length": str(len(body))}, body[:-40])


def cut_off_plain(server):
    body = arff().encode()
    server.replies["/data/v1/download/61/pets.arff"] = (
        200,
        {"Content-Length": str(len(body)), "Connection": "close"},
        body[:-40],
    )


def wrong_checksum(server):
    server.serve(md5_checksum="0" * 32)


def unknown_dataset(server):
    server.replies.clear()


def broken_server(server):
    server.replies["/api/v1/json/data/61"] = (500, {}, b"oops")


def missing_file(server):
    server.replies["/data/v1/download/61/pets.arff"] = (404, {}, b"gone")


def html(server):
    server.replies["/api/v1/json/data/61"] = (200, {}, b"<html>Please log in</html>")


def other_json(server):
    server.json("/api/v1/json/data/61", {"message": "maintenance"})


def nobody_there(server):
    server.stop()


def other_size(server):
    pass


def one_class(server):
    data = arff().replace(",yes\n", ",no\n").encode()
    server.serve(md5_checksum=hashlib.md5(data).hexdigest())
    server.zipped("/data/v1/download/61/pets.arff", data)


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (cut_off, "the download is cut off or damaged"),
        (cut_off_plain, "the download does not match OpenML's own checksum"),
        (wrong_checksum, "the download does not match OpenML's own checksum"),
        (unknown_dataset, "OpenML knows no such dataset; look its number up"),
        (broken_server, "the server answered 500"),
        (missing_file, "the server answered 404"),
        (html, "the server's answer is not what OpenML's interface promises"),
        (other_json, "the server's answer is not what OpenML's interface promises"),
        (nobody_there, "cannot reach the server .*the suite 'bundled'"),
        (other_size, "61 rows are expected but it has 60"),
        (one_class, r"\(pets version 3\): column 'class' holds only the class 'no'"),
    ],
)
def test_a_failed_fetch_says_why_and_stores_nothing(server, cache, trouble, sentence):
    trouble(server)
    with pytest.raises(DataError, match=f"^OpenML 61.*{sentence}"):
        fetch(61, expected_rows=61 if trouble is other_size else None)
    assert stored(cache) == []
    if trouble not in (nobody_there, other_size):  # once the trouble is over, all is well
        server.serve()
        assert fetch(61).n_rows == N_ROWS


def test_the_row_count_of_a_stored_copy_is_checked_too(server, cache):
    fetch(61)
    with pytest.raises(DataError, match="OpenML 61: 61 rows are expected but it has 60"):
        fetch(61, expected_rows=61)
    assert stored(cache) == ["61.json", "61.parquet"]


def test_a_retired_dataset_is_used_with_a_note(server, cache):
    server.serve(status="deactivated")
    for _ in range(2):
        assert fetch(61).notes[0].startswith("Version 3 of dataset pets is inactive")


def test_a_write_that_fails_leaves_no_file(server, cache, monkeypatch):
    def no_space(*_):
        raise OSError(28, "No space left on device")

    said: list[str] = []
    monkeypatch.setattr(Path, "replace", no_space)
    assert fetch(61, progress=said.append).n_rows == N_ROWS
    assert "could not be kept" in said[-1]
    assert "No space left on device" in said[-1]
    assert stored(cache) == []


def test_the_cache_is_found_by_argument_environment_and_convention(monkeypatch, tmp_path):
    monkeypatch.setenv("MELEE_DATA", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert str(openml.cache_directory(tmp_path)) == str(tmp_path)
    assert str(openml.cache_directory()) == "/a"
    monkeypatch.delenv("MELEE_DATA")
    assert str(openml.cache_directory()) == "/b/melee"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert str(openml.cache_directory()) == "/c/.cache/melee"


@pytest.mark.parametrize("data_id", [0, -3, "61", True])
def test_a_number_that_cannot_be_a_dataset_is_refused(data_id):
    with pytest.raises(InputError, match="expected the number of a dataset, 1 or larger"):
        fetch(data_id)
