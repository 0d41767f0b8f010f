"""A curve as a chart of block characters, with the hours of a person's zone under it and the extremes in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from broker.client.phrasing import amount, percent, window_words
from broker.wire.market import CurveView
from market.phrases import format_instant

HEIGHT = 8
_BLOCKS = " ▁▂▃▄▅▆▇█"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TICK_HOURS = (1, 2, 3, 6, 12, 24, 48, 168)


@dataclass(frozen=True, slots=True)
class Columns:
    """A curve cut to the columns of a chart: their mean rates, the slots in one, how wide one is drawn."""

    rates: list[int]
    slots: int
    drawn: int


def columns_of(rates: list[int], width: int) -> Columns:
    """As many columns as fit: a slot is drawn several wide, or several slots share one."""
    slots = -(-len(rates) // width)
    groups = [rates[at : at + slots] for at in range(0, len(rates), slots)]
    return Columns([sum(group) // len(group) for group in groups], slots, max(1, width // len(groups)))


def curve_lines(view: CurveView, zone: ZoneInfo, width: int) -> list[str]:
    """The chart within `width`, then the rate now and the lowest and highest in words. The rate axis starts at 0."""
    title = f"{view.sku}, tier {view.tier}: {view.currency} an hour, price book {view.price_book}, {zone.key}"
    if not view.rates:
        return [title, "No rates in this stretch of time."]
    top = amount(max(view.rates), view.currency).removesuffix(f" {view.currency}")
    columns = columns_of(view.rates, max(10, width - len(top) - 2))
    labels = [top, *[""] * (HEIGHT - 2), "0"]
    bars = [f"{label:>{len(top)}} ┤{row}".rstrip() for label, row in zip(labels, _bars(columns), strict=True)]
    margin = " " * (len(top) + 2)
    under = [f"{margin}{line}".rstrip() for line in (*_hours(view, columns, zone), _mark(view, columns))]
    return [title, "", *bars, *under, "", *_words(view, zone)]


def _bars(columns: Columns) -> list[str]:
    """The rows of the chart from the top down, each level an eighth of a row."""
    highest = max(*columns.rates, 1)
    levels = [rate * HEIGHT * 8 // highest for rate in columns.rates]
    rows = [[_BLOCKS[min(8, max(0, level - 8 * row))] * columns.drawn for level in levels] for row in range(HEIGHT)]
    return ["".join(row) for row in reversed(rows)]


def _hours(view: CurveView, columns: Columns, zone: ZoneInfo) -> tuple[str, str]:
    """Ticks and the local hours (or days) that they stand for, each label begun at its tick."""
    step = timedelta(seconds=view.slot_seconds * columns.slots)
    hours = next((h for h in _TICK_HOURS if timedelta(hours=h) * columns.drawn >= step * 8), _TICK_HOURS[-1])
    ticks, labels = "", ""
    for place in range(len(columns.rates)):
        first = _on_the_hour(view.start + step * place, step, hours, zone)
        ticks += ("┴" if first else "─") + "─" * (columns.drawn - 1)
        if first and len(labels) <= place * columns.drawn:
            label = f"{first:%H:%M}" if hours < 24 else f"{_DAYS[first.weekday()]} {first.day}"
            labels = labels.ljust(place * columns.drawn) + label + " "
    return ticks, labels if len(labels) <= len(ticks) + 1 else labels.rpartition("  ")[0]


def _on_the_hour(start: datetime, step: timedelta, hours: int, zone: ZoneInfo) -> datetime | None:
    """The local time within a column at which a tick stands, if there is one."""
    quarter = timedelta(minutes=15)
    for at in range(max(1, step // quarter)):
        local = (start + quarter * at).astimezone(zone)
        if local.minute < 15 and local.hour % min(hours, 24) == 0 and local.toordinal() % max(1, hours // 24) == 0:
            return local
    return None


def _mark(view: CurveView, columns: Columns) -> str:
    at = view.rates.index(min(view.rates)) // columns.slots * columns.drawn
    width = len(columns.rates) * columns.drawn
    return f"{' ' * at}^ lowest" if at + len("^ lowest") <= width else "lowest ^".rjust(at + 1)


def _words(view: CurveView, zone: ZoneInfo) -> list[str]:
    now = f"Now      {_at(view, 0)}"
    low, high = view.rates.index(min(view.rates)), view.rates.index(max(view.rates))
    length = next((n for n, rate in enumerate(view.rates[low:]) if rate != view.rates[low]), len(view.rates) - low)
    start = view.start + timedelta(seconds=view.slot_seconds) * low
    end = start + timedelta(seconds=view.slot_seconds) * length
    when = window_words(start, end, zone, view.start)
    highest = view.start + timedelta(seconds=view.slot_seconds) * high
    return [
        now,
        f"Lowest   {_at(view, low)}: {when}",
        f"Highest  {_at(view, high)}: {format_instant(highest, zone, view.start)}",
    ]


def _at(view: CurveView, slot: int) -> str:
    load = f" ({percent(view.loads[slot])} taken)" if slot < len(view.loads) else ""
    return f"{amount(view.rates[slot], view.currency)} an hour{load}"
