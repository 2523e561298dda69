"""Files as data frames: CSV, Parquet and ARFF, each refusal with its reason."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from melee.datasets.arff import read_arff
from melee.errors import DataError
from melee.extras import needed

if TYPE_CHECKING:
    import pandas as pd

READABLE = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".arff", ".arff.gz")
"""Endings of the files that `read_table` reads."""

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""What stands for a missing value in CSV files."""


def read_frame(path: Path) -> "pd.DataFrame":
    """The file's columns as they are, or a sentence on why it cannot be read."""
    ending = next((e for e in sorted(READABLE, key=len) if path.name.lower().endswith(e)), None)
    if not path.exists():
        raise DataError(f"{path}: there is no such file; check the path")
    if path.is_dir():
        raise DataError(f"{path} is a directory; read one of its files, or load it as a suite")
    if ending is None:
        raise DataError(
            f"{path}: cannot tell the format from the name; known endings are {', '.join(READABLE)}"
        )
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty; expected a header and rows")
        if ending == ".parquet":
            frame = _read_parquet(path)
        elif ending.startswith(".arff"):
            with _open_text(path) as file:
                frame = read_arff(file.read(), source=path.name)
        else:
            frame = _read_csv(path, "\t" if ending.startswith(".tsv") else ",")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: byte {error.start} is not UTF-8 text; save the file in UTF-8"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: the gzip data is cut off or damaged ({error}); copy or fetch the file again"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    if frame.shape[0] == 0:
        raise DataError(f"{path}: there is a header but no rows; a task needs at least one")
    if frame.shape[1] < 2:
        raise DataError(
            f"{path}: there is only one column, '{frame.columns[0]}'; expected a label and at "
            "least one feature, separated by commas (.csv) or tabs (.tsv)"
        )
    return frame


def stem(path: Path) -> str:
    """The file's name without its ending.

    >>> stem(Path("data/wine.csv.gz"))
    'wine'
    """
    longest = sorted(READABLE, key=len, reverse=True)
    ending = next((e for e in longest if path.name.lower().endswith(e)), "")
    return path.name[: len(path.name) - len(ending)] or path.name


def _open_text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read_csv(path: Path, separator: str) -> "pd.DataFrame":
    with needed("reading CSV", "tables"):
        import pandas as pd

    with _open_text(path) as file:
        head = [row for _, row in zip(range(2), _rows(file, separator), strict=False)]
    if not head:
        raise DataError(f"{path}: the file is blank; expected a header and rows")
    # pandas would take a longer first row for an index, and fill up shorter rows in silence.
    if len(head) == 2 and len(head[0]) != len(head[1]):
        raise _ragged(path, separator)
    try:
        with _open_text(path) as file:
            frame = pd.read_csv(
                file,
                sep=separator,
                index_col=False,
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=True,
                low_memory=False,
            )
    except pd.errors.ParserError as error:
        raise _ragged(path, separator, str(error)) from None
    if frame.shape[0] and frame.iloc[:, -1].isna().any():
        with _open_text(path) as file:
            if any(len(row) != frame.shape[1] for row in _rows(file, separator)):
                raise _ragged(path, separator)
    return frame


def _rows(file: TextIO, separator: str) -> Iterator[list[str]]:
    """The rows that are not blank lines."""
    return filter(None, csv.reader(file, delimiter=separator, skipinitialspace=True))


def _ragged(path: Path, separator: str, otherwise: str = "rows differ in length") -> DataError:
    """The error that names the first row whose length differs from the header's."""
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        try:
            header = next(row for row in reader if row)
            for row in reader:
                if row and len(row) != len(header):
                    return DataError(
                        f"{path}: line {reader.line_num} has {len(row)} fields and the header "
                        f"has {len(header)}; repair that line, or quote fields that hold "
                        "the separator"
                    )
        except csv.Error as error:
            otherwise = str(error)
    return DataError(f"{path}: the rows cannot be parsed ({otherwise.strip()}); repair the file")


def _read_parquet(path: Path) -> "pd.DataFrame":
    with needed("reading Parquet", "tables"):
        import pandas as pd
        import pyarrow as pa

    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path}: not a complete Parquet file ({first}); copy or write it again"
        ) from None
    named_index = any(level is not None for level in frame.index.names)
    frame = frame.reset_index(drop=not named_index)
    frame.columns = pd.Index([str(c) for c in frame.columns])
    return frame
