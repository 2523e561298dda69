"""What would be published is fit to be installed, or is said not to be (`make release-check`).

    python -m tools.release_check

Builds the source distribution, and the wheel from it; reads their metadata, contents and sizes, and
the README as an index would; then installs each into an empty environment of every Python that
there is from 3.11 to 3.14 and runs tools/smoke.py there: the wheel with what a simulation needs,
the source with the base alone. The licences of all that was installed have to be ones that ask
nothing of those who use a program. Everything happens in a temporary directory.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).parent.parent
Package = tuple[str, str, str]  # name, version, licence
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
MOST_BYTES = {".whl": 1_000_000, ".gz": 3_000_000}
# Without these a wheel looks whole and is not.
NEEDED = (
    "melee/py.typed",
    "melee/report/page.html",
    "melee/datasets/paper300.csv",
    "melee/pretrained/melee/manifest.json",
    "melee/pretrained/melee/weights.npz",
    "melee/pretrained/paper/manifest.json",
    "melee/pretrained/paper/weights.npz",
)
_REFUSE = re.compile(r"(^|/)(__pycache__|\.venv[^/]*|\.git|\.[a-z]+_cache|site|runs|results)(/|$)")
_DATA = re.compile(r"\.(pyc|pyo|so|parquet|arff|jsonl|dsjson|melee|gz|pickle|pkl)$")
_RELATIVE = re.compile(r"\]\((?!https?:|mailto:|#)")
_PERMISSIVE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|Python-2\.0|MPL|Mozilla|Zlib|"
    r"Unlicense|CC0|HPND|MIT-CMU|CNRI|matplotlib|Matplotlib)\b",
)
_COPYLEFT = re.compile(r"\b[AL]?GPL|GNU (?:Affero |Lesser )?General|\bSSPL|\bBUSL", re.IGNORECASE)


def content_problems(names: Iterable[str], *, is_wheel: bool) -> Iterator[str]:
    """What a distribution holds that it should not, or lacks."""
    names = set(names)
    for name in sorted(names):
        # Tests read files of earlier versions; they are in the source alone.
        is_data = _DATA.search(name) and not name.startswith("tests/")
        if _REFUSE.search(name) or is_data:
            yield f"{name} should not be inside"
        if is_wheel and not name.startswith(("melee/", "melee_bandits-")):
            yield f"{name} would be installed beside the package"
    prefix = "" if is_wheel else "src/"
    for needed in NEEDED:
        if prefix + needed not in names:
            yield f"{prefix}{needed} is missing"


def metadata_problems(text: str, project: dict[str, object], version: str) -> Iterator[str]:
    """Where the metadata of a wheel differ from what pyproject.toml promises."""
    about = HeaderParser().parsestr(text)
    expected = {
        "Name": project["name"],
        "Version": version,
        "Summary": project["description"],
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    for field, value in expected.items():
        if about[field] != value:
            yield f"{field} is {about[field]!r}, expected {value!r}"
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    if set(about.get_all("Provides-Extra", [])) != set(extras):
        yield f"Provides-Extra is {about.get_all('Provides-Extra')}, expected {sorted(extras)}"
    if _RELATIVE.search(str(about.get_payload())):
        yield "the description shows or leads to files that an index does not have"
    if "LICENSE" not in about.get_all("License-File", []):
        yield "License-File does not name LICENSE"


def licence_problems(installed: Iterable[Package]) -> Iterator[str]:
    """Packages whose licence is not known to be permissive."""
    for name, version, licence in installed:
        permissive = bool(_PERMISSIVE.search(licence))
        # `A OR B` may be chosen from; GCC's runtime exception frees what is linked with it.
        free = " OR " in licence or "GCC-exception" in licence or "exception" in licence
        if not permissive or (_COPYLEFT.search(licence) and not free):
            yield f"{name} {version} has the licence {licence or 'that it does not name'!r}"


def pythons() -> dict[str, Path | None]:
    """An interpreter of every version that we support, or None where there is none."""
    found: dict[str, Path | None] = {}
    for version in VERSIONS:
        named = shutil.which(f"python{version}")
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        candidates = [*kept, *([Path(named)] if named else [])]
        found[version] = next(
            (candidate for candidate in candidates if _answers(candidate, version)), None
        )
    return found


def _answers(python: Path, version: str) -> bool:
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def install_and_try(python: Path, what: str, extent: str, directory: Path) -> list[Package]:
    """An empty environment, the distribution in it, the smoke test; what was installed."""
    subprocess.run([python, "-m", "venv", directory], check=True)
    inside = directory / "bin" / "python"
    install: list[str | Path] = [
        inside,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        what,
    ]
    _run(install, f"{what} cannot be installed", directory)
    said = _run([inside, "-I", ROOT / "tools" / "smoke.py", extent], "the smoke test", directory)
    return [
        (name, version, licence) for name, version, licence in json.loads(said.splitlines()[-1])
    ]


def _run(command: Sequence[str | Path], what: str, directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{what} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _stop_if(problems: Iterable[str], where: str) -> None:
    found = list(problems)
    if found:
        sys.exit("\n".join(f"{where}: {fault}" for fault in found))


def check_files(out: Path) -> tuple[Path, Path]:
    """Build both distributions and look at them; the wheel and the source."""
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT], "building", out)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    from melee.version import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        _stop_if(content_problems(names, is_wheel=True), wheel.name)
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(about).decode()
        _stop_if(metadata_problems(text, project, __version__), wheel.name)
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        _stop_if(content_problems(names, is_wheel=False), source.name)
    for path in (wheel, source):
        size, most = path.stat().st_size, MOST_BYTES[path.suffix]
        _stop_if([f"{size:,} bytes, at most {most:,}"] if size > most else [], path.name)
        print(f"{path.name}: {size:,} bytes; metadata and contents are in order")
    _run([sys.executable, "-m", "twine", "check", "--strict", wheel, source], "twine check", out)
    print("the README renders")
    return wheel, source


def main() -> None:
    """Build, read, install, try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="only this version, such as 3.12")
    wanted = parser.parse_args().python or VERSIONS
    with tempfile.TemporaryDirectory(prefix="melee-release-") as directory:
        out = Path(directory)
        wheel, source = check_files(out)
        found = {version: path for version, path in pythons().items() if version in wanted}
        for version, python in found.items():
            if python is None:
                continue
            installed = install_and_try(python, f"{wheel}[bench]", "bench", out / f"w{version}")
            _stop_if(licence_problems(installed), f"Python {version}")
            print(f"Python {version}: the wheel works, with {len(installed)} packages")
            installed = install_and_try(python, str(source), "base", out / f"s{version}")
            _stop_if(licence_problems(installed), f"Python {version}")
            print(f"Python {version}: the source works, with {len(installed)} packages")
        missing = [version for version, python in found.items() if python is None]
        if missing:
            print(f"not tried, for want of an interpreter: Python {', '.join(missing)}")
        if len(missing) == len(found):
            sys.exit("no interpreter was found: nothing was installed")


if __name__ == "__main__":
    main()
