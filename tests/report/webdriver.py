"""A real browser over the WebDriver protocol, with nothing but the standard library."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def missing() -> str:
    """What keeps a browser from being started here; empty where nothing does."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not installed" if absent else ""


class Browser:
    """One browser window."""

    def __init__(self, address: str, profile: str) -> None:
        self.address = address
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.address += f"/session/{session['sessionId']}"

    def _call(self, method, path, body=None):
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, content, method=method)
        request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, path: Path, *, width=1280, height=900) -> None:
        """Show a file in a window of this size."""
        self.open_address(path.resolve().as_uri(), width=width, height=height)

    def open_address(self, address: str, *, width=1280, height=900) -> None:
        """Show a page in a window of this size; phones' widths need the device emulated."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools("Emulation.setDeviceMetricsOverride", size)
        self._call("POST", "/url", {"url": address})

    def devtools(self, command, parameters=None):
        """Send one command of the DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters or {}})

    def run(self, script, *arguments):
        """The value of a script's `return`."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector) -> None:
        self._call("POST", f"/element/{self._find(selector)}/click", {})

    def type(self, selector, text) -> None:
        self._call("POST", f"/element/{self._find(selector)}/value", {"text": text})

    def texts(self, selector):
        """The text of every element that matches."""
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return self.run(script, selector)

    def choose(self, selector, label) -> None:
        """Pick an option of a select by its text."""
        self.run(
            "const select = document.querySelector(arguments[0]);"
            "select.value = [...select.options].find(o => o.text === arguments[1]).value;"
            "select.dispatchEvent(new Event('change', {bubbles: true}));",
            selector,
            label,
        )

    def complaints(self):
        """Errors and warnings of the console since the last call."""
        log = self._call("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in log if one["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        self._call("DELETE", "")

    def _find(self, selector):
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))


@contextmanager
def browser():
    """A browser for the time of a with block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Chromium may still be writing into its profile when it is told to end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["chromedriver", f"--port={port}"]
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            window = Browser(f"http://127.0.0.1:{port}", profile)
            try:
                yield window
            finally:
                window.close()
        finally:
            driver.terminate()
            driver.wait()


def _wait_for(port, seconds=20.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
