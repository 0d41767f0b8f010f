"""MIG profiles and their legal starts, as a table.

Source: real `nvidia-smi -lgipp` output and NVIDIA's MIG user guide, row by row in `tests/data/mig_placement.csv`,
against which a test holds this file. A row with `inferred=True` was not read from a device: it follows the geometry
of A100 and H100, whose memory fractions and instance counts agree with NVIDIA's tables; confirm it with NVML.
Profiles with media engines (`+me`) are listed in the source but not here: they allow one instance a device, a rule
that cells cannot express.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One MIG profile of one board: `cells` memory slices from any of `starts`, `compute` compute slices."""

    name: str
    compute: int
    cells: int
    starts: tuple[int, ...]
    inferred: bool = False

    @property
    def masks(self) -> tuple[int, ...]:
        """The bit masks of the cells it takes, one a legal start; bit 0 is cell 0."""
        return tuple(((1 << self.cells) - 1) << start for start in self.starts)


@dataclass(frozen=True, slots=True)
class MigBoard:
    """The partition geometry of one board: how many cells and compute slices it has, and its profiles."""

    cells: int
    compute: int
    profiles: tuple[MigProfile, ...]

    @property
    def full_mask(self) -> int:
        return (1 << self.cells) - 1

    def profile(self, name: str) -> MigProfile | None:
        return next((each for each in self.profiles if each.name == name), None)


MIG_BOARDS: dict[str, MigBoard] = {
    "A100-40GB": MigBoard(
        8,
        7,
        (
            MigProfile("1g.5gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
            MigProfile("1g.10gb", 1, 2, (0, 2, 4, 6)),
            MigProfile("2g.10gb", 2, 2, (0, 2, 4)),
            MigProfile("3g.20gb", 3, 4, (0, 4)),
            MigProfile("4g.20gb", 4, 4, (0,)),
            MigProfile("7g.40gb", 7, 8, (0,)),
        ),
    ),
    "A100-80GB": MigBoard(
        8,
        7,
        (
            MigProfile("1g.10gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
            MigProfile("1g.20gb", 1, 2, (0, 2, 4, 6)),
            MigProfile("2g.20gb", 2, 2, (0, 2, 4)),
            MigProfile("3g.40gb", 3, 4, (0, 4)),
            MigProfile("4g.40gb", 4, 4, (0,)),
            MigProfile("7g.80gb", 7, 8, (0,)),
        ),
    ),
    "A30-24GB": MigBoard(
        4,
        4,
        (
            MigProfile("1g.6gb", 1, 1, (0, 1, 2, 3)),
            MigProfile("2g.12gb", 2, 2, (0, 2)),
            MigProfile("4g.24gb", 4, 4, (0,)),
        ),
    ),
    "H100-80GB": MigBoard(
        8,
        7,
        (
            MigProfile("1g.10gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
            MigProfile("1g.20gb", 1, 2, (0, 2, 4, 6)),
            MigProfile("2g.20gb", 2, 2, (0, 2, 4)),
            MigProfile("3g.40gb", 3, 4, (0, 4)),
            MigProfile("4g.40gb", 4, 4, (0,)),
            MigProfile("7g.80gb", 7, 8, (0,)),
        ),
    ),
    "H100-NVL-94GB": MigBoard(
        8,
        7,
        (
            MigProfile("1g.12gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
            MigProfile("1g.24gb", 1, 2, (0, 2, 4, 6)),
            MigProfile("2g.24gb", 2, 2, (0, 2, 4)),
            MigProfile("3g.47gb", 3, 4, (0, 4)),
            MigProfile("4g.47gb", 4, 4, (0,)),
            MigProfile("7g.94gb", 7, 8, (0,)),
        ),
    ),
    "H200-141GB": MigBoard(
        8,
        7,
        (
            MigProfile("1g.18gb", 1, 1, (0, 1, 2, 3, 4, 5, 6), inferred=True),
            MigProfile("1g.35gb", 1, 2, (0, 2, 4, 6), inferred=True),
            MigProfile("2g.35gb", 2, 2, (0, 2, 4), inferred=True),
            MigProfile("3g.71gb", 3, 4, (0, 4), inferred=True),
            MigProfile("4g.71gb", 4, 4, (0,), inferred=True),
            MigProfile("7g.141gb", 7, 8, (0,), inferred=True),
        ),
    ),
    "B200-180GB": MigBoard(
        8,
        7,
        (
            MigProfile("1g.23gb", 1, 1, (0, 1, 2, 3, 4, 5, 6), inferred=True),
            MigProfile("1g.45gb", 1, 2, (0, 2, 4, 6), inferred=True),
            MigProfile("2g.45gb", 2, 2, (0, 2, 4), inferred=True),
            MigProfile("3g.90gb", 3, 4, (0, 4), inferred=True),
            MigProfile("4g.90gb", 4, 4, (0,), inferred=True),
            MigProfile("7g.180gb", 7, 8, (0,), inferred=True),
        ),
    ),
}
