"""The README as a package index shows it, which has none of the files beside it.

There a picture of ours would be a broken one, and a link into docs/ would lead nowhere. So relative
pictures are left out with their captions, and relative links become their text.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(
    r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?(?:\*(?!\*)[^*]+\*\n\n?)?", re.MULTILINE
)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|mailto:|#)[^)\s]*\)")


def for_index(readme: str) -> str:
    """The text of a README without what only the repository has."""
    parts = _FENCE.split(readme)  # code is left as it is, every second part
    parts[::2] = [_LINK.sub(r"\1", _PICTURE.sub("", part)) for part in parts[::2]]
    return "".join(parts)


class IndexReadme(MetadataHookInterface):
    """Gives the metadata their description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field `readme`, which pyproject.toml leaves to this."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(readme)}
