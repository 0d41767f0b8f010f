"""The demand records that ship with gputide give a plausible week, and a corrupt one is refused."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.inputs.assets import AssetMissing, asset
from broker.inputs.demand import hour_of_week, philly_profile, servegen_profile
from broker.inputs.pools import load_pool
from market.catalog import PPM
from market.errors import InvalidPool
from market.forecast import HOURS_A_WEEK

JOBS = "timestamp,duration,num_gpus\n2026-06-01 00:00:00,0.0,1\n{row}\n2026-06-08 00:00:00,60.0,1\n\n"


@pytest.fixture(scope="module")
def forecasts() -> dict[str, tuple[int, ...]]:
    return hour_of_week(load_pool(asset("pools", "campus.toml")))


def packed(folder: Path, text: str) -> Path:
    path = folder / "record.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def rates(**skip: str) -> str:
    """A week of half hours at a rate that is the hour of the week, but for the seconds that are replaced."""
    rows = [(second, skip.get(f"at_{second}", str(second // 3600))) for second in range(0, 604_800, 1800)]
    return "seconds,m-large\n" + "".join(f"{second},{rate}\n" for second, rate in rows)


def test_each_model_of_the_campus_has_a_week_whose_busiest_hour_is_its_peak(
    forecasts: dict[str, tuple[int, ...]],
) -> None:
    assert {name: max(week) for name, week in forecasts.items()} == {
        "a100-40g": 850_000, "h100-80g": 850_000, "l4": 800_000, "a10": 800_000,
    }  # fmt: skip
    assert all(len(week) == HOURS_A_WEEK and min(week) > 0 for week in forecasts.values())


def test_philly_works_by_day_and_rests_at_the_weekend(forecasts: dict[str, tuple[int, ...]]) -> None:
    """Facts of the record: busiest on Wednesday from 16:00, quietest in the last hour of Sunday."""
    week = forecasts["a100-40g"]
    assert week.index(max(week)) == 2 * 24 + 16
    assert week.index(min(week)) == HOURS_A_WEEK - 1
    workdays, weekend = week[: 5 * 24], week[5 * 24 :]
    assert sum(workdays) / len(workdays) > 1.2 * sum(weekend) / len(weekend)


def test_a_model_without_a_source_of_demand_has_a_flat_forecast_of_zero(tmp_path: Path) -> None:
    campus = asset("pools", "campus.toml").read_text()
    path = tmp_path / "pool.toml"
    path.write_text(campus[: campus.index("[[demand]]")])
    assert set(hour_of_week(load_pool(path)).values()) == {(0,) * HOURS_A_WEEK}


def test_a_philly_job_counts_by_its_hours(tmp_path: Path) -> None:
    profile = philly_profile(packed(tmp_path, JOBS.format(row="2026-06-02 08:00:00,5400.0,2")))
    assert {hour: int(ppm) for hour, ppm in enumerate(profile) if ppm} == {32: 2 * PPM, 33: PPM}


@pytest.mark.parametrize("gap", ["", "0", "0.0"])
def test_a_rate_of_nothing_is_a_gap_and_lowers_no_mean(tmp_path: Path, gap: str) -> None:
    path = packed(tmp_path, rates(at_0="3", at_7200=gap))
    profile = servegen_profile(path, "m-large").tolist()
    assert profile[1:3] == [PPM, 2 * PPM]


@pytest.mark.parametrize(
    "row",
    ["2026-06-02 08:00:00,5400.0", "yesterday,5400.0,2", "2026-06-02 08:00:00,-1,2", "2026-06-02 08:00:00,60,nan",
     "2026-06-02 08:00:00,1e999999999,2", "2026-06-02 08:00:00,inf,2", "2026-06-02 08:00:00,60,two", "NaT,60,2",
     '"2026-06-02 08:00:00,60,2'],
)  # fmt: skip
def test_a_corrupt_job_is_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(InvalidPool, match=r"record\.csv\.gz"):
        philly_profile(packed(tmp_path, JOBS.format(row=row)))


@pytest.mark.parametrize(
    "text", ["", "\n", "timestamp,duration,num_gpus\n", "seconds,m-mid\n0,1\n", rates(at_0="much")]
)
def test_a_file_without_what_is_needed_is_refused(tmp_path: Path, text: str) -> None:
    path = packed(tmp_path, text)
    for read in (philly_profile, lambda path: servegen_profile(path, "m-large")):
        with pytest.raises(InvalidPool, match=r"record\.csv\.gz"):
            read(path)


@given(st.binary(max_size=40), st.integers(0, 3000))
def test_damaged_bytes_are_refused_or_read_as_a_week(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int
) -> None:
    whole = gzip.compress(rates().encode(), mtime=0)
    path = tmp_path_factory.mktemp("damaged") / "record.csv.gz"
    path.write_bytes(whole[:at] + junk + whole[at + len(junk) + 1 :])
    with suppress(InvalidPool):
        assert len(servegen_profile(path, "m-large")) == HOURS_A_WEEK


def test_an_asset_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(AssetMissing, match=r"did you mean campus\?"):
        asset("pools", "campsu.toml")
    with pytest.raises(AssetMissing, match="it has campus, openb"):
        asset("pools", "xyz")
    with pytest.raises(AssetMissing, match="none there"):
        asset("nowhere", "xyz")
