"""What an import may load, looked at in a process of its own: start-up is a feature, and floors are floors."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVER = {"numpy", "fastapi", "starlette", "uvicorn", "sqlmodel", "sqlalchemy", "alembic", "structlog", "textual"}
SLOW = {"pydantic", "httpx", "platformdirs", "rich"}

CASES = [
    ("import tui.cli", SERVER | SLOW),
    ("from tui.cli import run; run(['offers', '--help'])", SERVER | SLOW),
    ("import tui.cli.session, broker.client.events, broker.client.listings, broker.client.chart", SERVER),
]


@pytest.mark.parametrize(("code", "forbidden"), CASES)
def test_an_import_loads_no_more_than_it_needs(code: str, forbidden: set[str]) -> None:
    look = f"{code}\nimport sys\nprint('\\n' + ' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}
    assert loaded & forbidden == set()
