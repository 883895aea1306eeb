"""Style sheets and scripts, put into the page so that it needs no other file."""

from __future__ import annotations

from pathlib import Path


def inline(path_to_asset: Path) -> str:
    """A CSS or JavaScript file as the inside of its element, whose end tag must not stand in it."""
    text = path_to_asset.read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script").replace("</style", "<\\/style")
