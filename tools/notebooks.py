"""The worked examples as notebooks, each made of its script: there is one source.

    python -m tools.notebooks

writes examples/NAME.ipynb for every script in `EXAMPLES`; a test demands that they agree. A script
says what it shows in its docstring, which becomes the first cell. Its functions follow, a cell
each, and `example(**IN_A_NOTEBOOK)` is the last one: it plays less than the script does, and its
figure is what the notebook shows. How a command line is read (`main`, `save`) is left out.

Notebooks hold no outputs: those would differ by machine, and the figures are in docs/figures.
"""

import ast
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from melee.atomic import write_atomically

ROOT = Path(__file__).parent.parent
EXAMPLES = ("news", "prices", "catalogue", "ab_test", "servers", "from_vowpal_wabbit")
LEFT_OUT = ("main", "save")
LAST = """import matplotlib.pyplot as plt

plt.ion()  # has a notebook show figures
example(**IN_A_NOTEBOOK)"""
_COMMAND = re.compile(r"^    python .*\n", re.MULTILINE)


def notebook(name: str) -> str:
    """The notebook of an example, as a file has it."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    cells = [_cell(i, *cell) for i, cell in enumerate(cells_of(source, name))]
    content = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def cells_of(source: str, name: str) -> Iterator[tuple[str, str]]:
    """The kinds (`markdown`, `code`) and texts of an example's cells."""
    tree = ast.parse(source)
    yield "markdown", _introduction(ast.get_docstring(tree) or "", name)
    lines, begin = source.splitlines(), tree.body[0].end_lineno or 0
    kept = [node for node in tree.body[1:] if not _is_left_out(node)]
    used = {part.id for node in kept for part in ast.walk(node) if isinstance(part, ast.Name)}
    for _, together in groupby(tree.body[1:], _kept_together):
        nodes = list(together)
        node, end = nodes[-1], nodes[-1].end_lineno or 0
        unused = {each.lineno - 1 for each in nodes if _is_unused(each, used)}  # a line each
        text = "\n".join(lines[i] for i in range(begin, end) if i not in unused).strip("\n")
        begin = end
        if not _is_left_out(node):
            yield "code", text
    yield "code", LAST


def _kept_together(node: ast.stmt) -> int | str:
    """Imports are a cell, and what is said between two functions; a function is one of its own."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.lineno
    imports = isinstance(node, ast.Import | ast.ImportFrom) or _asks(node, "TYPE_CHECKING")
    return "imports" if imports else "values"


def _is_left_out(node: ast.stmt) -> bool:
    """Whether this is for a command line alone."""
    return _asks(node, "__name__") or (isinstance(node, ast.FunctionDef) and node.name in LEFT_OUT)


def _is_unused(node: ast.stmt, used: set[str]) -> bool:
    """Whether this imports nothing that a cell uses."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return not {alias.asname or alias.name.partition(".")[0] for alias in node.names} & used


def _asks(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.If) and name in ast.unparse(node.test)


def _introduction(docstring: str, name: str) -> str:
    title, _, rest = docstring.partition("\n")
    rest = re.sub(r"\n{3,}", "\n\n", _COMMAND.sub("", rest)).strip()
    made = (
        f"Made of [`examples/{name}.py`]({name}.py), which plays more and can be asked for other "
        "numbers. It needs `pip install melee-bandits[bench]`."
    )
    return f"# {title.rstrip('.')}\n\n{rest}\n\n{made}"


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell | {"source": lines}


def main() -> None:
    """Write every notebook."""
    for name in EXAMPLES:
        path = ROOT / "examples" / f"{name}.ipynb"
        write_atomically(path, notebook(name).encode())
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
