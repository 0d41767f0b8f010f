"""The base of every message: immutable, unknown fields refused on the way in."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

MAX_BIGINT = 2**63 - 1

Instant = AwareDatetime
Micros = Annotated[int, Field(ge=0, le=MAX_BIGINT, description="micros of the currency's major unit")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9@._+-]{0,99}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,4}_[0-9a-f]{24}$")]


class Message(BaseModel):
    """A message of the API."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """What a broker answers; a client ignores fields that a newer broker adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")
