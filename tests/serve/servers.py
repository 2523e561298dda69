"""Services to ask: one inside of the test's own process, and real ones."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from melee.journal import Journal
from melee.serve.app import App
from melee.serve.keys import Keys
from melee.serve.service import Service

ACTIONS = ["a", "b", "c"]
QUICK = {"actions": ACTIONS, "explorer": "epsilon-greedy"}
SOURCES = Path(__file__).parents[2] / "src"


class Local:
    """A service without a socket; requests go through the application as a server hands them."""

    def __init__(self, place, agents=None, keys=None, trials=None, **options):
        self.runner = asyncio.Runner()
        self.service = Service(Journal(place), **options)
        self.service.open({"agent": dict(QUICK)} if agents is None else agents, trials)
        self.app = App(self.service, Keys(keys))
        self.runner.run(self.service.start())

    def ask(self, method, path, body=None, headers=(), pieces=1):
        """The status and what was answered."""
        content = body if isinstance(body, bytes) else b"" if body is None else dumps(body)
        return self.runner.run(self._ask(method, path, content, headers, pieces))

    def ask_at_once(self, *requests):
        """Many requests, all under way together."""

        async def main():
            asked = (self._ask(m, p, dumps(b), (), 1) for m, p, b in requests)
            return await asyncio.gather(*asked)

        return self.runner.run(main())

    async def _ask(self, method, path, content, headers, pieces):
        plain, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": plain,
            "raw_path": plain.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost:8642"), *headers],
        }
        size = max(1, -(-len(content) // pieces))
        parts = [content[i : i + size] for i in range(0, len(content), size)] or [b""]
        sent = []

        async def receive():
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        raw = sent[1]["body"]
        kind = dict(sent[0]["headers"])[b"content-type"]
        return sent[0]["status"], json.loads(raw) if b"json" in kind else raw.decode()

    def close(self):
        self.runner.run(self.service.stop())
        self.runner.close()


def dumps(body):
    return json.dumps(body).encode()


class Process:
    """A real server, in a process of its own, at a free port of the loopback."""

    def __init__(self, place, *options, env=None):
        command = [
            sys.executable,
            "-m",
            "melee.cli",
            "serve",
            "--journal",
            str(place),
            "--port",
            "0",
        ]
        paths = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [*command, *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, **(env or {})},
        )
        self.said = []
        self.url = None
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r" at (http://\S+), journal in", line)
            if found:
                self.url = found[1]
                break
        assert self.url is not None, "".join(self.said)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    @property
    def port(self):
        return int(str(self.url).rpartition(":")[2])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._finish()

    def stop(self):
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._finish()

    def _finish(self):
        code = self.process.wait(30)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@contextmanager
def running(place, *options, env=None):
    """A real server for the time of a block."""
    server = Process(place, *options, env=env)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
        elif server.process.stderr is not None:
            server.process.stderr.close()


def said_instead_of_serving(directory, *options):
    """What `melee serve` says where it cannot begin: a sentence, and no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "melee.cli", "serve", "--port", "0", "--journal", "data", *options],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr
