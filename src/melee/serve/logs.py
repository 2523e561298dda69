"""Log lines for programs."""

import json
import logging
import sys


def log_to_stderr(level: str, format: str) -> None:  # noqa: A002
    """Have what melee logs, and warnings, come to the error stream, as `text` or as `json`."""
    handler = logging.StreamHandler(sys.stderr)
    if format == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.captureWarnings(True)
    for name in ("melee", "py.warnings", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level.upper() if name != "uvicorn" else "ERROR")


class JsonLines(logging.Formatter):
    """A line of JSON for each record, with all that it has beside its message."""

    KEYS = ("agent", "id", "action", "reward")

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line = {
            "time": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: getattr(record, key) for key in self.KEYS if hasattr(record, key)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)
