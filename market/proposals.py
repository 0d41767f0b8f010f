"""A proposal: one priced way to meet a request. A quote promises one; a refusal names the nearest others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from market.catalog import Sku, Tier
from market.instants import Window


class ProposalKind(StrEnum):
    """How a proposal differs from what was asked."""

    AS_ASKED = "as_asked"
    OTHER_START = "other_start"
    OTHER_SKU = "other_sku"
    OTHER_TIER = "other_tier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`count` slices of a SKU for a window, at a locked `rate` (micros a slice-hour) that makes `total` (micros)."""

    kind: ProposalKind
    sku: Sku
    tier: Tier
    count: int
    window: Window
    rate: int
    total: int
