"""Who may do what."""

from typing import Any

import pytest

from melee.errors import InputError
from melee.serve.keys import Keys, read_keys
from melee.serve.sockets import check_host
from tests.serve.servers import Local

READ, DECIDE, ADMIN = "r" * 16, "d" * 16, "a" * 16
REQUESTS: list[tuple[str, str, Any, str]] = [
    ("GET", "/health", None, "open"),
    ("GET", "/openapi.json", None, "open"),
    ("GET", "/", None, "open"),
    ("GET", "/metrics", None, "read"),
    ("GET", "/v1/agents/agent", None, "read"),
    ("POST", "/v1/decisions", {"context": {"x": 1}}, "decide"),
    ("POST", "/v1/rewards", {"rewards": []}, "decide"),
    ("POST", "/v1/actions", {"add": []}, "admin"),
    ("POST", "/v1/snapshot", None, "admin"),
]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, {"open": 200, "read": 401, "decide": 401, "admin": 401}),
        ("wrong" * 4, {"open": 200, "read": 401, "decide": 401, "admin": 401}),
        (READ, {"open": 200, "read": 200, "decide": 403, "admin": 403}),
        (DECIDE, {"open": 200, "read": 200, "decide": 200, "admin": 403}),
        (ADMIN, {"open": 200, "read": 200, "decide": 200, "admin": 200}),
    ],
)
def test_a_key_opens_its_level_and_those_below(tmp_path, key, expected):
    local = Local(tmp_path, keys={READ: "read", DECIDE: "decide", ADMIN: "admin"})
    headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    for method, path, body, level in REQUESTS:
        assert local.ask(method, path, body, headers)[0] == expected[level], path
    local.close()


@pytest.mark.parametrize("given", [b"Basic " + ADMIN.encode(), ADMIN.encode(), b"", b"Bearer"])
def test_headers_that_are_no_bearer_open_nothing(given):
    with pytest.raises(Exception, match="Authorization: Bearer KEY"):
        Keys({ADMIN: "admin"}).check(given, "read")


def test_without_keys_nobody_outside_is_served():
    with pytest.raises(InputError, match=r"--host is 0.0.0.0, which others can reach"):
        check_host("0.0.0.0", Keys())
    with pytest.raises(InputError, match="which others can reach"):
        check_host("example.org", Keys())
    for host in ("localhost", "127.0.0.1", "127.1.2.3", "::1"):
        check_host(host, Keys())
    check_host("0.0.0.0", Keys({ADMIN: "admin"}))


def test_pages_of_other_places_cannot_ask_through_a_browser_of_this_machine(local):
    body = {"context": {"x": 1}}
    foreign = [(b"origin", b"https://evil.example")]
    assert local.ask("POST", "/v1/decisions", body, foreign)[0] == 403
    own = [(b"origin", b"http://localhost:8642")]
    assert local.ask("POST", "/v1/decisions", body, own)[0] == 200
    rebound = [(b"host", b"evil.example")]
    assert local.ask("POST", "/v1/decisions", body, rebound)[0] == 403


def test_keys_are_read_from_a_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# of the site\ndecide {DECIDE}\n\nread {READ}\n")
    assert read_keys(path) == {DECIDE: "decide", READ: "read"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no keys are there"),
        ("decide", "line 1 has 1 words"),
        ("boss " + "k" * 16, "level is 'boss'"),
        ("read short", "a key has 5 characters"),
    ],
)
def test_files_that_hold_no_keys_are_refused(tmp_path, text, sentence):
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        Keys(read_keys(path))
