"""From a request to a priced plan: which SKU, which window, at which rate, and what else could be had.

The one place where a window and a SKU are chosen for a person. It reads one snapshot (pool, board, price curves) and
one `now`; it promises nothing: a quote is made of its answer, and the place is given at booking time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np

from market.board import Board
from market.catalog import ISOLATION_RANK, PPM, TIERS_SOLD, Footprint, Pool, Sku, Tier
from market.errors import (
    BeyondHorizon,
    DeadlineNeeded,
    DeadlineTooSoon,
    InvalidLength,
    NoCapacity,
    NoSuchCapacity,
    PriceMissing,
    TierUnavailable,
    WindowInPast,
)
from market.instants import (
    HORIZON_SLOTS,
    SLOT_SECONDS,
    SLOTS_A_DAY,
    Window,
    require_utc,
    slot_ceiling,
    slot_of,
    slot_start,
    whole_second,
)
from market.money import charge
from market.needs import Need, candidates
from market.phrases import format_length
from market.pricing import PriceCurves
from market.proposals import Proposal, ProposalKind

LEAST_SECONDS = 300
MOST_SECONDS = HORIZON_SLOTS * SLOT_SECONDS
FARTHEST_START = timedelta(seconds=MOST_SECONDS + SLOTS_A_DAY * SLOT_SECONDS)
"""A day past the horizon, so that the price book says where prices end; beyond it nothing is computed."""


class Urgency(StrEnum):
    """What an hour of waiting is worth to a flexible request."""

    NOW = "now"
    TODAY = "today"
    WHENEVER = "whenever"


WAITING_PPM = {Urgency.NOW: 500_000, Urgency.TODAY: 20_000, Urgency.WHENEVER: 0}
"""Value of an hour's delay, as a part of the base price of the whole request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asks for. With `finish_by` it is flexible from `start` (or now) on; else it starts when it says."""

    need: Need
    seconds: int
    tier: Tier = Tier.STANDARD
    start: datetime | None = None
    finish_by: datetime | None = None
    urgency: Urgency = Urgency.WHENEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a decision reads: the pool, what is promised of it, and one price book. Nothing here is written to."""

    pool: Pool
    board: Board
    curves: PriceCurves


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The proposal that answers a request as asked, and cheaper or nearer ones beside it."""

    proposal: Proposal
    taken: Footprint
    alternatives: tuple[Proposal, ...]


def plan(request: Request, snapshot: Snapshot, now: datetime) -> Plan:
    """The cheapest way to meet a request; raises an `InvalidRequest` or, with alternatives, `NoCapacity`."""
    now = whole_second(now)
    check_request(request, now)
    skus = sold_candidates(request, snapshot)
    earliest = _earliest(request, now)
    found = [
        (cost, proposal)
        for sku in skus
        if (proposal := _best_start(request, snapshot, sku, earliest)) is not None
        for cost in (proposal.total + _waiting_cost(request, snapshot, proposal, earliest),)
    ]
    if not found:
        raise NoCapacity(_nothing_free(request), nearest(request, snapshot, skus, earliest))
    found = [pair for pair in found if pair[1].total]
    if not found:
        raise PriceMissing("that costs less than a millionth, so it is not sold; ask for more, or for longer")
    found.sort(key=lambda pair: (pair[0], pair[1].window.start, _isolation(snapshot, pair[1].sku), pair[1].sku))
    chosen = found[0][1]
    taken = snapshot.pool.footprint(chosen.sku)
    others = [replace(each, kind=ProposalKind.OTHER_SKU) for _, each in found[1:3]]
    return Plan(proposal=chosen, taken=taken, alternatives=(*_cheaper(request, snapshot, chosen, earliest), *others))


def check_request(request: Request, now: datetime) -> None:
    """Everything that is wrong with a request whatever the pool holds."""
    if not LEAST_SECONDS <= request.seconds <= MOST_SECONDS:
        raise InvalidLength(f"a booking lasts 5 minutes to 14 days, not {request.seconds} seconds")
    check_tier(request.tier)
    if request.start is not None and require_utc(request.start) < now:
        raise WindowInPast(f"{_utc(request.start)} is past; it is {_utc(now)} now")
    if request.start is not None and require_utc(request.start) > now + FARTHEST_START:
        raise BeyondHorizon(f"{_utc(request.start)} is more than 14 days away; ask for a start before that")
    if request.finish_by is None:
        if request.tier is Tier.ECONOMY:
            raise DeadlineNeeded
        return
    if require_utc(request.finish_by) <= now:
        raise WindowInPast(f"finish by {_utc(request.finish_by)} is past; it is {_utc(now)} now")
    earliest = _earliest(request, now)
    if earliest + timedelta(seconds=request.seconds) > request.finish_by:
        soonest = _utc(earliest + timedelta(seconds=request.seconds))
        length = format_length(request.seconds)
        raise DeadlineTooSoon(f"{length} from {_utc(earliest)} end at {soonest}, after {_utc(request.finish_by)}")


def check_tier(tier: Tier) -> None:
    """`TierUnavailable` for a tier whose promise nobody would enforce yet: it has no price either."""
    if tier not in TIERS_SOLD:
        raise TierUnavailable(f"{tier} is not sold until preemption is live; ask for standard or economy")


def sold_candidates(request: Request, snapshot: Snapshot) -> tuple[Sku, ...]:
    """The SKUs that meet the need and have a price (`NoSuchCapacity` if even the empty pool were too small)."""
    pool, curves = snapshot.pool, snapshot.curves
    skus = candidates(request.need, pool)
    priced = tuple(sku for sku in skus if sku.model in curves.book.tariff.base and sku.model in curves.book.loads)
    if not priced:
        raise PriceMissing(f"no price is published for {', '.join(map(str, skus[:3]))}, so it is not sold")
    sizes = {sku: snapshot.board.capacity(sku.model, pool.footprint(sku)) for sku in priced}
    enough = tuple(sku for sku in priced if sizes[sku] >= request.need.count)
    if not enough:
        largest = max(sizes, key=lambda sku: (sizes[sku], str(sku)))
        raise NoSuchCapacity(f"the whole pool holds {sizes[largest]} x {largest}, fewer than {request.need.count}")
    return enough


def nearest(request: Request, snapshot: Snapshot, skus: tuple[Sku, ...], earliest: datetime) -> tuple[Proposal, ...]:
    """What could be had instead, three at most: the next free start of what was asked, the soonest first, then other
    SKUs with as much memory that are free at the asked start, the cheapest first."""
    later = [each for sku in skus for each in _first_start(request, snapshot, sku, earliest)]
    later.sort(key=lambda each: (each.window.start, each.total, each.sku))
    if request.need.sku is None:
        return tuple(later[:3])
    others = _other_skus(request, snapshot, request.need.sku, earliest)
    return (*later, *sorted(others, key=lambda each: (each.total, each.sku)))[:3]


def propose(
    request: Request, snapshot: Snapshot, sku: Sku, start: datetime, kind: ProposalKind = ProposalKind.AS_ASKED
) -> Proposal:
    """The price of a request on a SKU from a start on, whether or not it is free."""
    window = Window(start, start + timedelta(seconds=request.seconds))
    share = snapshot.pool.footprint(sku).share
    rate = snapshot.curves.window_rate(sku.model, share, request.tier, window)
    total = charge(rate=rate, seconds=request.seconds, count=request.need.count)
    return Proposal(
        kind=kind, sku=sku, tier=request.tier, count=request.need.count, window=window, rate=rate, total=total
    )


def _earliest(request: Request, now: datetime) -> datetime:
    """Windows are whole seconds: a start with a fraction rounds up, so that it is never before what was asked."""
    if request.start is None:
        return now
    start = whole_second(request.start)
    return start if start == require_utc(request.start) else start + timedelta(seconds=1)


def _best_start(request: Request, snapshot: Snapshot, sku: Sku, earliest: datetime) -> Proposal | None:
    """The best proposal of one SKU: at the asked start, or for a flexible request wherever it costs least."""
    found = [propose(request, snapshot, sku, earliest)] if _is_free(request, snapshot, sku, earliest) else []
    if request.finish_by is not None:
        latest = min(require_utc(request.finish_by), slot_start(snapshot.curves.book.slots.stop))
        found += list(_least_cost(request, snapshot, sku, (earliest, latest)))
    if not found:
        return None
    return min(
        found, key=lambda each: (each.total + _waiting_cost(request, snapshot, each, earliest), each.window.start)
    )


def _is_free(request: Request, snapshot: Snapshot, sku: Sku, start: datetime) -> bool:
    window = Window(start, start + timedelta(seconds=request.seconds))
    snapshot.curves.check_window(window)
    taken = snapshot.pool.footprint(sku)
    return snapshot.board.free_units(sku.model, taken, window.slots) >= request.need.count


def _least_cost(
    request: Request, snapshot: Snapshot, sku: Sku, between: tuple[datetime, datetime]
) -> Iterator[Proposal]:
    """The cheapest free start on a slot boundary such that the window lies between two instants; none or one."""
    earliest, latest = between
    within = range(slot_ceiling(earliest), slot_of(latest - timedelta(seconds=request.seconds)) + 1)
    within = range(max(within.start, snapshot.curves.book.slots.start), within.stop)
    if not within:
        return
    free = _free_starts(request, snapshot, sku, within)
    if not free.any():
        return
    costs = _costs(request, snapshot, sku, within) + _waiting_costs(request, snapshot, sku, within, earliest)
    best = int(np.argmin(np.where(free, costs, np.iinfo(np.int64).max)))
    yield propose(request, snapshot, sku, slot_start(within[best]), ProposalKind.AS_ASKED)


def _first_start(request: Request, snapshot: Snapshot, sku: Sku, earliest: datetime) -> Iterator[Proposal]:
    length = -(-request.seconds // SLOT_SECONDS)
    within = range(slot_ceiling(earliest), snapshot.curves.book.slots.stop - length + 1)
    if not within:
        return
    free = _free_starts(request, snapshot, sku, within)
    if free.any():
        yield propose(request, snapshot, sku, slot_start(within[int(np.argmax(free))]), ProposalKind.OTHER_START)


def _free_starts(request: Request, snapshot: Snapshot, sku: Sku, within: range) -> np.ndarray:
    length = -(-request.seconds // SLOT_SECONDS)
    taken = snapshot.pool.footprint(sku)
    return snapshot.board.starts(sku.model, taken, count=request.need.count, length=length, within=within)


def _costs(request: Request, snapshot: Snapshot, sku: Sku, within: range) -> np.ndarray:
    """int64[len(within)]: the cost of one slice for each start, in micros a slice-hour times seconds."""
    curves = snapshot.curves
    rates = curves.rates(sku.model, snapshot.pool.footprint(sku).share, request.tier)
    sums = np.concatenate(([0], np.cumsum(rates)))
    whole, rest = divmod(request.seconds, SLOT_SECONDS)
    first = np.arange(within.start, within.stop) - curves.book.first_slot
    costs = (sums[first + whole] - sums[first]) * SLOT_SECONDS
    return costs + rest * rates[first + whole] if rest else costs


def _waiting_costs(request: Request, snapshot: Snapshot, sku: Sku, within: range, earliest: datetime) -> np.ndarray:
    """int64[len(within)]: value of the wait until each start, in the unit of `_costs`."""
    delays = np.arange(within.start, within.stop) * SLOT_SECONDS - int(earliest.timestamp())
    base = _slice_base(snapshot, sku) * WAITING_PPM[request.urgency] // PPM
    return delays * base // 3600 * request.seconds


def _waiting_cost(request: Request, snapshot: Snapshot, proposal: Proposal, earliest: datetime) -> int:
    """Value of the wait until a proposal's start, in micros for the whole request."""
    delay = (proposal.window.start - earliest) // timedelta(seconds=1)
    base = _slice_base(snapshot, proposal.sku) * WAITING_PPM[request.urgency] // PPM
    return delay * base // 3600 * request.seconds * request.need.count // 3600


def _isolation(snapshot: Snapshot, sku: Sku) -> int:
    """At the same price a slice with stronger walls is the better one."""
    return ISOLATION_RANK[snapshot.pool.footprint(sku).isolation]


def _slice_base(snapshot: Snapshot, sku: Sku) -> int:
    share = snapshot.pool.footprint(sku).share
    return -(-snapshot.curves.book.tariff.base_rate(sku.model) * share.numerator // share.denominator)


def _cheaper(request: Request, snapshot: Snapshot, chosen: Proposal, earliest: datetime) -> Iterator[Proposal]:
    """The cheapest start of the coming day, and economy with the same day to run in, where they cost less.
    A flexible request is shown the price of starting at once, and economy with the deadline that it has."""
    if request.finish_by is not None:
        if chosen.window.start > earliest and _is_free(request, snapshot, chosen.sku, earliest):
            yield propose(request, snapshot, chosen.sku, earliest, ProposalKind.OTHER_START)
        if request.tier is not Tier.ECONOMY:
            asked = replace(request, tier=Tier.ECONOMY, urgency=Urgency.WHENEVER)
            yield from _cheaper_than(chosen, asked, snapshot, (earliest, request.finish_by), ProposalKind.OTHER_TIER)
        return
    book_end = slot_start(snapshot.curves.book.slots.stop)
    day = timedelta(seconds=SLOTS_A_DAY * SLOT_SECONDS)
    latest = min(earliest + timedelta(seconds=request.seconds) + day, book_end)
    for tier, kind in ((request.tier, ProposalKind.OTHER_START), (Tier.ECONOMY, ProposalKind.OTHER_TIER)):
        if tier is request.tier and kind is ProposalKind.OTHER_TIER:
            continue
        asked = replace(request, tier=tier, finish_by=latest, urgency=Urgency.WHENEVER)
        yield from _cheaper_than(chosen, asked, snapshot, (earliest, latest), kind)


def _cheaper_than(
    chosen: Proposal, asked: Request, snapshot: Snapshot, within: tuple[datetime, datetime], kind: ProposalKind
) -> Iterator[Proposal]:
    for proposal in _least_cost(asked, snapshot, chosen.sku, within):
        if 0 < proposal.total < chosen.total:
            yield replace(proposal, kind=kind)


def _other_skus(request: Request, snapshot: Snapshot, asked: Sku, earliest: datetime) -> Iterator[Proposal]:
    """Other SKUs with at least the asked memory that are free at the asked start."""
    pool, book = snapshot.pool, snapshot.curves.book
    memory = pool.footprint(asked).memory_gb
    for sku in pool.skus():
        sold = sku != asked and sku.model in book.tariff.base and sku.model in book.loads
        if sold and pool.footprint(sku).memory_gb >= memory and _is_free(request, snapshot, sku, earliest):
            yield propose(request, snapshot, sku, earliest, ProposalKind.OTHER_SKU)


def _nothing_free(request: Request) -> str:
    asked = f"{request.need} for {format_length(request.seconds)}"
    if request.finish_by is not None:
        return f"nothing free for {asked} that ends by {_utc(request.finish_by)}"
    return f"nothing free for {asked} at that time"


def _utc(instant: datetime) -> str:
    return f"{require_utc(instant):%Y-%m-%d %H:%M} UTC"
