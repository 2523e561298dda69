"""Files as data frames: CSV, Parquet and ARFF, each refusal with its reason."""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from melee.datasets.arff import read_arff
from melee.errors import DataError, MeleeError, file_error
from melee.extras import needed
from melee.limits import LINE, bounded_line, check_columns, check_table, check_unpacked

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
    check_unpacked(path)
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
        raise file_error(path, "read", error) from None
    except (MeleeError, MemoryError):
        raise
    except Exception as error:  # whatever a parser raises of a file that was made to break it
        raise DataError(
            f"{path}: the file cannot be parsed ({_first_line(error)}); repair or write it again"
        ) from None
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
        rows = _rows(file, separator, path)
        head = [row for _, row in zip(range(2), rows, strict=False)]
    if not any(field.strip() for row in head for field in row):
        raise DataError(f"{path}: the file is blank; expected a header and rows")
    check_columns(path, len(head[0]))
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
            if any(len(row) != frame.shape[1] for row in _rows(file, separator, path)):
                raise _ragged(path, separator)
    return frame


def _rows(file: TextIO, separator: str, path: Path) -> Iterator[list[str]]:
    """The rows that are not blank lines; a DataError where there is none to be had."""
    return (row for _, row in _numbered_rows(file, separator, path))


def _numbered_rows(file: TextIO, separator: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank lines, each with the number of its last line."""
    reader = csv.reader(_lines(file, path), delimiter=separator, skipinitialspace=True)
    while True:
        before = csv.field_size_limit(LINE.most)  # of all of Python, so only for a moment
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{path}: line {reader.line_num} cannot be parsed ({error}); repair that line, or "
                "quote fields that hold the separator"
            ) from None
        finally:
            csv.field_size_limit(before)
        if row is None:
            return
        if row:
            yield reader.line_num, row


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    number = 1
    while line := bounded_line(file, path, number):
        yield line
        number += 1


def _ragged(path: Path, separator: str, otherwise: str = "rows differ in length") -> DataError:
    """The error that names the first row whose length differs from the header's."""
    with _open_text(path) as file:
        rows = _numbered_rows(file, separator, path)
        _, header = next(rows)
        for number, row in rows:
            if len(row) != len(header):
                return DataError(
                    f"{path}: line {number} has {len(row)} fields and the header has "
                    f"{len(header)}; repair that line, or quote fields that hold the separator"
                )
    return DataError(f"{path}: the rows cannot be parsed ({otherwise.strip()}); repair the file")


def _read_parquet(path: Path) -> "pd.DataFrame":
    with needed("reading Parquet", "tables"):
        import pandas as pd
        import pyarrow as pa
        import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        check_table(
            path,
            n_rows=about.num_rows,
            n_columns=about.num_columns,
            n_bytes=sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)),
        )
        names = Counter(about.schema.to_arrow_schema().names)
        if twice := [name for name, n in names.items() if n > 1]:
            raise DataError(f"{path}: there are two columns '{twice[0]}'; rename one")
        frame = pd.read_parquet(path, engine="pyarrow")
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: not a complete Parquet file ({_first_line(error)}); copy or write it again"
        ) from None
    named_index = any(level is not None for level in frame.index.names)
    frame = frame.reset_index(drop=not named_index)
    frame.columns = pd.Index([str(c) for c in frame.columns])
    return frame


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
