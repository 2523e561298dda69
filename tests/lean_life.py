"""What an installation without extras does, and what it asks for where it needs one.

A script for such an installation. With `--refuse` it runs anywhere, and the packages of the extras
cannot be imported.
"""

import contextlib
import importlib.abc
import io
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

OPTIONAL = (
    *("pandas", "pyarrow", "scipy", "sklearn", "matplotlib", "distributed", "dask", "polars"),
    *("uvicorn", "httptools", "uvloop"),
)


class Refusing(importlib.abc.MetaPathFinder):
    """Makes packages look as if they were not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def live(home):
    """An agent decides, learns, logs, is saved and goes on; its log is read and evaluated."""
    import melee
    from melee.testing import check_explorer

    log = home / "rounds.jsonl"
    agent = melee.Agent(actions=["news", "sports"], floor=0.2, log=log, seed=1)
    chance = random.Random(0)
    for _ in range(300):
        context = {"device": chance.choice(["phone", "desk"]), "age": chance.randrange(18, 90)}
        decision = agent.act(context)
        liked = (context["device"] == "phone") == (decision.action == "news")
        agent.learn(decision.id, reward=float(chance.random() < (0.9 if liked else 0.1)))
    agent.save(home / "agent.melee")
    again = melee.Agent.load(home / "agent.melee", log=log)
    assert again.fingerprint == agent.fingerprint
    assert again.act({"device": "phone"}) == agent.act({"device": "phone"})

    history = melee.History.read(log)
    assert len(history) == 300
    history.write(home / "rounds.dsjson")
    assert len(melee.History.read(home / "rounds.dsjson")) == 300

    def best_choice(context: Any) -> str:
        return "news" if context["device"] == "phone" else "sports"

    best = melee.evaluate(history, best_choice)
    assert best.estimates["dr"].low > best.logged.value
    assert all(finding.level != "error" for finding in melee.examine(history))
    task = melee.rectangles(200, bayes_error=0.1, seed=0)
    assert melee.simulate(task, "uniform", seed=0).mean_reward > 0.0
    check_explorer("uniform")


def command(*arguments):
    """Exit code, output and error output of a command."""
    from melee.cli import main

    out, err = io.StringIO(), io.StringIO()
    before, code = sys.argv, 0
    sys.argv = ["melee", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def run_commands(home):
    """The commands that need no extra."""
    for arguments, shown in [
        (["--help"], "simulate"),
        (["--version"], "melee"),
        (["explorers"], "linucb"),
        (["doctor", home / "rounds.jsonl"], "0 errors"),
        (["evaluate", home / "rounds.jsonl", "--explorers=uniform", "--format=csv"], "uniform"),
        (["datasets", "--suite=paper300"], "300"),
    ]:
        code, out, err = command(*arguments)
        assert code == 0, (arguments, code, err)
        assert shown in out, (arguments, out)


def ask(home):
    """The sentence for each thing that needs an extra, in Python and from the command line."""
    import melee
    from melee.datasets import fetch, load_suite, read_table
    from melee.errors import MissingPackageError

    tables, bench, dask, serve = (
        f"pip install 'melee-bandits[{e}]'" for e in ("tables", "bench", "dask", "serve")
    )
    suite = home / "suite"
    suite.mkdir()
    (suite / "t.csv").write_text("a,target\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(90)))
    (home / "t.parquet").write_bytes(b"PAR1")
    (home / "t.arff").write_text(
        "@relation t\n@attribute a numeric\n@attribute b {x,y}\n@data\n1,x\n"
    )
    out = home / "out"
    for arguments, package, advice in [
        (["simulate", "--data=iris", "--explorers=uniform"], "scikit-learn", bench),
        (["simulate", f"--data={suite / 't.csv'}", "--explorers=uniform"], "pandas", tables),
        (["simulate", "--data=iris", f"--curve={home / 'c.svg'}"], "matplotlib", bench),
        (["datasets"], "scikit-learn", bench),
        (["doctor", home / "t.parquet"], "pyarrow", tables),
        (["evaluate", home / "t.parquet"], "pyarrow", tables),
        (["demo", f"--out={out}"], "scikit-learn", bench),
        (["bench", f"--suite={suite}", f"--out={out}"], "pandas", tables),
        (["bench", "--suite=bundled", f"--out={out}"], "scikit-learn", bench),
        (["compare", out], "scipy", bench),
        (["report", out], "scipy", bench),
        (["train", "--preset=paper", f"--out={out}"], "scikit-learn", bench),
        (["train", "--engine=dask", f"--out={out}"], "distributed", dask),
        (["serve", "--actions=a,b", f"--journal={out}"], "uvicorn", serve),
    ]:
        code, _, err = command(*arguments)
        assert code == 2, (arguments, code, err)
        sentence = err.strip().splitlines()[-1]
        assert sentence.startswith("melee: "), (arguments, err)
        asked = f" needs {package}, which is not installed: {advice}"
        assert sentence.endswith(asked), (arguments, err)
        assert "Traceback" not in err, (arguments, err)
        assert not out.exists(), arguments
    for refused, package, advice in [
        (lambda: melee.History().write(home / "new.parquet"), "pyarrow", tables),
        (lambda: read_table(home / "t.parquet"), "pandas", tables),
        (lambda: read_table(home / "t.arff"), "pandas", tables),
        (lambda: load_suite("bundled").entry("iris").load(), "scikit-learn", bench),
        (lambda: fetch(37, cache=home), "pandas", bench),
    ]:
        sentence = ""
        try:
            refused()
        except MissingPackageError as error:
            sentence = str(error)
        assert sentence.endswith(f" needs {package}, which is not installed: {advice}"), sentence
    assert not (home / "new.parquet").exists()


if __name__ == "__main__":
    if "--refuse" in sys.argv:
        sys.meta_path.insert(0, Refusing())
    with tempfile.TemporaryDirectory() as directory:
        live(Path(directory))
        run_commands(Path(directory))
        ask(Path(directory))
    assert not set(OPTIONAL) & set(sys.modules)
    print("all is well")
