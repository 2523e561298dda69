"""The page in a real browser."""

import random
import time

import pytest

from melee.client import Client
from tests.report import webdriver
from tests.serve.servers import running

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(bool(webdriver.missing()), reason=webdriver.missing())
HOSTILE = "<img src=x onerror=alert(1)>"
KEY = "k" * 20


@pytest.fixture(scope="module")
def window():
    with webdriver.browser() as window:
        yield window


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    place = tmp_path_factory.mktemp("watched") / "data"
    about = ("--actions", f"news,sports,{HOSTILE}", "--explorer", "epsilon-greedy")
    options = (*about, "--try", "uniform=0")
    with running(place, *options, env={"MELEE_KEY": KEY}) as server:
        rng = random.Random(0)
        with Client(str(server.url), key=KEY) as client:
            made = client.act_many([{"age": i} for i in range(300)])
            some = [one for one in made if one.action != "sports"]
            client.learn_many(some, [float(rng.random() < 0.4) for _ in some])
            client.learn(client.follow({"age": 7}, "news", probability=0.5), 1.0)
            client.trials()  # so that they are judged when the page asks for the first time
        yield server


def wait_for(window, script):
    end = time.monotonic() + 20
    while not window.run(script):
        assert time.monotonic() < end, window.run("return document.body.innerText")
        time.sleep(0.05)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_asks_for_a_key_and_shows_what_goes_on(window, server, width):
    window.open_address(f"{server.url}/", width=width)
    wait_for(window, "return !document.getElementById('locked').hidden")
    window.complaints()  # that a request without a key was refused
    window.type("#key", KEY)
    window.click("#unlock button")
    wait_for(window, "return !document.getElementById('shown').hidden")
    assert window.texts("#windows h2") == [
        "The last 10 minutes",
        "The last hour",
        "The last day",
    ]
    rows = window.texts("#actions tbody td:first-child")
    assert sorted(rows) == sorted(["news", "sports", HOSTILE])
    (said,) = window.texts("#said li")
    assert said.startswith("Action 'sports' was decided")
    assert window.run("return document.querySelectorAll('#course svg circle').length") >= 1
    wait_for(window, "return !document.getElementById('trying').hidden")
    assert window.texts("#trials td:first-child") == [
        "uniform (uniform)",
        "apprentice (epsilon-greedy)",
    ]
    verdicts = window.texts("#verdicts li")
    assert [one.partition(": ")[0] for one in verdicts] == ["uniform", "apprentice"]
    assert "age of the model" in window.texts("#agentfacts dt")
    assert window.run("return document.querySelectorAll('img').length") == 0
    width = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert window.run(width) == 0
    inside = "e => e.scrollWidth <= e.clientWidth"  # nothing is only there for who moves a table
    assert window.run(f"return [...document.querySelectorAll('section')].every({inside})")
    right = "e => e.getBoundingClientRect().right"
    beside = f"t => ({right})(t) <= ({right})(t.parentElement.querySelector('h2')) + 1"
    assert window.run(f"return [...document.querySelectorAll('table')].every({beside})")
    size = "const box = document.querySelector('#course text').getBoundingClientRect(); return "
    assert window.run(f"{size} box.height") > 9  # of what people read, on a phone as well
    assert window.run(f"{size} box.left") >= 0
    share = "range.selectNodeContents(document.querySelector('#actions td:nth-child(2)'))"
    lines = f"const range = document.createRange(); {share}; return range.getClientRects().length"
    assert window.run(lines) == 1
    assert window.complaints() == []


def test_the_page_needs_no_other_host(server):
    import urllib.request

    with urllib.request.urlopen(f"{server.url}/") as reply:
        text = reply.read().decode()
        policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    for one in ("http://", "https://", "//cdn"):
        assert one not in text.replace("http://www.w3.org/2000/svg", "")
