"""AMD's and Apple's parts, and the list of all. Figures only; ``datasheets`` reads them. No torch.

Apple states how fast memory is and no rate of matrix products: such a part has a bandwidth and no
peak, and a user gives the rate.
"""

from __future__ import annotations

from inference.counting.geforce_specs import NVIDIA_GEFORCE
from inference.counting.gpu_specs import (
    GIB,
    GIGA,
    NVIDIA_DATACENTRE,
    READ_AGAIN,
    READ_ON,
    TERA,
    peaks_of,
)
from inference.records.rooflines import Datasheet

AMD = (
    Datasheet(
        name="MI300X",
        aliases=("AMD Instinct MI300X", "AMD Instinct MI300X OAM", "MI300X", "Instinct MI300X"),
        peaks=peaks_of(bfloat16=1307.4, float16=1307.4, tfloat32=653.7, float32=163.4),
        bytes_per_s=5.3 * TERA,
        memory_bytes=192 * GIB,
        document="AMD Instinct MI300X accelerator data sheet",
        read_at="github.com/alpharomercoma/MI300X-vs-H200, REPORT.md (bfloat16, bandwidth, memory)",
        read_on=READ_ON,
        note="TF32 is half and float32 an eighth of the bfloat16 rate in the CDNA 3 matrix cores.",
    ),
    Datasheet(
        name="MI325X",
        aliases=("AMD Instinct MI325X", "AMD Instinct MI325X OAM", "MI325X", "Instinct MI325X"),
        peaks=peaks_of(bfloat16=1307.4, float16=1307.4, tfloat32=653.7, float32=163.4),
        bytes_per_s=6.0 * TERA,
        memory_bytes=256 * GIB,
        document="AMD Instinct MI325X accelerator data sheet",
        read_at="awesomeagents.ai/hardware/amd-mi325x; AMD, ROCm GPU specifications (memory)",
        read_on=READ_AGAIN,
    ),
)


def _apple(name: str, gigabytes_per_s: float, document: str, note: str = "") -> Datasheet:
    return Datasheet(
        name=f"Apple {name}",
        aliases=(f"Apple {name}", name),
        peaks=(),
        bytes_per_s=gigabytes_per_s * GIGA,
        memory_bytes=None,
        document=f"Apple, {document}",
        read_at="the announcement, by quotations of it",
        read_on=READ_AGAIN,
        note=f"Apple states no rate of matrix products. {note}".strip(),
    )


APPLE = (
    _apple("M1 Pro", 200, "Introducing M1 Pro and M1 Max, October 2021"),
    _apple("M1 Max", 400, "Introducing M1 Pro and M1 Max, October 2021"),
    _apple("M1 Ultra", 800, "Apple unveils M1 Ultra, March 2022"),
    _apple("M2", 100, "Apple unveils M2, June 2022"),
    _apple("M2 Pro", 200, "Apple unveils M2 Pro and M2 Max, January 2023"),
    _apple("M2 Max", 400, "Apple unveils M2 Pro and M2 Max, January 2023"),
    _apple("M2 Ultra", 800, "Apple introduces M2 Ultra, June 2023"),
    _apple("M3", 100, "MacBook Pro technical specifications, 2023"),
    _apple("M3 Pro", 150, "MacBook Pro technical specifications, 2023"),
    _apple("M3 Max", 400, "MacBook Pro technical specifications, 2023", "40 GPU cores; 30: 300."),
    _apple("M3 Ultra", 819, "Apple reveals M3 Ultra, March 2025"),
    _apple("M4", 120, "MacBook Pro technical specifications, 2024"),
    _apple("M4 Pro", 273, "Apple introduces M4 Pro and M4 Max, October 2024"),
    _apple(
        "M4 Max",
        546,
        "Apple introduces M4 Pro and M4 Max, October 2024",
        "40 GPU cores; 32 have 410 GB/s.",
    ),
)

PARTS = (*NVIDIA_DATACENTRE, *NVIDIA_GEFORCE, *AMD, *APPLE)
