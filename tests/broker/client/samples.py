"""Answers of a broker as fixed data, in the shapes of the wire, for the tests of the client and of its faces."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from broker.wire.lists import BookingPage, CostCenterPage
from broker.wire.market import CurveView, DeviceView, EventView, NodeView, OffersView, OfferView, PoolView, ProblemView
from broker.wire.people import CostCenterView, Me, Role, Scope
from broker.wire.quotes import BackOutView, BookingView, ExplanationView, PlaceView, ProposalView, QuoteView
from market.catalog import Isolation, Tier
from market.proposals import ProposalKind
from market.states import BookingState

NOW = datetime(2026, 12, 1, 17, 3, 20, tzinfo=UTC)
TONIGHT = datetime(2026, 12, 1, 21, 15, tzinfo=UTC)
MICROS = 1_000_000
QUOTE_ID = "q_" + "a1" * 12
FRESH_ID = "q_" + "b2" * 12
BOOKING_ID = "b_" + "c3" * 12
OTHER_ID = "b_" + "d4" * 12
TOKEN = "gpt_2b7e151628aed2a6abf7158809cf4f3c"


def me() -> Me:
    return Me(
        name="anna",
        role=Role.MEMBER,
        scopes=[Scope.READ, Scope.BOOK],
        organisation="campus",
        currency="EUR",
        zone="Europe/Berlin",
        default_cost_center="physics",
        broker_version="0.1.0",
        simulated=True,
    )


def cost_centers() -> CostCenterPage:
    start, end = datetime(2026, 11, 30, 23, tzinfo=UTC), datetime(2026, 12, 31, 23, tzinfo=UTC)
    lab = CostCenterView(
        name="lab",
        owner="anna",
        currency="EUR",
        period_start=start,
        period_end=end,
        limit=1_000 * MICROS,
        spent=12_500_000,
        held=52_280_000,
        left=935_220_000,
    )
    empty = lab.model_copy(update={"name": "physics", "owner": "bo", "limit": 0, "spent": 0, "held": 0, "left": 0})
    return CostCenterPage(items=[lab, empty], next_cursor=None)


def proposal(
    *,
    kind: ProposalKind = ProposalKind.AS_ASKED,
    sku: str = "a100-40g/full",
    tier: Tier = Tier.STANDARD,
    start: datetime = NOW,
    total: int = 52_280_000,
) -> ProposalView:
    return ProposalView(
        kind=kind,
        sku=sku,
        tier=tier,
        count=4,
        start=start,
        end=start + timedelta(hours=4),
        seconds=14_400,
        rate=total // 16,
        total=total,
    )


def quote(
    *, quote_id: str = QUOTE_ID, plan: ProposalView | None = None, starts_when_booked: bool = True, at: datetime = NOW
) -> QuoteView:
    plan = plan or proposal(start=at)
    return QuoteView(
        id=quote_id,
        need="4 x a100, 40 GB each",
        proposal=plan,
        isolation=Isolation.DEVICE,
        memory_gb=40,
        currency="EUR",
        cost_center="physics",
        budget_left_after=947_720_000,
        starts_when_booked=starts_when_booked,
        simulated=True,
        explanation=ExplanationView(
            text="52.28 = base 2.00 x band 1.0 x scarcity 1.633 (82 % taken, book 317) x standard x 4 h x 4; "
            "tonight 22:15: 19.20",
            base=2_000_000,
            band=MICROS,
            scarcity=1_633_000,
            factor=1_633_000,
            tier_factor=MICROS,
            load=820_000,
            promised=700_000,
            still_to_come=120_000,
            limited=False,
            price_book=317,
            forecast="hour-of-week mean of the last four weeks",
        ),
        alternatives=[
            proposal(kind=ProposalKind.OTHER_START, start=TONIGHT, total=19_200_000),
            proposal(kind=ProposalKind.OTHER_SKU, sku="h100-80g/full", start=plan.start, total=98_000_000),
            proposal(kind=ProposalKind.OTHER_TIER, tier=Tier.ECONOMY, start=TONIGHT, total=13_440_000),
        ],
        made_at=at,
        expires_at=at + timedelta(minutes=15),
    )


def booking(
    *, booking_id: str = BOOKING_ID, state: BookingState = BookingState.CONFIRMED, charged: int = 0, fee: int = 0
) -> BookingView:
    return BookingView(
        id=booking_id,
        state=state,
        person="anna",
        need="4 x a100, 40 GB each",
        sku="a100-40g/full",
        tier=Tier.STANDARD,
        count=4,
        start=TONIGHT,
        end=TONIGHT + timedelta(hours=4),
        seconds=14_400,
        rate=1_200_000,
        total=19_200_000,
        charged=charged,
        fee=fee,
        currency="EUR",
        cost_center="physics",
        quote_id=QUOTE_ID,
        isolation=Isolation.DEVICE,
        simulated=True,
        places=[PlaceView(node="a100-01", device=2), PlaceView(node="a100-01", device=0)],
        free_cancel_until=TONIGHT - timedelta(hours=1),
        booked_at=NOW,
    )


def bookings(next_cursor: str | None = None) -> BookingPage:
    ended = booking(booking_id=OTHER_ID, state=BookingState.ENDED, charged=19_200_000)
    return BookingPage(items=[booking(), ended], next_cursor=next_cursor)


def back_out(*, free: bool = False) -> BackOutView:
    charged = 0 if free else 6_400_000
    return BackOutView(
        booking_id=BOOKING_ID,
        free=free,
        charged=charged,
        fee=charged // 10,
        released=19_200_000 - charged,
        currency="EUR",
    )


def offers() -> OffersView:
    def offer(
        sku: str, gb: int, isolation: Isolation, capacity: int, rate: int, *, inferred: bool = False
    ) -> OfferView:
        return OfferView(
            sku=sku,
            title=sku,
            memory_gb=gb,
            isolation=isolation,
            free_now=capacity // 4,
            capacity=capacity,
            rate_now=rate,
            rate_lowest=rate * 3 // 8,
            lowest_at=TONIGHT + timedelta(hours=4),
            load_now=820_000,
            inferred=inferred,
        )

    return OffersView(
        offers=[
            offer("a100-40g/3g.20gb", 20, Isolation.MIG, 16, 1_633_000),
            offer("a100-40g/full", 40, Isolation.DEVICE, 48, 3_266_000),
            offer("a30/1g.6gb", 6, Isolation.MIG, 32, 270_000, inferred=True),
            offer("l4/half", 12, Isolation.TIME, 1_240, 200_000),
        ],
        tier=Tier.STANDARD,
        price_book=317,
        currency="EUR",
        zone="Europe/Berlin",
        simulated=True,
        at=NOW,
    )


def curve(slots: int = 96, start: datetime = datetime(2026, 12, 1, 17, tzinfo=UTC)) -> CurveView:
    """Falls from the evening to a valley at night and rises in the morning, a price each slot."""
    shape = [abs((at * 15 / 60 + 12) % 24 - 20) / 20 for at in range(slots)]
    return CurveView(
        simulated=True,
        sku="a100-40g/full",
        tier=Tier.STANDARD,
        currency="EUR",
        zone="Europe/Berlin",
        price_book=317,
        start=start,
        slot_seconds=900,
        rates=[1_200_000 + round(each * 2_400_000) for each in shape],
        loads=[round(each * 1_000_000) for each in shape],
    )


def pool(next_cursor: str | None = None) -> PoolView:
    def device(at: int, model: str, kind: str, promised: int, *, healthy: bool = True) -> DeviceView:
        return DeviceView(id=at, index=at, model=model, kind=kind, healthy=healthy, promised_now=promised)

    return PoolView(
        name="campus",
        simulated=True,
        nodes=[
            NodeView(
                name="a100-01",
                site="hall-a",
                topology=["spine-1", "leaf-1"],
                cpu_milli=128_000,
                memory_mib=1_048_576,
                devices=[device(0, "a100-40g", "shared", 1_000_000), device(1, "a100-40g", "shared", 500_000)],
            ),
            NodeView(
                name="mixed-01",
                site="hall-b",
                topology=["spine-1", "leaf-2"],
                cpu_milli=64_000,
                memory_mib=524_288,
                devices=[device(2, "a30", "mig", 250_000), device(3, "l4", "shared", 0, healthy=False)],
            ),
        ],
        node_count=3_120,
        device_count=12_480,
        next_cursor=next_cursor,
    )


def event(seq: int) -> EventView:
    return EventView(seq=seq, kind="booking.confirmed", at=NOW, subject=BOOKING_ID, data={"total": 19_200_000})


def problem(code: str, status: int, detail: str, **more: object) -> ProblemView:
    document = {
        "type": f"urn:gputide:problem:{code}",
        "title": code.replace("_", " "),
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": "r_42",
        **more,
    }
    return ProblemView.model_validate(document)
