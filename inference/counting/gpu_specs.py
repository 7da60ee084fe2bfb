"""The parts whose data sheets are built in. Figures only; ``datasheets.py`` reads them.

Every peak is the dense rate of matrix products with float32 accumulation: where a vendor prints
the rate with structured sparsity, half of it stands here. ``float32`` is the rate without TF32, as
torch computes by default; ``tfloat32`` is the other. Vendors' GB of memory are GiB, as the drivers
report them. ``read_at`` is where the figures were read: vendors move their documents. A part whose
vendor states no matrix rate is left out, such as Apple's: two rates can be given in its place. No
torch.
"""

from __future__ import annotations

from datetime import date

from inference.records.rooflines import Datasheet

READ_ON = date(2026, 11, 29)
GIB = 1 << 30
TERA = 1e12
GIGA = 1e9


def _peaks(**tflops: float) -> tuple[tuple[str, float], ...]:
    return tuple((dtype, rate * TERA) for dtype, rate in tflops.items())


HOPPER_SXM = _peaks(bfloat16=989.4, float16=989.4, tfloat32=494.7, float32=66.9)
AMPERE_100 = _peaks(bfloat16=312, float16=312, tfloat32=156, float32=19.5)
A100_DOCUMENT = "NVIDIA A100 Tensor Core GPU data sheet"
A100_READ_AT = (
    "glennklockwood.com/garden/processors/A100; "
    "thundercompute.com/blog/nvidia-a100-specs-full-guide"
)
HALF_TF32 = "TF32 is taken as half the float16 rate, as on the vendor's other parts."
HOPPER_READ_AT = (
    "glennklockwood.com/garden/peak-FLOPS and kunwar.page/chapter/appendix-d-hardware-reference"
)

NVIDIA_DATACENTRE = (
    Datasheet(
        name="H200",
        aliases=("NVIDIA H200", "H200", "H200 SXM", "H200 141GB"),
        peaks=HOPPER_SXM,
        bytes_per_s=4.8 * TERA,
        memory_bytes=141 * GIB,
        document="NVIDIA H200 Tensor Core GPU data sheet",
        read_at=f"{HOPPER_READ_AT}; itkb.uw.cz/2026/06/nvidia-h200-vs-b300-precisions-cores.html",
        read_on=READ_ON,
        note=HALF_TF32,
    ),
    Datasheet(
        name="H100 SXM",
        aliases=(
            "NVIDIA H100 80GB HBM3",
            "H100 SXM",
            "H100 SXM5",
            "H100",
            "H100 80GB",
            "H100 SXM 80GB",
            "H100 SXM5 80GB",
        ),
        peaks=HOPPER_SXM,
        bytes_per_s=3.35 * TERA,
        memory_bytes=80 * GIB,
        document="NVIDIA H100 Tensor Core GPU data sheet",
        read_at=HOPPER_READ_AT,
        read_on=READ_ON,
        note=HALF_TF32,
    ),
    Datasheet(
        name="H100 PCIe",
        aliases=("NVIDIA H100 PCIe", "H100 PCIe", "H100 PCIe 80GB"),
        peaks=_peaks(bfloat16=756, float16=756, tfloat32=378, float32=51),
        bytes_per_s=2.0 * TERA,
        memory_bytes=80 * GIB,
        document="NVIDIA H100 Tensor Core GPU data sheet",
        read_at="kunwar.page/chapter/appendix-d-hardware-reference",
        read_on=READ_ON,
        note=HALF_TF32,
    ),
    Datasheet(
        name="B200",
        aliases=("NVIDIA B200", "B200", "B200 SXM", "B200 180GB"),
        peaks=_peaks(bfloat16=2250, float16=2250, tfloat32=1100, float32=80),
        bytes_per_s=8.0 * TERA,
        memory_bytes=180 * GIB,
        document="NVIDIA Blackwell architecture brief, HGX B200",
        read_at="glennklockwood.com/garden/processors/B200",
        read_on=READ_ON,
        note="Some copies print 1,125 for TF32, 75 for float32 and 7.7 TB/s; 180 of 192 GB usable.",
    ),
    Datasheet(
        name="A100 40GB",
        aliases=(
            "NVIDIA A100-SXM4-40GB",
            "NVIDIA A100-PCIE-40GB",
            "A100 40GB",
            "A100 SXM 40GB",
            "A100 PCIe 40GB",
        ),
        peaks=AMPERE_100,
        bytes_per_s=1555 * GIGA,
        memory_bytes=40 * GIB,
        document=A100_DOCUMENT,
        read_at=A100_READ_AT,
        read_on=READ_ON,
    ),
    Datasheet(
        name="A100 80GB SXM",
        aliases=("NVIDIA A100-SXM4-80GB", "A100 80GB SXM", "A100 SXM 80GB", "A100 80GB", "A100"),
        peaks=AMPERE_100,
        bytes_per_s=2039 * GIGA,
        memory_bytes=80 * GIB,
        document=A100_DOCUMENT,
        read_at=A100_READ_AT,
        read_on=READ_ON,
    ),
    Datasheet(
        name="A100 80GB PCIe",
        aliases=("NVIDIA A100 80GB PCIe", "A100 80GB PCIe", "A100 PCIe 80GB"),
        peaks=AMPERE_100,
        bytes_per_s=1935 * GIGA,
        memory_bytes=80 * GIB,
        document=A100_DOCUMENT,
        read_at=A100_READ_AT,
        read_on=READ_ON,
    ),
    Datasheet(
        name="L40S",
        aliases=("NVIDIA L40S", "L40S"),
        peaks=_peaks(bfloat16=362.05, float16=362.05, tfloat32=183, float32=91.6),
        bytes_per_s=864 * GIGA,
        memory_bytes=48 * GIB,
        document="NVIDIA L40S data sheet",
        read_at="mullet.se/product.html?product_id=355414",
        read_on=READ_ON,
    ),
    Datasheet(
        name="L4",
        aliases=("NVIDIA L4", "L4"),
        peaks=_peaks(bfloat16=121, float16=121, tfloat32=60, float32=30.3),
        bytes_per_s=300 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA L4 Tensor Core GPU data sheet",
        read_at="store.sourcecode.com/en-us/bg-bucket-compare/125/9820",
        read_on=READ_ON,
        note="The sheet prints 242 and 120 with sparsity; half of each stands here.",
    ),
    Datasheet(
        name="A10G",
        aliases=("NVIDIA A10G", "A10G"),
        peaks=_peaks(bfloat16=70, float16=70, tfloat32=35, float32=35),
        bytes_per_s=600 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA A10G data sheet for AWS G5",
        read_at="baseten.co/blog/nvidia-a10-vs-a10g-for-ml-model-inference (memory and bandwidth)",
        read_on=READ_ON,
        is_confirmed=False,
        note="Bandwidth and memory were read; the matrix rates could not be read in any copy.",
    ),
    Datasheet(
        name="T4",
        aliases=("Tesla T4", "NVIDIA T4", "T4"),
        peaks=_peaks(float16=65, float32=8.1),
        bytes_per_s=320 * GIGA,
        memory_bytes=16 * GIB,
        document="NVIDIA T4 Tensor Core GPU data sheet",
        read_at="sysrqmts.com/gpus/compare/nvidia-a100-sxm4-40-gb-vs-nvidia-tesla-t4",
        read_on=READ_ON,
        note="No bfloat16 in its tensor cores.",
    ),
)

NVIDIA_GEFORCE = (
    Datasheet(
        name="RTX 3090",
        aliases=("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "RTX 3090"),
        peaks=_peaks(bfloat16=71, float16=71, tfloat32=35.6, float32=35.6),
        bytes_per_s=936 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA Ampere GA102 GPU architecture white paper, appendix A",
        read_at="gigagpu.com/?p=34440 (bandwidth, memory, float32)",
        read_on=READ_ON,
        is_confirmed=False,
        note="The matrix rates with float32 accumulation could not be read in any copy.",
    ),
    Datasheet(
        name="RTX 4090",
        aliases=("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "RTX 4090"),
        peaks=_peaks(bfloat16=165.2, float16=165.2, tfloat32=82.6, float32=82.6),
        bytes_per_s=1008 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA Ada GPU architecture white paper, appendix A",
        read_at="waredb.com/processor/nvidia-geforce-rtx-4090 and hmc-tech.com",
        read_on=READ_ON,
    ),
    Datasheet(
        name="RTX 5090",
        aliases=("NVIDIA GeForce RTX 5090", "GeForce RTX 5090", "RTX 5090"),
        peaks=_peaks(bfloat16=209.5, float16=209.5, tfloat32=104.8, float32=104.8),
        bytes_per_s=1792 * GIGA,
        memory_bytes=32 * GIB,
        document="NVIDIA RTX Blackwell GPU architecture white paper, appendix A",
        read_at="spheron.network/blog/nvidia-rtx-5090-specs and fpsbench.com",
        read_on=READ_ON,
        note="838 with sparsity and float16 accumulation was read; a quarter of it stands here.",
    ),
)

AMD = (
    Datasheet(
        name="MI300X",
        aliases=("AMD Instinct MI300X", "AMD Instinct MI300X OAM", "MI300X", "Instinct MI300X"),
        peaks=_peaks(bfloat16=1307.4, float16=1307.4, tfloat32=653.7, float32=163.4),
        bytes_per_s=5.3 * TERA,
        memory_bytes=192 * GIB,
        document="AMD Instinct MI300X accelerator data sheet",
        read_at="github.com/alpharomercoma/MI300X-vs-H200, REPORT.md (bfloat16, bandwidth, memory)",
        read_on=READ_ON,
        note="TF32 is half and float32 an eighth of the bfloat16 rate in the CDNA 3 matrix cores.",
    ),
)


PARTS = (*NVIDIA_DATACENTRE, *NVIDIA_GEFORCE, *AMD)
