"""Why a price is what it is, in numbers and in one line that a person can check with a pocket calculator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from market.catalog import PPM
from market.instants import zone_named
from market.money import MICROS, divide_half_even
from market.phrases import format_instant, format_length
from market.pricing import PriceCurves, clamped_ppm, scarcity_ppm
from market.proposals import Proposal
from market.quoting import Plan

FORECAST_NAME = "hour-of-week mean of the last four weeks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The parts of a proposal's rate. `base` is micros a slice-hour; factors and loads are ppm, means over the window.

    `factor` is what band and scarcity come to after the limits; `scarcity` is its part that is not the band, so that
    base x band x scarcity x tier is the rate even where the load changes within the window.
    """

    base: int
    band: int
    scarcity: int
    factor: int
    tier_factor: int
    load: int
    promised: int
    still_to_come: int
    limited: bool
    price_book: int
    forecast: str = FORECAST_NAME


def explain(plan: Plan, curves: PriceCurves) -> Explanation:
    """The parts of a plan's rate under the price book that it was made from."""
    proposal, share = plan.proposal, plan.taken.share
    tariff, model, window = curves.book.tariff, plan.proposal.sku.model, plan.proposal.window
    load = curves.book.loads[model]
    bands, scarcity = curves.band_ppm(), scarcity_ppm(tariff, curves.load_ppm(model))
    clamped = clamped_ppm(tariff, bands, scarcity)
    band, factor = curves.mean_over(bands, window), curves.mean_over(clamped, window)
    unclamped = curves.mean_over(bands * scarcity // PPM, window)
    return Explanation(
        base=-(-tariff.base_rate(model) * share.numerator // share.denominator),
        band=band,
        scarcity=divide_half_even(factor * PPM, band),
        factor=factor,
        tier_factor=tariff.tiers[proposal.tier],
        load=curves.mean_over(curves.load_ppm(model), window),
        promised=curves.mean_over(curves.array(load.promised), window),
        still_to_come=curves.mean_over(curves.array(load.still_to_come), window),
        limited=unclamped != factor,
        price_book=curves.book.number,
    )


def in_one_line(plan: Plan, explanation: Explanation, *, zone: str, now: datetime) -> str:
    """`13.07 = base 2.00 x band 1.0 x scarcity 1.633 (82 % taken, book 317) x standard x 4 h; tonight 22:15: 4.80`."""
    proposal, e = plan.proposal, explanation
    scarcity = f"scarcity {_factor(e.scarcity)} ({_percent(e.load)} taken, book {e.price_book})"
    if e.limited:
        scarcity = f"limited to {_factor(e.scarcity)} ({_percent(e.load)} taken, book {e.price_book})"
    tier = f"{proposal.tier}" if e.tier_factor == PPM else f"{proposal.tier} {_factor(e.tier_factor)}"
    count = f" x {proposal.count}" if proposal.count > 1 else ""
    line = (
        f"{_amount(proposal.total)} = base {_amount(e.base)} x band {_factor(e.band)} x {scarcity}"
        f" x {tier} x {format_length(proposal.window.seconds)}{count}"
    )
    cheaper = _cheaper_start(plan)
    if cheaper is None:
        return line
    when = format_instant(cheaper.window.start, zone_named(zone), now)
    return f"{line}; {_difference(cheaper, proposal)}{when}: {_amount(cheaper.total)}"


def _cheaper_start(plan: Plan) -> Proposal | None:
    """The cheaper start that is named beside a price: of the same contract if there is one, else of another tier."""
    cheaper = [each for each in plan.alternatives if each.total < plan.proposal.total and each.sku == plan.proposal.sku]
    return min(cheaper, key=lambda each: (each.tier is not plan.proposal.tier, each.total), default=None)


def _difference(other: Proposal, chosen: Proposal) -> str:
    return "" if other.tier is chosen.tier else f"{other.tier} "


def _amount(micros: int) -> str:
    """Two decimals, or as many more as a small amount needs to show two digits that are not zero."""
    places = 2 if micros >= MICROS // 10 or micros == 0 else 4
    scaled = divide_half_even(micros * 10**places, MICROS)
    return f"{scaled // 10**places}.{scaled % 10**places:0{places}}"


def _factor(ppm: int) -> str:
    text = f"{divide_half_even(ppm, 1000) / 1000:.3f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def _percent(ppm: int) -> str:
    return f"{divide_half_even(ppm, 10_000)} %"
