"""The market as this process knows it: pool, board and latest price book, loaded from the store and kept fresh.

It is a cache. What it says may be stale; then the database refuses an insert, the caller refreshes and tries again.
All access is under one lock, since a board may not even be read while it moves. Bookings are remembered by id, so
that a commit that a refresh has already seen is not applied twice, in whatever order the news arrives.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from sqlmodel import Session

from broker.inputs.tariffs import parse_tariff
from broker.store import bookings, pools, prices
from broker.store.database import Database
from broker.store.tables import PriceBookRow
from broker.wire.errors import NotReady
from market.board import Allocation, Board
from market.catalog import PPM
from market.errors import Refused
from market.instants import HORIZON_SLOTS, slot_of
from market.pricing import ModelLoad, PriceBook, PriceCurves
from market.quoting import Snapshot

BOARD_SLOTS = HORIZON_SLOTS + 96
"""A day more than can be booked, so that the board reaches past every price book until the next hour's."""
REMEMBERED = 10_000
"""How many ended bookings are remembered, for news of their beginning that arrives late."""
PRICED_SLOTS = HORIZON_SLOTS + 8
REPRICE_PPM = 2 * PPM // 100
"""A slot whose promised load has moved by two points makes a price book stale."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The currency of all amounts, and whether the pool is a simulated one."""

    currency: str
    simulated: bool


class MarketCache:
    """Thread-safe: every public function takes the lock, and `open` and `locked_board` keep it while they are used."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.RLock()
        self._board: Board | None = None
        self._empty: Board | None = None
        self._curves: PriceCurves | None = None
        self._revision = 0
        self._known: dict[str, tuple[Allocation, ...]] = {}
        self._reserved: dict[str, tuple[Allocation, ...]] = {}
        self._gone: deque[str] = deque(maxlen=REMEMBERED)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keeps everybody else out."""
        with self._lock:
            yield

    @contextmanager
    def open(self, now: datetime) -> Generator[Snapshot]:
        """The market at `now`, locked while in use (`NotReady` when nothing can be sold yet)."""
        with self._lock:
            board = self.board(now)
            if self._curves is None:
                raise NotReady
            if slot_of(now) not in self._curves.book.slots:
                raise NotReady("no price book covers this time yet; the next one is being published")
            yield Snapshot(pool=board.pool, board=board, curves=self._curves)

    @contextmanager
    def locked_board(self, now: datetime) -> Generator[Board]:
        """The board at `now`, locked while in use."""
        with self._lock:
            yield self.board(now)

    def board(self, now: datetime) -> Board:
        """The board from `now` on; only for a caller that holds the lock."""
        if self._board is None:
            self.refresh(now)
        board = self._board
        if board is None:
            raise NotReady
        if slot_of(now) > board.first_slot:
            board.advance(slot_of(now))
        elif slot_of(now) < board.first_slot - 1:  # the clock was set back: what was dropped as past is read again
            self.refresh(now)
        return self._board or board

    def refresh(self, now: datetime) -> None:
        """Loads pool, board and price book anew from the store, or changes nothing when that fails. The reads happen
        under the lock, so that what commits after them is applied after them."""
        with self._lock, self._database.read() as session:
            first, revision = slot_of(now), pools.revision(session)
            if not revision:
                return
            empty = self._empty if self._empty and revision == self._revision else _empty_board(session, first)
            known, board = bookings.live_allocations(session, first), empty.copy()
            board.first_slot = first
            for each in chain.from_iterable(known.values()):
                board.promise(each)
            curves = self._newest_curves(session)
            self._revision, self._empty, self._known, self._board = revision, empty, known, board
            self._curves = curves

    def _newest_curves(self, session: Session) -> PriceCurves | None:
        number = prices.latest_book_number(session)
        if number <= (self._curves.book.number if self._curves else 0):
            return self._curves
        row = prices.book(session, number)
        return PriceCurves(read_book(row, prices.tariff(session, row.tariff_id).document))

    @contextmanager
    def beside_reserved(self, board: Board) -> Generator[None]:
        """Lays what is being booked on the board as long as a place beside it is looked for; nobody else ever sees it
        there. For a caller that holds the lock."""
        laid: list[Allocation] = []
        try:
            for each in chain.from_iterable(self._reserved.values()):
                with suppress(Refused):  # taken by somebody else since: its booking will be refused
                    board.promise(each)
                    laid.append(each)
            yield
        finally:
            for each in laid:
                board.release(each)

    def reserve(self, booking_id: str, allocations: tuple[Allocation, ...]) -> None:
        """Keeps places from others of this process while they are being booked, until `unreserve`."""
        with self._lock:
            self._reserved[booking_id] = allocations

    def unreserve(self, booking_id: str) -> None:
        """Ends a reservation, whether it became a booking or not."""
        with self._lock:
            self._reserved.pop(booking_id, None)

    def promised(self, booking_id: str, allocations: tuple[Allocation, ...]) -> None:
        """Applies a booking that was committed."""
        with self._lock:
            if self._board is None or booking_id in self._known or booking_id in self._gone:
                return
            self._known[booking_id] = allocations
            try:
                for each in allocations:
                    self._board.promise(each)
            except Refused:
                self._board = None  # something known here is no longer so: the next who asks reads it anew

    def released(self, booking_id: str) -> None:
        """Applies the end of a booking that was committed."""
        with self._lock:
            self._gone.append(booking_id)
            self._release(self._known.pop(booking_id, ()))

    def _release(self, allocations: tuple[Allocation, ...]) -> None:
        if self._board is None:
            return
        try:
            for each in allocations:
                self._board.release(each)
        except ValueError:
            self._board = None  # news never fails: what is not so is read anew

    def install(self, book: PriceBook) -> None:
        """Takes a book that was published, unless a later one is known."""
        with self._lock:
            if self._curves is None or self._curves.book.number < book.number:
                self._curves = PriceCurves(book)

    def facts(self, now: datetime) -> PoolFacts:
        """What is said with every amount; it needs a pool and a price book, however old (`NotReady`)."""
        with self._lock:
            board = self.board(now)
            if self._curves is None:
                raise NotReady
            return PoolFacts(self._curves.book.tariff.currency, board.pool.simulated)

    @property
    def revision(self) -> int:
        """The revision of the pool that the board is made of."""
        with self._lock:
            return self._revision

    def is_behind(self, revision: int, book_number: int) -> bool:
        """Whether the store has a pool or a price book that this cache has not."""
        with self._lock:
            known = self._curves.book.number if self._curves else 0
            return self._board is None or revision != self._revision or book_number > known

    def book_is_due(self, now: datetime) -> bool:
        """Whether a book must be published for what is known here: none covers now, a new hour, or load that moved."""
        with self._lock:
            board = self.board(now)
            if self._curves is None or slot_of(now) not in self._curves.book.slots:
                return True
            book = self._curves.book
            if now.replace(minute=0, second=0, microsecond=0) > book.computed_at:
                return True
            sold = (model.name for model in board.pool.models if model.name in book.loads)
            return any(_has_moved(board, model, book.loads[model], book.first_slot) for model in sold)


def _empty_board(session: Session, first_slot: int) -> Board:
    """A board of the stored pool on which nothing is promised. Of a large pool that takes a while."""
    pool = pools.read(session)
    assert pool is not None
    return Board(pool, first_slot=first_slot, slots=BOARD_SLOTS)


def _has_moved(board: Board, model: str, load: ModelLoad, first_slot: int) -> bool:
    skipped = board.first_slot - first_slot
    now = board.promised_ppm(model)[: len(load.promised) - skipped]
    then = PriceCurves.array(load.promised)[skipped:]
    return bool((abs(now - then) >= REPRICE_PPM).any())


def read_book(row: PriceBookRow, document: str) -> PriceBook:
    """A stored price book as a value."""
    assert row.number is not None
    loads = {
        model: ModelLoad(promised=tuple(load["promised"]), still_to_come=tuple(load["still_to_come"]))
        for model, load in row.loads.items()
    }
    return PriceBook(
        number=row.number,
        tariff=parse_tariff(document),
        first_slot=row.first_slot,
        computed_at=row.computed_at,
        loads=loads,
    )
