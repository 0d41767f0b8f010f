"""What a person reads before and after they buy: the plan behind a quote, a booking, what backing out costs.

Pure view models, shared by the terminal and the lab: messages in, labelled facts and lines of text out. What a person
sees is GPU, how long, when, total; the rest stands under "Why this price". The broker's inner words never appear.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from broker.client.phrasing import ISOLATION, SIMULATED, STATES, amount, both_zones, rate_words, window_words
from broker.client.tables import Fact, fact_lines
from broker.wire.quotes import BackOutView, BookingView, ProposalView, QuoteView
from market.backing_out import FREE_UNTIL_BEFORE_START, free_until
from market.catalog import Tier
from market.instants import require_utc, slot_ceiling, slot_start
from market.phrases import format_length, format_until
from market.states import TERMINAL


def quote_lines(quote: QuoteView, zone: ZoneInfo, now: datetime, width: int) -> list[str]:
    """The plan, until when its price stands, and the command that accepts it."""
    if now >= quote.expires_at:
        return [*plan_lines(quote, zone, now, width), "", f"Quote {quote.id} has expired."]
    left = format_length(max(60, (quote.expires_at - now) // timedelta(minutes=1) * 60))
    stands = f"Quote {quote.id} stands {format_until(quote.expires_at, zone, now)} ({left})."
    next_step = over_budget_words(quote) or f"Book it: gputide book {quote.id}"
    return [*plan_lines(quote, zone, now, width), "", stands, next_step]


def over_budget_words(quote: QuoteView) -> str | None:
    """Why it cannot be booked as it stands, when the budget does not cover it."""
    if quote.budget_left_after >= 0:
        return None
    lacking = amount(-quote.budget_left_after, quote.currency)
    return f"It cannot be booked as it stands: the budget of cost center {quote.cost_center} lacks {lacking}."


def plan_lines(quote: QuoteView, zone: ZoneInfo, now: datetime, width: int) -> list[str]:
    """What, when, what it costs and why, and what else could be had."""
    lines = fact_lines(quote_facts(quote, zone, now), width)
    if quote.alternatives:
        lines += ["", "What else could be had:"]
        lines += alternative_lines(quote.alternatives, zone, now, currency=quote.currency, asked=quote.proposal)
    return lines


def quote_facts(quote: QuoteView, zone: ZoneInfo, now: datetime) -> list[Fact]:
    """The plan behind a quote as labelled facts, the total and what is left of the budget among them."""
    plan = quote.proposal
    when = both_zones(plan.start, plan.end, zone, now)
    center = f"cost center {quote.cost_center}"
    return [
        ("GPU", f"{plan.count} x {plan.sku}, {quote.memory_gb} GB{' each' if plan.count > 1 else ''}"),
        ("Isolation", ISOLATION[quote.isolation]),
        ("How long", format_length(plan.seconds)),
        ("When", f"as soon as it is booked: {when}" if quote.starts_when_booked else when),
        ("Rate", f"{rate_words(plan.rate, quote.currency, plan.count)}, tier {plan.tier}"),
        ("Total", f"{amount(plan.total, quote.currency)} on {center}"),
        ("Left after it", f"{amount(quote.budget_left_after, quote.currency)} of the budget of {center}"),
        ("Stop early", stop_early_words(plan.tier, plan.start, quote.starts_when_booked, zone, now)),
        ("Why this price", quote.explanation.text),
        *([("Note", SIMULATED)] if quote.simulated else []),
    ]


def stop_early_words(tier: Tier, start: datetime, starts_when_booked: bool, zone: ZoneInfo, now: datetime) -> str:
    """What happens to the money when a person stops before the end."""
    if starts_when_booked:
        return "free to cancel until it runs; from then on you pay for what you used, by the second, 5 min at least"
    ahead = FREE_UNTIL_BEFORE_START[tier]
    how_far = f"{format_length(int(ahead.total_seconds()))} before it starts" if ahead else "when it starts"
    buys_back = "the pool buys the rest back at the lower of your rate and the rate then, less a fee"
    last = free_until(tier, start)
    if last <= now:
        return f"cancelling is no longer free (that ends {how_far}); {buys_back}"
    return f"free to cancel {format_until(last, zone, now)} ({how_far}); after that {buys_back}"


def alternative_lines(
    alternatives: Sequence[ProposalView],
    zone: ZoneInfo,
    now: datetime,
    *,
    currency: str | None,
    asked: ProposalView | None = None,
) -> list[str]:
    """Numbered, two lines each: what it is and costs, and the command that asks for it."""
    lines: list[str] = []
    for number, each in enumerate(alternatives, start=1):
        cost = f"{amount(each.total, currency)}{_saving(each, asked, currency)}"
        lines += [f"{number:>3}  {_difference(each, asked, zone, now)}: {cost}", f"     {quote_command(each, now)}"]
    return lines


def quote_command(proposal: ProposalView, now: datetime) -> str:
    """The command line that asks for a proposal again. One that starts at once leaves a moment to type it."""
    need = shlex.quote(f"{proposal.count} x {proposal.sku}")
    asked = f"gputide quote --need {need} --for {format_length(proposal.seconds).replace(' ', '')}"
    at_once = proposal.start <= now
    if proposal.tier is Tier.ECONOMY:
        by = slot_start(slot_ceiling(proposal.end) + 1) if at_once else proposal.end
        when = " --urgency now" if at_once else f" --at {_typed(proposal.start)}"
        return f"{asked} --by {_typed(by)} --tier economy{when}"
    when = "" if at_once else f" --at {_typed(proposal.start)}"
    return f"{asked}{when}{'' if proposal.tier is Tier.STANDARD else f' --tier {proposal.tier}'}"


def booking_lines(booking: BookingView, zone: ZoneInfo, now: datetime, width: int) -> list[str]:
    """One booking in full."""
    return fact_lines(booking_facts(booking, zone, now), width)


def booking_facts(booking: BookingView, zone: ZoneInfo, now: datetime) -> list[Fact]:
    """One booking as labelled facts: what was promised, and once it is over what was paid."""
    over = booking.state in TERMINAL
    fee = f", a fee of {amount(booking.fee, booking.currency)} in it" if booking.fee else ""
    paid = f"{amount(booking.charged, booking.currency)}{fee}"
    places = _places(booking)
    free = booking.free_cancel_until
    return [
        ("Booking", f"{booking.id} of {booking.person}, {STATES[booking.state]}"),
        ("GPU", f"{booking.count} x {booking.sku}, {ISOLATION[booking.isolation]}"),
        *([("Where", places)] if places else []),
        ("How long", format_length(booking.seconds)),
        ("When", both_zones(booking.start, booking.end, zone, now)),
        ("Rate", f"{rate_words(booking.rate, booking.currency, booking.count)}, tier {booking.tier}"),
        ("Total", f"{amount(booking.total, booking.currency)} on cost center {booking.cost_center}"),
        *([("Paid", paid)] if over or booking.charged else []),
        *([("Free to cancel", format_until(free, zone, now))] if not over and now < free else []),
        *([("Note", SIMULATED)] if booking.simulated else []),
    ]


def back_out_lines(back_out: BackOutView, booking: BookingView, zone: ZoneInfo, now: datetime, width: int) -> list[str]:
    """What backing out of a booking costs now, before a person agrees to it."""
    fee = f", a fee of {amount(back_out.fee, back_out.currency)} in it" if back_out.fee else ""
    cost = "nothing: it is free" if back_out.free else f"{amount(back_out.charged, back_out.currency)}{fee}"
    facts = [
        ("Booking", f"{booking.id} of {booking.person}: {booking.count} x {booking.sku}"),
        ("When", f"{window_words(booking.start, booking.end, zone, now)}, {zone.key}"),
        ("Backing out", f"costs {cost}"),
        ("Comes back", f"{amount(back_out.released, back_out.currency)} to cost center {booking.cost_center}"),
    ]
    return fact_lines(facts, width)


def _difference(each: ProposalView, asked: ProposalView | None, zone: ZoneInfo, now: datetime) -> str:
    """What sets a proposal apart from the one that was asked for; all of it where nothing was."""
    gpu, when = f"{each.count} x {each.sku}", window_words(each.start, each.end, zone, now)
    if asked is None:
        return f"{gpu}, {each.tier}, {when}"
    parts = [gpu] if (each.sku, each.count) != (asked.sku, asked.count) else []
    parts += [each.tier] if each.tier is not asked.tier else []
    parts += [when] if each.start != asked.start or not parts else []
    return ", ".join(parts)


def _saving(each: ProposalView, asked: ProposalView | None, currency: str | None) -> str:
    if asked is None or each.total == asked.total:
        return ""
    less = asked.total - each.total
    return f", {amount(abs(less), currency)} {'less' if less > 0 else 'more'}"


def _places(booking: BookingView) -> str:
    devices: dict[str, set[int]] = {}
    for place in booking.places:
        devices.setdefault(place.node, set()).add(place.device)
    return "; ".join(f"{node} GPU {', '.join(map(str, sorted(found)))}" for node, found in devices.items())


def _typed(instant: datetime) -> str:
    return f"{require_utc(instant):%Y-%m-%dT%H:%M:%SZ}".replace(":00Z", "Z")
