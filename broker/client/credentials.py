"""Where the URL and the token of a person's broker live: one JSON file that nobody else can read.

GPUTIDE_URL and GPUTIDE_TOKEN win over the file. A saved token goes to the URL it was saved with and nowhere else.
GPUTIDE_CONFIG_DIR and GPUTIDE_DATA_DIR move the folders.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import cast

from broker.client.errors import InvalidCredentials, UnknownSetting, UnsafeCredentials
from market.instants import zone_named

SETTINGS = ("url", "zone", "cost_center", "ca_bundle")
"""What a person may set; the token is not among them: it comes from a login only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """One broker as a person knows it, with their own zone and the cost center they mostly book on."""

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None
    zone: str | None = None
    cost_center: str | None = None

    def at(self, url: str, token: str | None, ca_bundle: str | None = None) -> Credentials:
        """These at a broker; at another one than before, the cost center is unknown."""
        cost_center = self.cost_center if url == self.url else None
        return replace(self, url=url, token=token, ca_bundle=ca_bundle, cost_center=cost_center)

    def with_setting(self, name: str, value: str) -> Credentials:
        """These with one of `SETTINGS` changed, or removed by an empty value. A new URL drops the token.

        `UnknownSetting` names the nearest; `InvalidZone` and `UnsafeUrl` for what is no zone and no broker's URL.
        """
        if name not in SETTINGS:
            from difflib import get_close_matches

            nearest = get_close_matches(name, SETTINGS, n=1, cutoff=0)[0]
            raise UnknownSetting(f"there is no setting {name!r}; the nearest is {nearest} (all: {', '.join(SETTINGS)})")
        if name == "url":
            return self._moved(value)
        if name == "zone" and value:
            zone_named(value)
        if name == "ca_bundle" and value:
            value = str(Path(value).expanduser().resolve())
        return replace(self, **{name: value or None})

    def _moved(self, value: str) -> Credentials:
        if not value:
            return replace(self, url=None, token=None)
        from broker.client.connection import require_safe_url

        url = require_safe_url(value)
        return self if url == self.url else self.at(url, None)


def config_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of the file with the URL and the token."""
    return _folder("GPUTIDE_CONFIG_DIR", environ)


def data_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of what a person's own broker keeps."""
    return _folder("GPUTIDE_DATA_DIR", environ)


def credentials_file(environ: Mapping[str, str] | None = None) -> Path:
    return config_dir(environ) / "credentials.json"


def load(environ: Mapping[str, str] | None = None) -> Credentials:
    """What is in force: the environment over the file."""
    environ = os.environ if environ is None else environ
    saved = load_saved(environ)
    url, token = environ.get("GPUTIDE_URL"), environ.get("GPUTIDE_TOKEN")
    if url and url.rstrip("/") != saved.url:
        saved = saved.at(url, None, saved.ca_bundle)
    return replace(saved, token=token) if token else saved


def load_saved(environ: Mapping[str, str] | None = None) -> Credentials:
    """What the file says, all empty when there is none. `UnsafeCredentials` when others can read it."""
    path = credentials_file(environ)
    try:
        with path.open(encoding="utf-8") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                mend = f"chmod 600 {shlex.quote(str(path))}"
                raise UnsafeCredentials(f"{path} can be read by others, and your token is in it; run: {mend}")
            return _parsed(file.read(), path)
    except FileNotFoundError:
        return Credentials()
    except OSError as error:
        raise InvalidCredentials(f"{path} cannot be read: {error.strerror}") from None


def save(credentials: Credentials, environ: Mapping[str, str] | None = None) -> Path:
    """Writes the file whole or not at all, for its owner alone; returns where."""
    path = credentials_file(environ)
    said = {name: value for name, value in asdict(credentials).items() if value is not None}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_whole(path, json.dumps(said, indent=2) + "\n")
    except OSError as error:
        raise InvalidCredentials(f"{path} cannot be written: {error.strerror}") from None
    return path


def _write_whole(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".credentials-")  # mkstemp makes it 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _folder(variable: str, environ: Mapping[str, str] | None) -> Path:
    if moved := (os.environ if environ is None else environ).get(variable):
        return Path(moved).expanduser()
    import platformdirs

    if variable == "GPUTIDE_CONFIG_DIR":
        return platformdirs.user_config_path("gputide", appauthor=False)
    return platformdirs.user_data_path("gputide", appauthor=False)


def _parsed(text: str, path: Path) -> Credentials:
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidCredentials(f"{path} is no JSON; log in again: gputide login --url URL") from None
    known = {each.name for each in fields(Credentials)}
    said = cast("dict[str, object]", document) if isinstance(document, dict) else {"": document}
    for name, value in said.items():
        if name not in known:
            raise InvalidCredentials(f"{path} has the unknown key {name!r}; it knows {', '.join(sorted(known))}")
        if not isinstance(value, str):
            raise InvalidCredentials(f"{path}: {name} is no text")
    return Credentials(**cast("dict[str, str]", said))
