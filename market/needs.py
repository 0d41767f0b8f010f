"""What people say they need, "4 x A100, 40 GB each", and the SKUs of a pool that meet it.

A need names no node and no device. GB is 10^9 bytes, as cards are sold: a need of 40 GB meets a card sold as 40 GB.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from market.catalog import NAMED_FRACTIONS, DeviceKind, Footprint, Pool, Sku
from market.errors import InvalidNeed, InvalidShape, NoSuchCapacity, UnknownModel, UnknownSku
from market.phrases import in_digits

MAX_COUNT = 10_000
MAX_MEMORY_GB = 10_000
MOST_LISTED = 12
"""How many names of models an error repeats."""
_EXAMPLE = "write one such as 4 x A100, 40 GB each; at least 20 GB; or 2 x a100-40g/3g.20gb"
_NOT_A_NAME = r"(?!(?:any|at|cards?|each|gpus?|of|or|with)(?![a-z0-9])|\d+ ?[kmgt]i?b?(?![a-z0-9]))"
_FAMILY = rf"{_NOT_A_NAME}[a-z][a-z0-9.-]*[a-z0-9](?: {_NOT_A_NAME}[a-z0-9][a-z0-9.-]*)*"
_COUNT = re.compile(r"(\d{1,9})(?: [x*] |[x*] ?| [x*](?=\d)| )", re.ASCII)
_SKU = re.compile(r"[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.]*", re.ASCII)
_NAME = re.compile(_FAMILY, re.ASCII)
_PART = re.compile(
    rf"(?P<count>(?:\d{{1,9}} ?[x*]? ?)?)(?:an? )?(?P<part>{'|'.join(NAMED_FRACTIONS)})"
    rf"(?: of)?(?: an?)? (?P<family>{_FAMILY})",
    re.ASCII,
)
_COUNT_LAST = re.compile(r"^([a-z].*?) ?[x*] ?(\d{1,9})$", re.ASCII)
_THING = re.compile(
    rf"(?P<family>{_FAMILY})?(?: ?(?P<gpus>gpus?|cards?))?"
    r"(?:(?:^|,? )(?:(?:with|of) )?(?:at least |>= ?)?(?P<memory>\d{1,9}(?:\.\d{1,3})?) ?(?P<unit>[kmgt]i?b?)"
    r"(?:(?: of)? (?:v?ram|memory))?(?: each| or more)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """`count` slices of one SKU, named by `sku`, or by a model `family`, the least `memory_gb` of each, or both.

    With nothing named it is any whole GPU. `InvalidNeed` when both ways are mixed, a name is not lower case, or a
    number is out of bounds. `str(need)` is its canonical form; `parse_need` reads it back.
    """

    count: int = 1
    sku: Sku | None = None
    family: str | None = None
    memory_gb: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_COUNT:
            raise InvalidNeed(f"{self.count} is no count of GPUs, which is 1 to {MAX_COUNT}; {_EXAMPLE}")
        if self.memory_gb is not None and not 1 <= self.memory_gb <= MAX_MEMORY_GB:
            raise InvalidNeed(f"{self.memory_gb} GB is no memory of a GPU, which is 1 to {MAX_MEMORY_GB}; {_EXAMPLE}")
        if self.sku and (self.family or self.memory_gb is not None):
            raise InvalidNeed(f"{self.sku} says its model and memory already; {_EXAMPLE}")
        if self.sku and not _SKU.fullmatch(str(self.sku)):
            raise InvalidNeed(f"{str(self.sku)!r} is no SKU; {_EXAMPLE}")
        if self.family is not None and (" " in self.family or not _NAME.fullmatch(self.family)):
            raise InvalidNeed(f"{self.family!r} is no GPU model; {_EXAMPLE}")

    def __str__(self) -> str:
        if self.sku or self.family:
            memory = f", {self.memory_gb} GB each" if self.memory_gb else ""
            return f"{self.count} x {self.sku or self.family}{memory}"
        if self.memory_gb:
            return f"{self.count} x at least {self.memory_gb} GB"
        return f"{self.count} GPU{'s' * (self.count > 1)}"


def parse_need(text: str) -> Need:
    """The need that a person means: "4 x A100, 40 GB each", "1 x at least 20 GB", "2 a100-40g/3g.20gb", "3 GPUs",
    "two H100", "H100 x 2", "half an L4". A part of a GB is rounded up.

    `InvalidNeed`, with an example to follow, for anything else.
    """
    words = _plain(text) if len(text) <= 200 else ""
    counted = _COUNT.match(words) if not re.match(r"\d+ [kmgt]i?b?\b", words) else None
    count, thing = (int(counted[1]), words[counted.end() :]) if counted else (1, words)
    if _SKU.fullmatch(thing):
        return Need(count=count, sku=Sku.parse(thing))
    match = _THING.fullmatch(thing)
    if re.search(r"(?:^| )for \d", words):
        raise InvalidNeed(f"{text[:40]!r}: a need says what and not how long; say the length by itself, as 2h")
    if not match or not thing:
        raise InvalidNeed(f"{text[:40]!r} is no need; {_EXAMPLE}")
    if match["unit"] not in (None, "g", "gb"):
        raise InvalidNeed(f"{text[:40]!r}: memory is said in GB, as cards are sold; for an A100 of 40 GB write 40 GB")
    family = match["family"] and match["family"].replace(" ", "-")
    memory = ceil(Fraction(match["memory"])) if match["memory"] else None
    return Need(count=count, family=family, memory_gb=memory)


def _plain(text: str) -> str:
    """Lower case, numbers in digits, the count in front, a named part of a card as its SKU."""
    words = " ".join(text.replace("×", "x").lower().split())
    words = re.sub(r"(?<=\d),(?=\d{3}\b)", "", words)
    words = re.sub(r"\bnvidia ", "", words)
    if part := _PART.fullmatch(words):
        words = f"{part['count']}{part['family'].replace(' ', '-')}/{part['part']}"
    words = _COUNT_LAST.sub(r"\2 x \1", words)
    return in_digits(words)


def candidates(need: Need, pool: Pool) -> tuple[Sku, ...]:
    """Every SKU of the pool that meets a need, sorted, however many of it there are.

    A SKU that is named gives itself, also a fraction that is not listed. A family with no memory named means whole
    cards. `UnknownModel`, `UnknownSku` or `InvalidShape` for a name that this pool does not know; `NoSuchCapacity`
    when it has nothing as large.
    """
    if need.sku:
        return _named(need.sku, pool)
    models = family_models(need.family, pool) if need.family else frozenset(model.name for model in pool.models)
    listed = {sku: pool.footprint(sku) for sku in pool.skus() if sku.model in models}
    if fitting := tuple(sku for sku, taken in listed.items() if _meets(need, sku, taken, pool)):
        return fitting
    raise NoSuchCapacity(_too_much(need, listed))


def _named(sku: Sku, pool: Pool) -> tuple[Sku, ...]:
    """The SKU itself, or those of that shape whose models its name stands for, as a100/3g.20gb does."""
    try:
        pool.footprint(sku)
    except UnknownModel:
        variants = [Sku(model, sku.shape) for model in sorted(family_models(sku.model, pool))]
        if known := tuple(each for each in variants if _is_sold(each, pool)):
            return known
        pool.footprint(variants[0])  # says why not
    return (sku,)


def _is_sold(sku: Sku, pool: Pool) -> bool:
    try:
        pool.footprint(sku)
    except (InvalidShape, UnknownSku):
        return False
    return True


def family_models(family: str, pool: Pool) -> frozenset[str]:
    """The models that a family names: itself and its variants (`a100-40g`), else names that go on from it (`v100m16`).

    A name never goes on within a number, so that `a10` is not an `a100`. `UnknownModel` names the nearest.
    """
    wanted = re.sub(r"-(\d+)gb$", r"-\1g", family)
    names = [model.name for model in pool.models]
    if variants := frozenset(name for name in names if name == wanted or name.startswith(f"{wanted}-")):
        return variants
    goes_on = re.compile(re.escape(wanted) + (r"(?!\d)" if wanted[-1].isdigit() else ""))
    if longer := frozenset(name for name in names if goes_on.match(name)):
        return longer
    if re.search(r"\ds$", wanted):  # several of them; an l40s is itself, and was found above
        with suppress(UnknownModel):
            return family_models(family.removesuffix("s"), pool)
    from difflib import get_close_matches

    nearest = get_close_matches(wanted, sorted(names), n=1, cutoff=0)
    has = ", ".join(sorted(names)) if len(names) <= MOST_LISTED else f"{len(names)} models"
    raise UnknownModel(f"no {family!r} in this pool; the nearest is {nearest[0]}; it has {has}")


def _meets(need: Need, sku: Sku, taken: Footprint, pool: Pool) -> bool:
    if need.memory_gb is not None:
        return taken.memory_gb >= need.memory_gb
    if taken.kind is DeviceKind.MIG:
        board = pool.model(sku.model).board
        return board is not None and board.full_mask in taken.masks
    return taken.share == Fraction(1)


def _too_much(need: Need, listed: dict[Sku, Footprint]) -> str:
    name = need.family or "GPU"
    if not listed:
        return f"no {name} of this pool is in service"
    largest = max(sorted(listed), key=lambda sku: listed[sku].memory_gb)
    has = f"the largest is {largest} with {listed[largest].memory_gb} GB"
    if need.memory_gb is None:
        return f"this pool sells no whole {name}, only slices; {has}"
    return f"no {name} of this pool has {need.memory_gb} GB; {has}"
