"""The notebooks of the worked examples are their scripts, and run."""

import ast
import json

import matplotlib
import pytest

from tools.notebooks import EXAMPLES, LAST, ROOT, cells_of, notebook

SMALL = {
    "news": {"rounds": 60, "seeds": 1, "late": 5},
    "prices": {"rounds": 40, "seeds": 1},
    "catalogue": {"max_rounds": 60},
    "ab_test": {"rounds": 200, "tests": 1},
    "servers": {"rounds": 60, "seeds": 1, "half_life": 10},
    "from_vowpal_wabbit": {"rounds": 2000},
}


def code_of(name):
    found = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]


def test_there_is_a_notebook_of_each_of_the_six():
    found = sorted(path.stem for path in (ROOT / "examples").glob("*.ipynb"))
    assert found == sorted(EXAMPLES) == sorted(SMALL)
    assert len(found) == 6


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_is_what_its_script_makes(name):
    written = (ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert written == notebook(name), "run `python -m tools.notebooks`"
    found = json.loads(written)
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in found["cells"]]
    assert len(set(ids)) == len(ids)
    assert not any(cell.get("outputs") for cell in found["cells"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_says_all_that_its_script_does_but_for_the_command_line(name):
    script = ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    functions = {node.name for node in script.body if isinstance(node, ast.FunctionDef)}
    told = ast.parse("\n".join(code_of(name)))
    assert {node.name for node in told.body if isinstance(node, ast.FunctionDef)} == functions - {
        "main",
        "save",
    }
    assert "argparse" not in "\n".join(code_of(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_cells_of_a_notebook_run_and_end_in_a_picture(name, capsys):
    names: dict[str, object] = {"__name__": "notebook"}
    *cells, last = code_of(name)
    for cell in cells:
        exec(compile(cell, f"{name}.ipynb", "exec"), names)
    assert names["IN_A_NOTEBOOK"]
    names["IN_A_NOTEBOOK"] = SMALL[name]
    *statements, shown = ast.parse(last).body
    assert ast.unparse(shown) == "example(**IN_A_NOTEBOOK)"
    with matplotlib.rc_context():
        exec(compile(ast.Module(statements, []), f"{name}.ipynb", "exec"), names)
        figure = eval("example(**IN_A_NOTEBOOK)", names)
    assert isinstance(figure, matplotlib.figure.Figure)
    assert figure.axes
    assert capsys.readouterr().out


SCRIPT = '''"""Title.

    python x.py

Text.
"""

import argparse
import math
from pathlib import Path

A = 1

B = math.pi


def f():
    return A


C = 3


def main(path: Path):
    argparse.ArgumentParser()


if __name__ == "__main__":
    main()
'''


def test_cells_keep_what_belongs_together_and_leave_out_the_command_line():
    (_, first), *code = cells_of(SCRIPT, "x")
    assert first.startswith("# Title\n\nText.\n")
    assert "python x.py" not in first
    assert [text for _, text in code] == [
        "import math",
        "A = 1\n\nB = math.pi",
        "def f():\n    return A",
        "C = 3",
        LAST,
    ]
