"""Functions over many items in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DRIVER = """
import os, time
from melee.benchmark.mapping import mapper

if __name__ == "__main__":
    with mapper(workers=2) as apply:
        print(*set(apply(os.system, ["echo $PPID"] * 4)), flush=True)
        apply(time.sleep, [600.0] * 2)
"""


def test_workers_end_with_a_driver_that_is_killed(tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, tmp_path / "driver.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        said = [driver.stdout.readline() for _ in range(5)]
        workers = {int(line) for line in said[:4]}
        assert all(alive(pid) for pid in workers)
        os.kill(driver.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30.0
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in workers)


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
