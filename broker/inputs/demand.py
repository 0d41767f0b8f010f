"""Reads the demand records that gputide ships into the hour-of-week forecast of each model of a pool.

The records are public traces; `assets/demand/README.md` says where they come from and what they mean.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np

from broker.inputs.assets import asset
from broker.inputs.pools import DemandSource, PoolFile
from market.catalog import PPM
from market.errors import InvalidPool
from market.forecast import HOURS_A_WEEK, Integers, hour_of_week_load, hour_of_week_rates, scale_to_peak
from market.instants import epoch_seconds

_MOST = 10**10


def hour_of_week(pool_file: PoolFile) -> dict[str, tuple[int, ...]]:
    """The forecast of each model of the pool: 168 loads in ppm of its capacity, from Monday 00:00 local.

    A model without a source of demand has a flat forecast of 0. `InvalidPool` for a record that cannot be read.
    """
    forecasts = {model.name: (0,) * HOURS_A_WEEK for model in pool_file.pool.models}
    for source in pool_file.demand:
        scaled = scale_to_peak(_profile(source), source.peak_ppm)
        forecasts |= dict.fromkeys(source.models, tuple(int(load) for load in scaled))
    return forecasts


def philly_profile(path: Path) -> Integers:
    """Mean busy GPUs by hour of the week, in ppm of one GPU, of a file of jobs (`InvalidPool` if it is corrupt)."""
    starts, durations, gpus = _columns(path, "timestamp", "duration", "num_gpus")
    try:
        starts_s = [epoch_seconds(datetime.fromisoformat(start).replace(tzinfo=UTC)) for start in starts]
        return hour_of_week_load(np.array(starts_s, dtype=np.int64), _integers(durations), _integers(gpus))
    except (ValueError, ArithmeticError, InvalidPool) as fault:
        raise _corrupt(path, fault) from fault


def servegen_profile(path: Path, column: str) -> Integers:
    """Mean requests per 1,000,000 seconds by hour of the week of one service (`InvalidPool` if the file is corrupt).

    A rate that is missing or 0 is a gap in the record, since none of these services ever rests, and is left out.
    """
    seconds, rates = _columns(path, "seconds", column)
    try:
        known = [(second, rate) for second, rate in zip(seconds, rates, strict=True) if rate and Decimal(rate)]
        values = _integers([rate for _, rate in known], PPM)
        return hour_of_week_rates(_integers([second for second, _ in known]), values)
    except (ValueError, ArithmeticError, InvalidPool) as fault:
        raise _corrupt(path, fault) from fault


def _profile(source: DemandSource) -> Integers:
    if source.column is None:
        return philly_profile(asset("demand", "philly_jobs.csv.gz"))
    return servegen_profile(asset("demand", "servegen_rps_10min.csv.gz"), source.column)


def _columns(path: Path, *names: str) -> list[list[str]]:
    """The columns of these names, from top to bottom."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            header, *rows = (row for row in csv.reader(file, strict=True) if row)
            places = [header.index(name) for name in names]
            return [[row[place] for row in rows] for place in places]
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, IndexError) as fault:
        raise _corrupt(path, fault) from fault


def _integers(texts: list[str], factor: int = 1) -> Integers:
    """Numbers from 0 to 10^10, times a factor, rounded down (`ValueError` for another, `ArithmeticError` for none)."""
    numbers = [Decimal(text) for text in texts]
    for number in numbers:
        if not 0 <= number <= _MOST:
            raise ValueError(f"{number:.6g} is not from 0 to {_MOST}")
    return np.array([int(number * factor) for number in numbers], dtype=np.int64)


def _corrupt(path: Path, fault: Exception) -> InvalidPool:
    return InvalidPool(f"{path} is no readable record of demand: {fault or type(fault).__name__}")
