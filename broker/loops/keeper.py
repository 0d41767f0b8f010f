"""The keeper: one thread that does what is due: publish price books, expire bookings, number events.

It looks once a second by its own clock and at once when a service says that something was committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from time import monotonic

import structlog

from broker.context import Context
from broker.services.expire import expire_due
from broker.services.publish import publish
from broker.store import answers, bookings, events, ledger, pools, prices
from broker.telemetry import Metrics
from broker.wire.errors import NotReady
from market.errors import GputideError

_log = structlog.get_logger()
LOOK_EVERY_S = 1.0


class Keeper:
    """Runs until `stop`. `told` is called after events were numbered."""

    def __init__(
        self,
        context: Context,
        metrics: Metrics,
        told: Callable[[], None],
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        """`seconds` is a clock that only goes on, for what is done at most once a second."""
        self._seconds = seconds
        self._context, self._metrics, self._told = context, metrics, told
        self._tidied: datetime | None = None
        self._looked = seconds() - LOOK_EVERY_S
        self._due, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._due.set()

    def stop(self) -> None:
        self._stopping.set()
        self._due.set()
        self._thread.join(timeout=10)

    def turn(self) -> None:
        """Does once what is due; a fault of one task does not keep the others from theirs."""
        for name, task in (
            ("reload", self._reload),
            ("expire", self._expire),
            ("publish", self._publish),
            ("number", self._number),
            ("tidy", self._tidy),
        ):
            try:
                task()
            except NotReady:
                continue
            except GputideError as error:
                self._fault(name, error)
            except Exception as error:  # noqa: BLE001 - a loop outlives any fault of one turn, and says so
                self._fault(name, error)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._due.clear()
            self.turn()
            self._due.wait(LOOK_EVERY_S)

    def _fault(self, name: str, error: Exception) -> None:
        self._metrics.faults.labels(name).inc()
        _log.error("loop_fault", loop=name, exc_info=error)

    def _reload(self) -> None:
        """Another process may have loaded a pool or published a book."""
        with self._context.database.read() as session:
            revision, number = pools.revision(session), prices.latest_book_number(session)
        if self._context.cache.is_behind(revision, number):
            self._context.cache.refresh(self._context.now())

    def _expire(self) -> None:
        expire_due(self._context)

    def _publish(self) -> None:
        """Looks for it once a second, however often it is woken: each booking of many would make a price book else."""
        if self._seconds() - self._looked < LOOK_EVERY_S:
            return
        self._looked = self._seconds()
        if self._is_due():
            book = publish(self._context)
            self._metrics.book_number.set(book.number)
            for model, load in book.loads.items():
                self._metrics.load.labels(model).set((load.promised[0] + load.still_to_come[0]) / 1_000_000)
            _log.info("price_book", number=book.number)

    def _is_due(self) -> bool:
        now = self._context.now()
        if self._context.cache.book_is_due(now):
            return True
        with self._context.database.read() as session:
            tariff = prices.tariff_in_force(session, now)
            wanted = (tariff.id if tariff else None, pools.revision(session))
            return prices.latest_basis(session) != wanted

    def _number(self) -> None:
        with self._context.database.read() as session:
            waiting = events.has_new(session)
        if waiting and self._context.database.write(events.number_new):
            self._told()

    def _tidy(self) -> None:
        """Once an hour: old answers and old quotes go, the board is read anew, whatever news it may have missed, and
        the balances of the ledger are added up again."""
        now = self._context.now()
        hour = now.replace(minute=0, second=0, microsecond=0)
        if hour != self._tidied:
            self._context.database.write(lambda session: answers.forget_old(session, now))
            self._context.database.write(lambda session: bookings.forget_quotes(session, now))
            self._context.cache.refresh(now)
            self._tidied = hour
            with self._context.database.read() as session:
                if wrong := ledger.imbalances(session):
                    raise RuntimeError(f"the ledger does not balance: accounts {wrong}")
