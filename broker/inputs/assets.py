"""Where the files lie that gputide ships: sample pools, tariffs, demand records.

A wheel carries them beside this module; in a checkout they stand at the root.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar

from market.errors import InvalidRequest

_FOLDERS = (Path(__file__).parents[1] / "assets", Path(__file__).parents[2] / "assets")  # in a wheel, in a checkout


class AssetMissing(InvalidRequest):
    """gputide ships no file of that name."""

    code: ClassVar[str] = "asset_missing"


def asset(*parts: str) -> Path:
    """The file of that name, as in `asset("pools", "campus.toml")` (`AssetMissing` otherwise)."""
    for folder in _FOLDERS:
        path = folder.joinpath(*parts)
        if path.is_file():
            return path
    *above, name = parts
    name = name.removesuffix(".toml")
    there = sorted(
        {
            path.name.removesuffix(".toml")
            for folder in _FOLDERS
            for path in folder.joinpath(*above).glob("*")
            if path.is_file()
        }
    )
    nearest = get_close_matches(name, there, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(there) or 'none there'}"
    raise AssetMissing(f"gputide ships no {'/'.join(parts)}; {hint}")
