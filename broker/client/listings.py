"""Lists as tables: what is for sale, what I booked, what the pool is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from broker.client.phrasing import STATES, amount, percent
from broker.client.tables import table_lines
from broker.wire.market import NodeView, OffersView, OfferView, PoolView
from broker.wire.people import CostCenterView
from broker.wire.quotes import BookingView
from market.phrases import format_instant, format_length
from market.states import TERMINAL

SHORT_ID = 10


def offer_lines(view: OffersView, zone: ZoneInfo, width: int | None = None) -> list[str]:
    """A line an offer: what, how much is free, the rate now and the lowest within the horizon."""
    headers = ("SKU", "GB", "Isolation", "Free now", f"{view.currency}/h now", "Lowest", "When")
    rows = [_offer_row(offer, view, zone) for offer in view.offers]
    lines = table_lines(headers, rows, right={1, 3, 4, 5}, spare=(2, 1, 6), width=width)
    if any(offer.inferred for offer in view.offers):
        lines.append("* where its parts may lie is inferred from its profile, not read from a device")
    return lines


def booking_table(
    bookings: Sequence[BookingView], zone: ZoneInfo, now: datetime, width: int | None = None, *, everybody: bool = False
) -> list[str]:
    """A line a booking, in the order given: what it will cost, and once it is over what it did. With `everybody`, whose
    it is. Where `width` is too narrow the ids are cut first, since the start of one is enough to name it."""
    whole = _booking_lines(bookings, zone, now, None, everybody, id_length=None)
    if width is None or max(map(len, whole)) <= width:
        return whole
    return _booking_lines(bookings, zone, now, width, everybody, id_length=SHORT_ID)


def _booking_lines(
    bookings: Sequence[BookingView], zone: ZoneInfo, now: datetime, width: int | None, everybody: bool, *,
    id_length: int | None,
) -> list[str]:  # fmt: skip
    rows = [
        (
            each.id[:id_length],
            each.person,
            STATES[each.state],
            f"{each.count} x {each.sku}",
            format_length(each.seconds),
            format_instant(each.start, zone, now),
            amount(each.charged if each.state in TERMINAL else each.total, each.currency),
        )
        for each in bookings
    ]
    headers = ("Booking", "Person", "State", "GPU", "How long", "Start", "Costs")
    if not everybody:
        headers, rows = (headers[0], *headers[2:]), [(row[0], *row[2:]) for row in rows]
    return table_lines(headers, rows, right={len(headers) - 1}, spare=(len(headers) - 3,), width=width)


def budget_table(cost_centers: Sequence[CostCenterView], width: int | None = None) -> list[str]:
    """A line a cost center: its budget of a month, what is spent and set aside of it, and what is left."""
    headers = ("Cost center", "Owner", "Month", "Budget", "Spent", "Set aside", "Left")
    rows = [_budget_row(each) for each in cost_centers]
    return table_lines(headers, rows, right={3, 4, 5, 6}, spare=(1, 2, 5, 4), width=width)


def _budget_row(each: CostCenterView) -> tuple[str, ...]:
    middle = each.period_start + (each.period_end - each.period_start) / 2  # in that month whatever the zone
    parts = (amount(part, each.currency) for part in (each.limit, each.spent, each.held, each.left))
    return (each.name, each.owner, f"{middle:%Y-%m}", *parts)


def pool_lines(view: PoolView, width: int | None = None) -> list[str]:
    """A line a node: its devices by model, how much of them is promised now, and what is out of order."""
    rows = [(node.name, node.site, _models(node), _promised(node), _out_of_order(node)) for node in view.nodes]
    headers = ("Node", "Site", "Devices", "Promised now", "Out of order")
    return table_lines(headers, rows, right={3, 4}, spare=(1, 4), width=width)


def _offer_row(offer: OfferView, view: OffersView, zone: ZoneInfo) -> tuple[str, ...]:
    return (
        f"{offer.sku}{' *' * offer.inferred}",
        str(offer.memory_gb),
        offer.isolation,
        f"{offer.free_now} of {offer.capacity}",
        _number(offer.rate_now, view.currency),
        _number(offer.rate_lowest, view.currency),
        format_instant(offer.lowest_at, zone, view.at),
    )


def _number(micros: int, currency: str) -> str:
    """An amount whose currency stands in the header."""
    return amount(micros, currency).removesuffix(f" {currency}")


def _models(node: NodeView) -> str:
    counted = Counter((device.model, device.kind) for device in node.devices)
    return ", ".join(f"{count} x {model} ({kind})" for (model, kind), count in sorted(counted.items()))


def _promised(node: NodeView) -> str:
    return percent(sum(device.promised_now for device in node.devices) // max(1, len(node.devices)))


def _out_of_order(node: NodeView) -> str:
    return str(sum(not device.healthy for device in node.devices) or "-")
