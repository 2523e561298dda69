"""Log lines for people and for programs."""

import json
import logging
import sys
from typing import Any


def log_to_stderr(level: str, format: str) -> None:  # noqa: A002
    """Have what melee logs, and warnings, come to the error stream, as `text` or as `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    logging.captureWarnings(True)
    for name in ("melee", "py.warnings", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level.upper() if name != "uvicorn" else "ERROR")


KEYS = ("event", "agent", "id", "action", "reward", "change")
"""What a record may have beside its message."""


def beside(record: logging.LogRecord) -> dict[str, Any]:
    """What a record has beside its message."""
    return {key: getattr(record, key) for key in KEYS if hasattr(record, key)}


class TextLines(logging.Formatter):
    """A line for each record; what it has beside its message is JSON, so that it stays one line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line, without the traceback that may follow it."""
        more = (
            f" {key}={json.dumps(value, default=repr)}" for key, value in beside(record).items()
        )
        return super().formatMessage(record) + "".join(more)


class JsonLines(logging.Formatter):
    """A line of JSON for each record, with all that it has beside its message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **beside(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)
