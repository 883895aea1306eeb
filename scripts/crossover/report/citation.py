"""How to cite the workflow: its citation file (Citation File Format 1.2) as a sentence and as BibTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


def citation(path_to_cff: Path) -> dict[str, str] | None:
    """Keys `text`, `bibtex` and `license`; None where there is no such file, or none that can be read."""
    try:
        found = yaml.safe_load(path_to_cff.read_text(encoding="utf-8"))
        authors = [_name(author) for author in found["authors"]]
        title = str(found["title"])
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError):
        return None
    return {
        "text": _text(found, authors, title),
        "bibtex": _bibtex(found, authors, title),
        "license": _of(found, "license"),
    }


def _name(author: Mapping[str, Any]) -> str:
    """'Ada van Lovelace', or the name of an entity."""
    parts = (author.get(key) for key in ("given-names", "name-particle", "family-names", "name-suffix"))
    return " ".join(str(part) for part in parts if part) or str(author["name"])


def _of(found: Mapping[str, Any], key: str) -> str:
    return str(found.get(key) or "")


def _address(found: Mapping[str, Any]) -> str:
    doi = _of(found, "doi")
    return f"https://doi.org/{doi}" if doi else _of(found, "url") or _of(found, "repository-code")


def _text(found: Mapping[str, Any], authors: list[str], title: str) -> str:
    year, version = _of(found, "date-released")[:4], _of(found, "version")
    parts = [", ".join(authors) + (f" ({year})" if year else ""), title + (f", version {version}" if version else "")]
    return ". ".join([*parts, *filter(None, [_address(found)])]) + "."


def _bibtex(found: Mapping[str, Any], authors: list[str], title: str) -> str:
    first_word = re.sub(r"\W.*", "", title, flags=re.DOTALL).lower() or "software"
    date = _of(found, "date-released")
    fields = {
        # In braces of its own, an entity is not taken apart into first and last name.
        "author": " and ".join(
            f"{{{_escaped(name)}}}" if "name" in author else _escaped(name)
            for name, author in zip(authors, found["authors"], strict=True)
        ),
        "title": f"{{{_escaped(title)}}}",
        "version": _escaped(_of(found, "version")),
        "year": date[:4],
        "month": str(int(date[5:7])) if len(date) >= 7 else "",
        "license": _escaped(_of(found, "license")),
        "doi": _of(found, "doi"),
        "url": _of(found, "url") or _of(found, "repository-code"),
    }
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items() if value]
    return "\n".join([f"@software{{{first_word}{date[:4]},", *lines, "}"])


def _escaped(text: str) -> str:
    return "".join(ESCAPES.get(character, character) for character in text)
