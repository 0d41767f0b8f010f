"""Settings of the broker: `GPUTIDE_*` variables over one TOML file over defaults; an unknown key is an error."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from broker.failpoints import Failpoint
from market.errors import GputideError
from market.instants import zone_named

PREFIX = "GPUTIDE_"
CLIENT_KEYS = ("url", "token", "config_dir", "debug", "zone", "cost_center", "ca_bundle", "config")
"""Variables of the same prefix that the client reads, and the one that names the settings file."""


class InvalidSettings(GputideError):
    """The settings are wrong."""

    code = "invalid_settings"


def _zone(name: str) -> str:
    try:
        zone_named(name)
    except GputideError as error:
        raise ValueError(error.detail) from None
    return name


def _database_url(url: SecretStr) -> SecretStr:
    """What the store can open. The value may hold a password, so no fault repeats it."""
    text = re.sub("^postgresql://", "postgresql+psycopg://", url.get_secret_value())
    try:
        known = make_url(text).drivername in ("sqlite", "postgresql+psycopg")
    except (ArgumentError, ValueError):
        known = False
    if not known:
        raise ValueError("write it as sqlite:///path or postgresql://user:password@host/name")
    return SecretStr(text)


class Settings(BaseSettings):
    """Every setting of the broker."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    data_dir: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("gputide")))
    database_url: Annotated[SecretStr, AfterValidator(_database_url)] | None = None
    organisation: str = "personal"
    organisation_zone: Annotated[str, AfterValidator(_zone)] | None = None
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8470
    tls_cert: Path | None = None
    tls_key: Path | None = None
    external_url: str | None = None
    clock: Path | None = None
    failpoint: Failpoint | None = None
    log_level: Annotated[str, Field(pattern="^(debug|info|warning|error)$")] = "info"

    @property
    def database(self) -> str:
        """The database URL; SQLite in the data folder unless another is named."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir / 'gputide.db'}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        path = os.environ.get(f"{PREFIX}CONFIG")
        file = (TomlConfigSettingsSource(settings_cls, Path(path)),) if path else ()
        return (init_settings, env_settings, *file)


def load_settings(**given: Any) -> Settings:
    """The settings in force (`InvalidSettings`, naming the key and never a value)."""
    _check_environment(os.environ)
    path = os.environ.get(f"{PREFIX}CONFIG")
    if path and not Path(path).is_file():
        raise InvalidSettings(f"the settings file {path} is not there")
    try:
        return Settings(**{key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidSettings("; ".join(_say(each) for each in error.errors(include_input=False))) from None
    except ValueError as error:
        raise InvalidSettings(f"settings file: {error}") from None


def _check_environment(environment: Mapping[str, str]) -> None:
    known = {*Settings.model_fields, *CLIENT_KEYS}
    for name in environment:
        prefix, key = name[: len(PREFIX)].upper(), name[len(PREFIX) :].lower()
        if prefix == PREFIX and key not in known:
            raise InvalidSettings(f"unknown setting {name}{_nearest(key)}")


def _say(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown setting {key!r}{_nearest(key)}"
    return f"{key}: {error['msg']}"


def _nearest(key: str) -> str:
    close = get_close_matches(key, list(Settings.model_fields), n=1)
    return f"; did you mean {close[0]}?" if close else f"; it knows {', '.join(sorted(Settings.model_fields))}"
