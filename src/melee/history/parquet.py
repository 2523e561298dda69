"""Histories as Parquet tables.

Our tables have the columns id, time, context, action, probability, reward, pmf, policy, version
and stands_for; context, action and pmf are texts of JSON, as in a line of `melee.history.jsonl`.

In tables of others the context may be a struct or a list of numbers as well. If there is no column
`context`, every column whose name is not one of those above is a feature, null where it is
missing, and the action is what its column holds.
"""

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from melee.errors import DataError, InputError
from melee.extras import needed
from melee.history.history import History, gather
from melee.history.jsonl import dumps, from_json, parse, to_json
from melee.limits import check_table

COLUMNS = (
    *("id", "time", "context", "action", "probability", "reward", "pmf", "policy", "version"),
    "stands_for",
)
NUMBERS = ("time", "probability", "reward", "stands_for")
JSON = ("context", "action", "pmf", "features")
_INDEX = re.compile(r"__index_level_\d+__")  # what pandas adds


def read(path: Path, *, strict: bool = False, usable: bool = True) -> History:
    """The rounds of a Parquet file."""
    return gather(path, "row", rows(path), fields, strict=strict, usable=usable)


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | InputError]]:
    """The rows, numbered from 1; an error where a part of the file cannot be read."""
    with needed("reading Parquet", "tables"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    number = 1
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        names = file.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{path}: not a complete Parquet file ({_first_line(error)}); copy or write it again"
        ) from None
    with file:
        about = file.metadata
        check_table(path, n_rows=about.num_rows, n_columns=about.num_columns)
        if len(set(names)) < len(names):
            raise DataError(f"{path}: there are two columns of one name; rename one")
        batches = file.iter_batches(batch_size=4096)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                read = batch.to_pylist()
            except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
                yield (
                    number,
                    InputError(
                        f"from here on the table cannot be read ({_first_line(error)}); copy or "
                        "write the file again"
                    ),
                )
                return
            yield from enumerate(read, start=number)
            number += batch.num_rows


def fields(row: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `read_round`, from a row of ours or of others."""
    line = {key: value for key, value in row.items() if value is not None}
    if isinstance(line.get("time"), datetime):
        time = line["time"]
        line["time"] = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if isinstance(line.get("pmf"), str):
        line["pmf"] = _parsed("pmf", line["pmf"])
    if "context" in row:
        for name in ("context", "action", "features"):
            if isinstance(line.get(name), str):
                line[name] = _parsed(name, line[name])
    else:
        line.pop("features", None)  # a feature of that name
        line["context"] = {
            name: value
            for name, value in row.items()
            if name not in COLUMNS and not _INDEX.fullmatch(name)
        }
    return from_json(line)


def _parsed(name: str, text: str) -> Any:
    try:
        return parse(text)
    except InputError as error:
        raise InputError(
            f"the {name} is {text!r:.60}, which is not JSON ({error}); write texts in double quotes"
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def content(history: History, *, compress: bool = False) -> bytes:
    """A history as a Parquet file, which compresses in its own way."""
    with needed("writing Parquet", "tables"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    some = any(round_.features is not None for round_ in history)
    names = (*COLUMNS, "features") if some else COLUMNS
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for round_ in history:
        line = to_json(round_)
        for name, column in columns.items():
            value = line.get(name)
            column.append(dumps(value) if name in JSON and name in line else value)
    kinds = {name: pa.float64() if name in NUMBERS else pa.string() for name in names}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=pa.schema(kinds)), buffer, write_page_checksum=True)
    return buffer.getvalue()
