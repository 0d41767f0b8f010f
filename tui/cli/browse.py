"""Looking around: what is for sale, what it costs over the hours, what the pool is made of. Nothing here buys."""

from __future__ import annotations

from typing import Annotated

import typer

from market.catalog import Tier
from tui.cli import output

app = typer.Typer()

JsonOption = Annotated[bool, typer.Option("--json", help="Print the API's answer as JSON.")]
TierOption = Annotated[
    Tier | None, typer.Option("--tier", metavar="standard|economy", help="The contract; standard if none.")
]


@app.command()
def offers(
    need: Annotated[str | None, typer.Argument(help='What you need, as in "4 x A100, 40 GB each".')] = None,
    tier: TierOption = None,
    json: JsonOption = False,
) -> None:
    """What could be had now, with its rate and the cheapest hour ahead."""
    from broker.client.listings import offer_lines
    from tui.cli.session import session

    with session() as at:
        view = at.client.offers(need=need, tier=tier)
        if json:
            output.emit_json(view)
            return
        _warn_if_simulated(view.simulated)
        output.emit(offer_lines(view, at.zone, output.table_width()), header=True)
        output.say(
            f"Tier {view.tier}, an hour of each, times in {at.zone.key}, price book {view.price_book}. "
            f"Advice, no promise: gputide quote keeps a price for you."
        )


@app.command()
def curve(
    sku: Annotated[str, typer.Argument(help="What to look at, as a100-40g/3g.20gb; gputide offers lists them.")],
    tier: TierOption = None,
    hours: Annotated[int, typer.Option(min=1, max=336, help="How far to look.")] = 24,
    json: JsonOption = False,
) -> None:
    """The rate of one SKU over the hours ahead, as a chart."""
    from broker.client.chart import curve_lines
    from market.catalog import Sku
    from tui.cli.session import session

    parsed = Sku.parse(sku)
    with session() as at:
        view = at.client.curve(parsed, tier=tier, hours=hours)
        if json:
            output.emit_json(view)
            return
        _warn_if_simulated(view.simulated)
        output.emit(curve_lines(view, at.zone, output.width()))


@app.command()
def pool(
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many nodes to show.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where the last page ended.")] = None,
    json: JsonOption = False,
) -> None:
    """The nodes and devices of the pool, and how much of them is promised now."""
    from broker.client.listings import pool_lines
    from tui.cli.session import session

    with session() as at:
        view = at.client.pool(cursor=cursor, limit=limit)
    if json:
        output.emit_json(view)
        return
    _warn_if_simulated(view.simulated)
    output.emit(pool_lines(view, output.table_width()), header=True)
    shown = f"{len(view.nodes):,} of {view.node_count:,} nodes shown"
    output.say(f"Pool {view.name}: {shown}, {view.device_count:,} devices.")
    if view.next_cursor:
        output.say(f"Go on: gputide pool --limit {limit} --cursor {view.next_cursor}")


@app.command()
def budget(json: JsonOption = False) -> None:
    """What is left of the budgets that you may book on, this month."""
    from broker.client.listings import budget_table
    from tui.cli.session import session

    with session() as at:
        page = at.client.cost_centers()
        if json:
            output.emit_json(page)
            return
        if page.items:
            output.emit(budget_table(page.items, output.table_width()), header=True)
        else:
            output.say("You may book on no cost center; ask an operator for one.")


def _warn_if_simulated(simulated: bool) -> None:
    if simulated:
        from broker.client.phrasing import SIMULATED

        output.say(SIMULATED)
