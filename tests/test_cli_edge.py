"""The edge of the command line: whatever comes, a user reads one sentence and no traceback."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import melee.cli
from melee.cli.base import out

ROWS = "".join(f"{i % 7},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(80))
NUMBERS = [float(i % 7) for i in range(80)]
LABELS = ["yes" if i % 7 > 3 else "no" for i in range(80)]
ARFF = "@relation r\n@attribute a numeric\n@attribute t {yes,no}\n@data\n"


@pytest.fixture
def edge(monkeypatch, capsys):
    """Runs a command as the shell does: its exit code, what it said, and its lines of complaint."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["melee", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            melee.cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err.splitlines()

    return run


def table(**columns):
    return lambda path: pq.write_table(pa.table(columns), path)


def text(content):
    return lambda path: path.write_text(content)


@pytest.mark.parametrize(
    ("name", "write", "sentence"),
    [
        ("blank.csv", text("   \n  \n\n"), "the file is blank; expected a header and rows"),
        ("digits.csv", text(f"a,target\n{'9' * 400},yes\n{ROWS}"), "holds inf in data row 1"),
        ("digits.arff", text(f"{ARFF}{'9' * 400},yes\n{ROWS}"), "holds inf in data row 1"),
        ("index.arff", text(f"{ARFF}{{{'9' * 5000} 1, 1 yes}}"), "an index from 0 to 1"),
        (
            "list.parquet",
            table(a=NUMBERS, target=[[1], [2, 3]] * 40),
            "holds a list or a structure",
        ),
        ("struct.parquet", table(a=NUMBERS, target=[{"k": 1}] * 80), "holds a list or a structure"),
        ("lists.parquet", table(a=[[1.0]] * 80, target=LABELS), "holds a ndarray in a cell"),
        ("none.csv", lambda path: None, "there is no such file; check the path"),
        ("dir.csv", lambda path: path.mkdir(), "is a directory; read one of its files"),
    ],
)
def test_simulate_on_a_hostile_file(name, write, sentence, tmp_path, edge):
    write(tmp_path / name)
    code, said, (line,) = edge("simulate", "--data", tmp_path / name, "--explorers", "uniform")
    assert (code, said) == (2, "")
    assert re.match(rf"melee: .*{name}.*{sentence}", line)


def test_a_long_field_is_no_reason_to_refuse_a_table(tmp_path, edge):
    (tmp_path / "t.csv").write_text(f"b,a,target\n{'x' * 140_000},1,yes\n" + "y,2,no\n" * 79)
    code, said, lines = edge(
        *["simulate", "--data", tmp_path / "t.csv", "--explorers", "uniform", "--format", "json"]
    )
    assert (code, lines) == (0, [])
    assert '"n_rounds": 50' in said


def decision(cost="-1.0", context='{"age": 3}'):
    return (
        f'{{"_label_cost": {cost}, "_label_probability": 0.5, "_label_Action": 1, "a": [1, 2], '
        f'"p": [0.5, 0.5], "c": {{"context": {context}, "_multi": [{{}}, {{}}]}}}}\n'
    )


HOSTILE = {
    "cost": (decision("-" + "9" * 401), r"line 31: the reward is inf; expected a finite number"),
    "digits": (
        decision("-" + "9" * 5000),
        r"line 31: it holds a number of 5,000 digits; the limit",
    ),
    "deep": (decision(context='{"a":' * 500 + "1" + "}" * 500), "line 31: it is nested too deeply"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_logs_commands_on_a_hostile_line(kind, tmp_path, edge):
    line, sentence = HOSTILE[kind]
    log = tmp_path / "log.dsjson"
    log.write_text(decision() * 30 + line)
    code, said, (complaint,) = edge("evaluate", log, "--explorers", "uniform", "--strict")
    assert (code, said) == (2, "")
    assert re.match(rf"melee: .*log\.dsjson, {sentence}", complaint)
    code, said, complaints = edge("doctor", log)
    assert (code, complaints) == (1, [])
    assert "errors" in said


def test_half_a_character_can_be_shown(tmp_path):
    log = tmp_path / "log.dsjson"
    log.write_text((decision() + decision(context='{"\\ud800": "\\udfff"}')) * 20)
    for command in (["doctor", log], ["evaluate", log, "--explorers", "uniform"]):
        done = shell(*command, env={"PYTHONIOENCODING": "ascii"})
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) <= 1


def shell(*arguments, env=(), **rest):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "melee.cli", *map(str, arguments)],
        text=True,
        capture_output=not rest,
        check=False,
        env={**os.environ, **dict(env)},
        **rest,
    )


@pytest.fixture
def fails(monkeypatch):
    """Makes the list of datasets end in an error."""

    def make(error):
        def fail(*_):
            raise error

        monkeypatch.setattr("melee.datasets.describe", fail)

    return make


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "there is not enough memory; use fewer rows, columns or processes"),
        (
            OSError(28, "No space left on device", "out/x"),
            2,
            "out/x: No space left on device; make",
        ),
        (
            PermissionError(13, "Permission denied", "s"),
            2,
            "s: Permission denied; check the permis",
        ),
        (RecursionError("too deep"), 70, "a defect of melee: RecursionError: too deep; please rep"),
        (UnicodeError("a\x1b[31m\nb"), 70, r"a defect of melee: UnicodeError: a\x1b[31m\nb; pleas"),
        (ZeroDivisionError("1/0"), 70, "a defect of melee: ZeroDivisionError: 1/0; please report"),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, BaseException) else None,
)
def test_what_nobody_foresaw_is_one_line_and_a_code(error, code, sentence, fails, edge):
    fails(error)
    found, _, (line,) = edge("datasets")
    assert found == code
    assert line.startswith(f"melee: {sentence}")
    if code == 70:
        details = Path(line.rpartition(" ")[2])
        content = details.read_text()
        details.unlink()
        assert "Traceback" in content
        assert "arguments: ['datasets']" in content


def test_an_interruption_behind_another_error_is_an_interruption(fails, edge):
    error = ImportError("numpy could not be imported")
    error.__context__ = KeyboardInterrupt()
    fails(error)
    assert edge("datasets")[::2] == (130, ["melee: interrupted"])


def test_a_traceback_is_shown_to_whoever_asks_for_it(fails, edge, monkeypatch):
    monkeypatch.setenv("MELEE_TRACEBACK", "1")
    fails(KeyError("x"))
    code, _, lines = edge("datasets")
    Path(lines[-1].rpartition(" ")[2]).unlink()
    assert code == 70
    assert "Traceback (most recent call last):" in lines


@pytest.mark.parametrize("module", ["typer", "melee.cli.base", "rich.table", "melee.datasets"])
def test_ctrl_c_while_modules_are_imported_is_one_line(module):
    code = f"""if True:
        import sys
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    raise KeyboardInterrupt
        sys.meta_path.insert(0, Finder())
        sys.argv = ["melee", "datasets"]
        from melee.cli import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "melee: interrupted\n")


def test_the_guard_stands_before_anything_is_imported():
    code = "import sys, melee.cli; print(sorted({'typer', 'rich', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n"


def test_nobody_reading_the_output_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = shell("datasets", "--suite", "paper300", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert done.returncode in (1, 141)  # the first is Rich's
    assert done.stderr == ""


def test_output_to_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = shell("--version", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == ("melee: No space left on device; make room on the disk and try again\n")


def test_targets_that_cannot_be_written_get_a_sentence(tmp_path, edge, monkeypatch):
    (tmp_path / "file").touch()
    under = tmp_path / "file" / "x"
    (tmp_path / "dir.png").mkdir()
    data = tmp_path / "t.csv"
    data.write_text(f"a,target\n{ROWS}")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "t.csv").write_text(f"a,target\n{ROWS}")
    play = ["simulate", "--data", data, "--explorers", "uniform", "--curve"]
    for command, sentence in [
        (["bench", "--suite", suite, "--explorers", "uniform", "--out", under], "Not a directory"),
        (["train", "--out", under], "Not a directory"),
        ([*play, tmp_path / "dir.png"], "it is a directory; name a file in it"),
        ([*play, under / "c.png"], "there is no directory"),
    ]:
        code, said, (*bar, line) = edge(*command)
        assert (code, said) == (2, "")
        assert line.startswith("melee: ")
        assert sentence in line
        assert "Traceback" not in "".join(bar)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    for command in ([*play, tmp_path / "c.png"], ["train", "--out", tmp_path / "new"]):
        code, _, (*_, line) = edge(*command)
        assert code == 2
        assert "cannot be written to" in line


def test_a_suite_that_cannot_be_read_gets_a_sentence(tmp_path, edge, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    expected = f"melee: {tmp_path}: cannot be read (Permission denied); check the permissions, or "
    for command in (["datasets"], ["bench", "--out", tmp_path / "out", "--explorers", "uniform"]):
        code, _, (line,) = edge(*command, "--suite", tmp_path)
        assert code == 2
        assert line.startswith(expected)


def test_the_list_of_datasets_names_the_problem_of_each_and_goes_on(tmp_path, edge, monkeypatch):
    (tmp_path / "good.csv").write_text(f"a,target\n{ROWS}")
    (tmp_path / "blank.csv").write_text("  \n")
    monkeypatch.setattr(out, "_width", 200)
    code, said, lines = edge("datasets", "--suite", tmp_path)
    assert (code, lines) == (0, [])
    assert "1 of 2 can be played" in said
    assert "the file is blank" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["simulat"],
            r"unknown command 'simulat'; did you mean 'simulate'\? Known: serve, journal",
        ),
        (["journal", "shwo"], r"unknown command 'shwo'; did you mean 'show'\? Known: verify"),
        (
            ["bench", "--explorer", "linucb"],
            r"unknown option of melee bench '--explorer'; did you mean '--explorers'\? Known",
        ),
        (["bench"], r"--suite is missing; melee bench --help says what it takes"),
        (["report"], r"DIRECTORY is missing; melee report --help"),
        (["explorers", "x"], r"x was not expected; melee explorers --help"),
        (["demo", "--seeds"], r"--seeds needs a value; melee"),
        (["demo", "--seeds", "0"], r"--seeds: .*1.*; melee demo --help"),
        (["demo", "--seeds", "two"], r"--seeds: .*; melee demo --help"),
    ],
)
def test_arguments_that_are_wrong_get_a_sentence_like_all_else(arguments, sentence, edge):
    code, said, (line,) = edge(*arguments)
    assert (code, said) == (2, "")
    assert re.match(f"melee: {sentence}", line)


def test_without_a_command_there_is_help(edge):
    code, said, lines = edge()
    assert code == 2
    assert "Usage: melee" in said + "\n".join(lines)
