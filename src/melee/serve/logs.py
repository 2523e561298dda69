"""Log lines for programs."""

import json
import logging


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
