"""From a need to a booking and out of it again. A plan with its price stands before every yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from market.catalog import Tier
from market.states import BookingState
from tui.cli import output
from tui.cli.browse import JsonOption, TierOption
from tui.cli.exits import ExitCode

if TYPE_CHECKING:
    from broker.wire.quotes import BackOutView, BookingView, QuoteRequest, QuoteView
    from tui.cli.session import Session

app = typer.Typer()

NeedOption = Annotated[str | None, typer.Option("--need", help='What you need, as "4 x A100 40GB".')]
LengthOption = Annotated[str | None, typer.Option("--for", help="How long, as 4h, 90m or 2 days.")]
AtOption = Annotated[
    str | None,
    typer.Option("--at", help='When it starts, as "tomorrow 9:00"; now if not said. With --by: not before then.'),
]
ByOption = Annotated[str | None, typer.Option("--by", help="Finish by then, starting whenever it is cheapest.")]
UrgencyOption = Annotated[
    str | None, typer.Option(help="With --by, how soon you would like it: now, today or whenever (if not said).")
]
CostCenterOption = Annotated[str | None, typer.Option("--cost-center", help="Who pays; yours if not said.")]
STATES_HELP = "Only those that are booked (confirmed), active, ended, cancelled, expired, preempted or failed."
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")]


def _state(text: str) -> BookingState:
    """A state by its name, or by the word that a list shows for it."""
    from broker.client.phrasing import STATES

    words = {**{words: state for state, words in STATES.items()}, **{state.value: state for state in BookingState}}
    if (found := words.get(text.strip().lower())) is None:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(sorted(words))}")
    return found


@app.command()
def quote(
    need: NeedOption = None,
    length: LengthOption = None,
    at: AtOption = None,
    by: ByOption = None,
    tier: TierOption = None,
    urgency: UrgencyOption = None,
    cost_center: CostCenterOption = None,
    json: JsonOption = False,
) -> None:
    """A plan with a price that stands for a quarter of an hour. Buys nothing."""
    from broker.client.views import quote_lines
    from tui.cli.session import now, session

    with session() as here:
        request = _request(here, need, length, at, by, tier=tier, urgency=urgency, cost_center=cost_center)
        plan = here.client.quote(request)
        if json:
            output.emit_json(plan)
            return
        output.emit(quote_lines(plan, here.zone, now(), output.width()))


@app.command()
def book(
    quote_id: Annotated[str | None, typer.Argument(help="A quote; else say what you need.")] = None,
    need: NeedOption = None,
    length: LengthOption = None,
    at: AtOption = None,
    by: ByOption = None,
    tier: TierOption = None,
    urgency: UrgencyOption = None,
    cost_center: CostCenterOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Book a quote, or what you need: shows the plan, asks, books."""
    from tui.cli.session import session

    with session() as here:
        if quote_id is None:
            request = _request(here, need, length, at, by, tier=tier, urgency=urgency, cost_center=cost_center)
            plan = here.client.quote(request)
        elif any(given is not None for given in (need, length, at, by, tier, urgency, cost_center)):
            raise typer.BadParameter("give a quote or what you need, not both", param_hint="QUOTE_ID")
        else:
            plan = here.client.quote_by_id(quote_id)
        _show_booking(here, _book(here, plan, yes=yes), json=json)


@app.command()
def bookings(
    booking_id: Annotated[str | None, typer.Argument(help="One of them in full, by the start of its id.")] = None,
    state: Annotated[BookingState | None, typer.Option(metavar="STATE", help=STATES_HELP, parser=_state)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every one, however many there are.")] = False,
    everybody: Annotated[bool, typer.Option("--everybody", help="Others' too, if your role sees them.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many to show.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last page ended.")] = None,
    json: JsonOption = False,
) -> None:
    """Your bookings, the newest first; or one of them in full."""
    from broker.client.listings import booking_table
    from broker.wire.lists import BookingPage
    from tui.cli.session import now, session

    if every and cursor:
        raise typer.BadParameter("--all shows every page, so there is none to go on from", param_hint="--cursor")
    if booking_id is not None and (state or every or everybody or cursor):
        raise typer.BadParameter("one booking, or a list of them: not both", param_hint="BOOKING_ID")
    with session() as here:
        if booking_id is not None:
            _show_booking(here, here.booking(booking_id), json=json)
            return
        if every:
            page = BookingPage(
                items=list(here.client.every_booking(state=state, everybody=everybody)), next_cursor=None
            )
        else:
            page = here.client.bookings(state=state, cursor=cursor, limit=limit, everybody=everybody)
        if json:
            output.emit_json(page)
            return
        if page.items:
            output.emit(
                booking_table(page.items, here.zone, now(), output.table_width(), everybody=everybody), header=True
            )
            output.say(f"Times in {here.zone.key}.")
    shown = f"{len(page.items)} shown"
    if page.next_cursor:
        filtered = f"{' --everybody' * everybody}{f' --state {state}' if state else ''}"
        output.say(f"{shown}, there are more: --all, or gputide bookings{filtered} --cursor {page.next_cursor}")
    elif page.items or state:
        output.say(f"{shown}, no more." if page.items else f"No booking of yours is {state}.")
    else:
        output.say("No bookings. See what could be had: gputide offers")


@app.command()
def cancel(
    booking_id: Annotated[str, typer.Argument(help="The booking, or the start of its id.")],
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Back out of a booking: shows what that costs now, asks, does it."""
    from tui.cli.session import session

    with session() as here:
        booking = here.booking(booking_id)
        _show_booking(here, _back_out(here, booking, yes=yes), json=json)


def _request(
    here: Session,
    need: str | None,
    length: str | None,
    at: str | None,
    by: str | None,
    *,
    tier: Tier | None,
    urgency: str | None,
    cost_center: str | None,
) -> QuoteRequest:
    from broker.wire.quotes import QuoteRequest
    from market.phrases import parse_length, parse_when
    from tui.cli.session import now

    if need is None or length is None:
        missing = "--need" if need is None else "--for"
        raise typer.BadParameter('say what and how long: --need "4 x A100 40GB" --for 4h', param_hint=missing)
    if urgency is not None and by is None:
        raise typer.BadParameter("it chooses among the starts before a deadline: say --by", param_hint="--urgency")
    moment = now()
    return QuoteRequest(
        need=need,
        seconds=parse_length(length),
        tier=tier or Tier.STANDARD,
        start=None if at in (None, "now") else parse_when(at, now=moment, zone=here.zone),
        finish_by=None if by is None else parse_when(by, now=moment, zone=here.zone, later=True),
        urgency=urgency or "whenever",
        cost_center=cost_center or here.credentials.cost_center,
        zone=here.zone.key,
    )


def _book(here: Session, plan: QuoteView, *, yes: bool) -> BookingView:
    """Books a plan once it is agreed to. A quote that expired meanwhile is shown afresh and asked about afresh."""
    from broker.client.errors import BrokerRefused
    from broker.client.views import over_budget_words, plan_lines
    from broker.wire.quotes import QuoteView
    from tui.cli.session import now

    agreed: int | None = None
    while True:
        output.say(*plan_lines(plan, here.zone, now(), output.width()))
        if why_not := over_budget_words(plan):
            output.say("", why_not)
            raise typer.Exit(ExitCode.REFUSED)
        if yes and agreed is not None and plan.proposal.total > agreed:
            output.say("", f"That is more than before; nothing was booked. To accept it: gputide book {plan.id}")
            raise typer.Exit(ExitCode.DEARER)
        if not yes and not output.ask("Book it?"):
            output.say("Nothing was booked.")
            raise typer.Exit(ExitCode.DECLINED)
        agreed = plan.proposal.total
        try:
            return here.client.book(plan.id)
        except BrokerRefused as refused:
            if refused.problem.code != "quote_expired" or refused.problem.quote is None:
                raise
            plan = QuoteView.model_validate(refused.problem.quote)
            output.say("", refused.detail, "")


def _back_out(here: Session, booking: BookingView, *, yes: bool) -> BookingView:
    """Backs out once its cost is agreed to. What stops being free meanwhile is shown and asked about afresh."""
    from broker.client.errors import BrokerRefused
    from broker.wire.quotes import BackOutView

    cost = here.client.back_out(booking.id)
    _agree(here, booking, cost, yes=yes)
    if not cost.free:
        return here.client.give_back(booking.id)
    try:
        return here.client.cancel(booking.id)
    except BrokerRefused as refused:
        if refused.problem.code != "back_out_not_free" or refused.problem.back_out is None:
            raise
        output.say("", refused.detail, "")
        if yes:
            output.say("It was free a moment ago; nothing was cancelled. Run it again to accept what it costs now.")
            raise typer.Exit(ExitCode.DEARER) from None
        _agree(here, booking, BackOutView.model_validate(refused.problem.back_out), yes=False)
        return here.client.give_back(booking.id)


def _agree(here: Session, booking: BookingView, cost: BackOutView, *, yes: bool) -> None:
    from broker.client.views import back_out_lines
    from tui.cli.session import now

    output.say(*back_out_lines(cost, booking, here.zone, now(), output.width()))
    if not yes and not output.ask("Cancel it?" if cost.free else "Give it back at that cost?"):
        output.say("Nothing was cancelled.")
        raise typer.Exit(ExitCode.DECLINED)


def _show_booking(here: Session, booking: BookingView, *, json: bool) -> None:
    from broker.client.views import booking_lines
    from tui.cli.session import now

    if json:
        output.emit_json(booking)
    else:
        output.emit(booking_lines(booking, here.zone, now(), output.width()))
