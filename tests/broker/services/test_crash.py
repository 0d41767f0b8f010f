"""kill -9 at every failpoint: what was committed is there as a whole, what was not is gone, and asking again helps.

The failpoints come from their enumeration, so that a new one is tested as soon as it exists. A broker in a process of
its own is killed; this process then opens the database anew.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from broker.failpoints import Failpoint, Work
from broker.store.database import Database
from broker.wire.versions import IDEMPOTENCY_HEADER
from tests.support import audit
from tests.support.brokers import NOON, Shop, join_shop
from tests.support.crash_child import work

ROOT = Path(__file__).parents[3]
START = NOON + timedelta(hours=3)
KEY = "the same key"
NEED = "2 x l4/half"
Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Scene:
    """What a unit of work is done on (a need, a quote or a booking), and when."""

    subject: str
    now: datetime


WHEN = {
    Work.CANCEL: NOON + timedelta(hours=1),
    Work.GIVE_BACK: START - timedelta(minutes=30),
    Work.EXPIRE: START + timedelta(hours=2),
}
CHANGED = {
    Work.QUOTE: {"quote"},
    Work.BOOK: {"booking", "allocation", "hold", "transfer", "account", "device", "event", "idempotency"},
    Work.CANCEL: {"booking", "allocation", "hold", "transfer", "account", "device", "event", "idempotency"},
    Work.GIVE_BACK: {"booking", "allocation", "hold", "transfer", "account", "device", "event", "idempotency"},
    Work.EXPIRE: {"booking", "allocation", "hold", "transfer", "account", "device", "event"},
    Work.PUBLISH: {"price_book", "event"},
}
"""The tables that a unit of work changes: all of them or none."""


def set_scene(shop: Shop, what: Work) -> Scene:
    if what in (Work.QUOTE, Work.PUBLISH):
        return Scene(NEED, NOON)
    made = shop.quote(NEED, 1, start=START.isoformat())
    if what is Work.BOOK:
        return Scene(made.id, NOON)
    return Scene(shop.book(made).body["id"], WHEN[what])


def killed(url: str, shop: Shop, failpoint: Failpoint, scene: Scene) -> None:
    """Runs the unit of work of a failpoint in a process that does not survive it."""
    arguments = [url, shop.secret, scene.now.isoformat(), failpoint, scene.subject, KEY]
    child = subprocess.run(
        [sys.executable, "-m", "tests.support.crash_child", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stdout + child.stderr


@pytest.mark.parametrize("failpoint", Failpoint)
def test_a_broker_that_is_killed_loses_and_doubles_nothing(shop: Shop, database_url: str, failpoint: Failpoint) -> None:
    what = Work(failpoint.partition(".")[0])
    scene = set_scene(shop, what)
    before = audit.contents(shop.context.database.engine)
    killed(database_url, shop, failpoint, scene)
    with reopened(database_url, shop, scene.now) as again:
        engine = again.context.database.engine
        after = audit.contents(engine)
        assert changed(before, after) == (CHANGED[what] if failpoint is what.after_commit else set())
        assert audit.faults(engine) == []
        work(again, what, scene.subject, KEY)
        assert audit.faults(engine) == []
        done_once(what, before, after, engine)


def changed(before: Rows, after: Rows) -> set[str]:
    return {table for table, rows in after.items() if rows != before[table]}


def done_once(what: Work, before: Rows, after: Rows, engine: Engine) -> None:
    """Asking again after the crash: a keyed request and an expiry have their effect once, whenever the crash came."""
    now = audit.contents(engine)
    if what in (Work.QUOTE, Work.PUBLISH):
        table = "quote" if what is Work.QUOTE else "price_book"
        assert len(now[table]) == len(after[table]) + 1
        return
    added = {table: len(now[table]) - len(before[table]) for table in ("booking", "hold", "idempotency")}
    booked = 1 if what is Work.BOOK else 0
    assert added == {"booking": booked, "hold": booked, "idempotency": 0 if what is Work.EXPIRE else 1}
    assert len(now["allocation"]) - len(before["allocation"]) == 2 * booked
    if changed(before, after):
        assert changed(after, now) == set()
    else:
        assert changed(before, now) == CHANGED[what]


@contextmanager
def reopened(url: str, shop: Shop, now: datetime) -> Generator[Shop]:
    again = join_shop(url, shop.secret, now)
    yield again
    again.context.database.close()


def test_a_child_that_never_passes_the_armed_failpoint_survives(shop: Shop, database_url: str) -> None:
    """Nothing is due to expire: else a kill could not be told from a failpoint that is never passed."""
    with pytest.raises(AssertionError, match="survived"):
        killed(database_url, shop, Failpoint.EXPIRE_AFTER_COMMIT, Scene("", NOON))


# --- end to end ----------------------------------------------------------------------------------------------------


@contextmanager
def broker_up(data_dir: Path, failpoint: str | None = None) -> Generator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`python -m broker up` on a free port, with what it announces once it is ready."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUTIDE_")}
    if failpoint:
        environment["GPUTIDE_FAILPOINT"] = failpoint
    command = [sys.executable, "-m", "broker", "up", "--data-dir", str(data_dir), "--port", "0", "--pool", "campus"]
    serving = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        yield serving, json.loads(serving.stdout.readline())
    finally:
        serving.kill()
        serving.wait(60)


def test_a_real_broker_that_is_killed_answers_the_same_key_after_its_restart(tmp_path: Path) -> None:
    with broker_up(tmp_path, Failpoint.BOOK_AFTER_COMMIT) as (serving, said), client(said) as http:
        made = http.post("/v1/quotes", json={"need": "1 x l4/full", "seconds": 3600})
        assert made.status_code == 201, made.text
        ask = {"json": {"quote_id": made.json()["id"]}, "headers": {IDEMPOTENCY_HEADER: KEY}}
        with pytest.raises(httpx.TransportError):
            http.post("/v1/bookings", **ask)
        assert serving.wait(60) == -signal.SIGKILL
    with broker_up(tmp_path) as (_, said), client(said) as http:
        booked = [http.post("/v1/bookings", **ask) for _ in range(2)]
        assert [each.status_code for each in booked] == [201, 201]
        assert booked[0].json() == booked[1].json()
        assert booked[0].json()["quote_id"] == made.json()["id"]
        assert [each["id"] for each in http.get("/v1/bookings").json()["items"]] == [booked[0].json()["id"]]
    database = Database(f"sqlite:///{tmp_path / 'gputide.db'}")
    assert audit.faults(database.engine) == []
    database.close()


def client(said: dict[str, Any]) -> httpx.Client:
    return httpx.Client(base_url=said["url"], headers={"Authorization": f"Bearer {said['token']}"}, timeout=60)
