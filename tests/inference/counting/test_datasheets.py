"""Data sheets: exact names, dense rates, two given rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.counting.datasheets import (
    datasheet_ceilings,
    device_ceilings,
    device_memory_bytes,
    entered_ceilings,
    find_datasheet,
    with_entered_rate,
)
from inference.counting.parts import PARTS
from inference.records.costs import Source
from inference.records.errors import InputError
from inference.records.rooflines import roof_tag


def test_no_name_stands_for_two_parts() -> None:
    owners = [
        (part.name, {"".join(filter(str.isalnum, alias.lower())) for alias in part.aliases})
        for part in PARTS
    ]

    clashes = [
        (one, other)
        for index, (one, names) in enumerate(owners)
        for other, others in owners[index + 1 :]
        if names & others
    ]

    assert clashes == []


def test_every_part_says_where_its_figures_come_from() -> None:
    for part in PARTS:
        assert part.document, part.name
        assert part.read_at, part.name
        assert part.bytes_per_s > 0, part.name
        assert part.peaks or "states no rate" in part.note, part.name
        assert all(rate > 0 for _, rate in part.peaks), part.name
        assert part.is_confirmed or part.note, part.name


def test_a_part_is_found_by_each_of_its_names() -> None:
    names = [(alias, part) for part in PARTS for alias in (part.name, *part.aliases)]

    assert [alias for alias, part in names if find_datasheet(alias) is not part] == []


@pytest.mark.parametrize(
    ("name", "bytes_per_s"),
    [
        ("NVIDIA A100-SXM4-40GB", 1.555e12),
        ("NVIDIA A100-SXM4-80GB", 2.039e12),
        ("NVIDIA A100 80GB PCIe", 1.935e12),
        ("nvidia h100 80gb hbm3", 3.35e12),
        ("NVIDIA H100 PCIe", 2.0e12),
    ],
)
def test_cards_with_like_names_keep_their_own_bandwidth(name: str, bytes_per_s: float) -> None:
    sheet = find_datasheet(name)

    assert sheet is not None
    assert sheet.bytes_per_s == bytes_per_s


@pytest.mark.parametrize("name", ["NVIDIA A16", "L40", "NVIDIA H100 CNX", "T400", "M4 Mini", ""])
def test_a_name_that_only_resembles_one_is_not_found(name: str) -> None:
    assert find_datasheet(name) is None


def test_a_sheets_rates_are_tagged_and_dated() -> None:
    ceilings = device_ceilings("H100", "bfloat16")

    assert ceilings.source is Source.DATASHEET
    assert ceilings.flops_per_s == 989.4e12
    assert "H100" in ceilings.method
    assert "read 2026-11-29" in ceilings.method


def test_weights_in_blocks_are_computed_with_at_the_rate_of_float32() -> None:
    sheet = find_datasheet("A10G")
    assert sheet is not None

    assert datasheet_ceilings(sheet, "q4_1") == datasheet_ceilings(sheet, "float32")


def test_an_unconfirmed_sheet_says_so_wherever_it_is_used() -> None:
    sheet = find_datasheet("A10G")
    assert sheet is not None

    ceilings = datasheet_ceilings(replace(sheet, is_confirmed=False), "bfloat16")

    assert "not confirmed" in ceilings.method


def test_two_rates_stand_for_any_device() -> None:
    ceilings = device_ceilings("989e12:3.35e12", "bfloat16")

    assert (ceilings.flops_per_s, ceilings.bytes_per_s) == (989e12, 3.35e12)
    assert "user" in ceilings.method
    assert roof_tag(ceilings) == "entered"
    assert roof_tag(device_ceilings("H100", "bfloat16")) == "datasheet"
    assert device_memory_bytes("989e12:3.35e12") is None
    assert device_memory_bytes("H100") == 80 << 30


@pytest.mark.parametrize("text", ["1e12:", "a:b", "1:0", "-1:2", "nan:1", "inf:1", "1:2:3"])
def test_rates_that_are_none_are_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"989e12:3\.35e12"):
        device_ceilings(text, "bfloat16")


def test_a_dtype_without_a_rate_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(InputError, match=r"T4 states no bfloat16 .*float16"):
        device_ceilings("T4", "bfloat16")


def test_an_unknown_device_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'Voodoo 2'.*RTX 4090"):
        device_ceilings("Voodoo 2", "float32")


@pytest.mark.parametrize("name", ["M4 Max", "Apple M2 Ultra"])
def test_a_part_whose_vendor_states_no_rate_is_refused_with_its_bandwidth(name: str) -> None:
    """No other part's rate is suggested: 989e12 once stood there, which is an H100's."""
    words = r"states no float32 .*only a bandwidth of (\d+e9) bytes/s.* write them as FLOP/s:\1$"
    with pytest.raises(InputError, match=words):
        device_ceilings(name, "float32")


def test_a_vendors_bandwidth_stands_beside_a_rate_of_ones_own() -> None:
    sheet = find_datasheet("M4 Max")
    assert sheet is not None

    ceilings = with_entered_rate(sheet, 30e12)

    assert (ceilings.flops_per_s, ceilings.bytes_per_s) == (30e12, 546e9)
    assert "Apple" in ceilings.method
    assert roof_tag(ceilings) == "entered"


def test_two_rates_have_the_name_that_the_user_gives() -> None:
    assert entered_ceilings(1e12, 1e11, "my box").method.startswith("my box: two rates")


# By arithmetic: a card's float32 rate is cores x 2 x boost clock, and its bandwidth is bus width x
# data rate; NVIDIA's white papers print both.
@pytest.mark.parametrize(
    ("name", "cores", "boost_ghz", "bus_bits", "gigabits_per_s"),
    [
        ("RTX 5090", 21_760, 2.407, 512, 28),
        ("RTX 5080", 10_752, 2.617, 256, 30),
        ("RTX 5070 Ti", 8_960, 2.452, 256, 28),
        ("RTX 5070", 6_144, 2.512, 192, 28),
        ("RTX 4090", 16_384, 2.520, 384, 21),
        ("RTX 4080", 9_728, 2.505, 256, 22.4),
        ("RTX 4070 Ti", 7_680, 2.610, 192, 21),
        ("RTX 3090", 10_496, 1.695, 384, 19.5),
        ("RTX 3080", 8_704, 1.710, 320, 19),
        ("RTX 3070", 5_888, 1.725, 256, 14),
    ],
)
def test_the_figures_of_a_card_follow_from_its_cores_and_its_bus(
    name: str, cores: int, boost_ghz: float, bus_bits: int, gigabits_per_s: float
) -> None:
    sheet = find_datasheet(name)
    assert sheet is not None
    peaks = dict(sheet.peaks)

    assert peaks["float32"] == pytest.approx(cores * 2 * boost_ghz * 1e9, rel=0.003)
    assert peaks["bfloat16"] == pytest.approx(2 * peaks["float32"], rel=0.005)
    assert sheet.bytes_per_s == pytest.approx(bus_bits / 8 * gigabits_per_s * 1e9, rel=0.001)


def test_a_ridge_can_be_read_off_every_rate_that_a_sheet_states() -> None:
    ridges = [
        datasheet_ceilings(part, dtype).ridge_flops_per_byte
        for part in PARTS
        for dtype, _ in part.peaks
    ]

    assert len(ridges) >= len([part for part in PARTS if part.peaks])
    assert 1 < min(ridges) <= max(ridges) < 1000
