"""What the broker needs of the outside, as protocols; adapters are named in the composition root alone."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of `now`."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...
