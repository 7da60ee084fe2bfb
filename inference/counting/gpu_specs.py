"""NVIDIA's data-centre parts as their data sheets state them. Figures only, no torch.

Every peak is the dense rate of matrix products with float32 accumulation: where a vendor prints
the rate with structured sparsity, half of it stands here. ``float32`` is the rate without TF32, as
torch computes by default; ``tfloat32`` is the other. Vendors' GB of memory are GiB, as the drivers
report them. ``read_at`` is where the figures were read: vendors move their documents.
"""

from __future__ import annotations

from datetime import date

from inference.records.rooflines import Datasheet

READ_ON = date(2026, 11, 29)
READ_AGAIN = date(2026, 12, 1)
GIB = 1 << 30
TERA = 1e12
GIGA = 1e9


def peaks_of(**tflops: float) -> tuple[tuple[str, float], ...]:
    """Return pairs of dtype and FLOP/s from TFLOP/s by dtype."""
    return tuple((dtype, rate * TERA) for dtype, rate in tflops.items())


# NVIDIA's own repositories, which state what the data sheets they name do.
TENSORRT_LLM = "github.com/NVIDIA/TensorRT-LLM, tensorrt_llm/auto_parallel/cluster_info.py"
AICONFIGURATOR = "github.com/ai-dynamo/aiconfigurator, systems/*.yaml (NVIDIA)"
HOPPER_SXM = peaks_of(bfloat16=989.4, float16=989.4, tfloat32=494.7, float32=66.9)
AMPERE_100 = peaks_of(bfloat16=312, float16=312, tfloat32=156, float32=19.5)
A100_DOCUMENT = "NVIDIA A100 Tensor Core GPU data sheet"
A100_READ_AT = (
    f"{TENSORRT_LLM}; {AICONFIGURATOR}; glennklockwood.com/garden/processors/A100 (float32)"
)
HALF_TF32 = "TF32 is taken as half the float16 rate, as on the vendor's other parts."
HOPPER_READ_AT = f"{TENSORRT_LLM}; {AICONFIGURATOR}; glennklockwood.com/garden/peak-FLOPS (float32)"

NVIDIA_DATACENTRE = (
    Datasheet(
        name="H200",
        aliases=("NVIDIA H200", "H200", "H200 SXM", "H200 141GB"),
        peaks=HOPPER_SXM,
        bytes_per_s=4.8 * TERA,
        memory_bytes=141 * GIB,
        document="NVIDIA H200 Tensor Core GPU data sheet",
        read_at=HOPPER_READ_AT,
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
        peaks=peaks_of(bfloat16=756, float16=756, tfloat32=378, float32=51),
        bytes_per_s=2.0 * TERA,
        memory_bytes=80 * GIB,
        document="NVIDIA H100 Tensor Core GPU data sheet",
        read_at=HOPPER_READ_AT,
        read_on=READ_ON,
        note=HALF_TF32,
    ),
    Datasheet(
        name="B200",
        aliases=("NVIDIA B200", "B200", "B200 SXM", "B200 180GB"),
        peaks=peaks_of(bfloat16=2250, float16=2250, tfloat32=1100, float32=80),
        bytes_per_s=8.0 * TERA,
        memory_bytes=180 * GIB,
        document="NVIDIA Blackwell architecture brief, HGX B200",
        read_at=f"{AICONFIGURATOR}; glennklockwood.com/garden/processors/B200 (float32, TF32)",
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
        peaks=peaks_of(bfloat16=362.05, float16=362.05, tfloat32=183, float32=91.6),
        bytes_per_s=864 * GIGA,
        memory_bytes=48 * GIB,
        document="NVIDIA L40S data sheet",
        read_at=f"{AICONFIGURATOR}; {TENSORRT_LLM} (TF32)",
        read_on=READ_ON,
    ),
    Datasheet(
        name="L4",
        aliases=("NVIDIA L4", "L4"),
        peaks=peaks_of(bfloat16=121, float16=121, tfloat32=60, float32=30.3),
        bytes_per_s=300 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA L4 Tensor Core GPU data sheet",
        read_at=f"{AICONFIGURATOR}; {TENSORRT_LLM} (TF32)",
        read_on=READ_ON,
        note="The sheet prints 242 and 120 with sparsity; half of each stands here.",
    ),
    Datasheet(
        name="A10G",
        aliases=("NVIDIA A10G", "A10G"),
        peaks=peaks_of(bfloat16=70, float16=70, tfloat32=35, float32=35),
        bytes_per_s=600 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA A10G data sheet for AWS G5",
        read_at=f"{TENSORRT_LLM}; float32 by the sheet's quotations",
        read_on=READ_AGAIN,
    ),
    Datasheet(
        name="T4",
        aliases=("Tesla T4", "NVIDIA T4", "T4"),
        peaks=peaks_of(float16=65, float32=8.1),
        bytes_per_s=320 * GIGA,
        memory_bytes=16 * GIB,
        document="NVIDIA T4 Tensor Core GPU data sheet",
        read_at="sysrqmts.com/gpus/compare/nvidia-a100-sxm4-40-gb-vs-nvidia-tesla-t4",
        read_on=READ_ON,
        note="No bfloat16 in its tensor cores.",
    ),
    Datasheet(
        name="H200 NVL",
        aliases=("NVIDIA H200 NVL", "H200 NVL"),
        peaks=peaks_of(bfloat16=835.5, float16=835.5, tfloat32=417.5, float32=60),
        bytes_per_s=4.8 * TERA,
        memory_bytes=141 * GIB,
        document="NVIDIA H200 Tensor Core GPU data sheet",
        read_at=f"{TENSORRT_LLM} (1,671 with sparsity; half of it stands here)",
        read_on=READ_AGAIN,
        note=HALF_TF32,
    ),
    Datasheet(
        name="H100 NVL",
        aliases=("NVIDIA H100 NVL", "H100 NVL", "H100 NVL 94GB"),
        peaks=peaks_of(bfloat16=835.5, float16=835.5, tfloat32=417.5, float32=60),
        bytes_per_s=3.9 * TERA,
        memory_bytes=94 * GIB,
        document="NVIDIA H100 Tensor Core GPU data sheet, 2024",
        read_at=f"{TENSORRT_LLM} (the rates, of H200 NVL); the sheet by quotations",
        read_on=READ_AGAIN,
        note="The rates are those of H200 NVL, as in the sheet. " + HALF_TF32,
    ),
    Datasheet(
        name="H20",
        aliases=("NVIDIA H20", "H20", "H20 96GB"),
        peaks=peaks_of(bfloat16=147, float16=147, tfloat32=74),
        bytes_per_s=4.0 * TERA,
        memory_bytes=96 * GIB,
        document="NVIDIA, TensorRT-LLM, cluster_info.py",
        read_at=TENSORRT_LLM,
        read_on=READ_AGAIN,
        note="NVIDIA prints no data sheet of it. Others quote 148.",
    ),
    Datasheet(
        name="B300",
        aliases=("NVIDIA B300 SXM6 AC", "NVIDIA B300", "B300", "B300 SXM"),
        peaks=peaks_of(bfloat16=2250, float16=2250),
        bytes_per_s=7.75 * TERA,
        memory_bytes=275_040 << 20,
        document="NVIDIA Blackwell Ultra data sheet, HGX B300",
        read_at=AICONFIGURATOR,
        read_on=READ_AGAIN,
        note="Memory as the driver reports it.",
    ),
    Datasheet(
        name="GB200, one GPU",
        aliases=("GB200, one GPU", "NVIDIA GB200", "GB200"),
        peaks=peaks_of(bfloat16=2500, float16=2500),
        bytes_per_s=8.0 * TERA,
        memory_bytes=189_471 << 20,
        document="NVIDIA Blackwell data sheet, GB200 NVL72",
        read_at=AICONFIGURATOR,
        read_on=READ_AGAIN,
        note="Of the superchip's two GPUs one. Memory as the driver reports it.",
    ),
    Datasheet(
        name="A30",
        aliases=("NVIDIA A30", "A30"),
        peaks=peaks_of(bfloat16=165, float16=165, tfloat32=82, float32=10.3),
        bytes_per_s=933 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA A30 Tensor Core GPU data sheet",
        read_at=f"{TENSORRT_LLM}; {AICONFIGURATOR}",
        read_on=READ_AGAIN,
    ),
    Datasheet(
        name="A10",
        aliases=("NVIDIA A10", "A10"),
        peaks=peaks_of(bfloat16=125, float16=125, tfloat32=62.5, float32=31.2),
        bytes_per_s=600 * GIGA,
        memory_bytes=24 * GIB,
        document="NVIDIA A10 Tensor Core GPU data sheet",
        read_at=f"{TENSORRT_LLM}; github.com/winston-zhang-orz/gpu-specs (float32)",
        read_on=READ_AGAIN,
    ),
    Datasheet(
        name="V100 SXM2 32GB",
        aliases=("Tesla V100-SXM2-32GB", "V100 SXM2 32GB", "V100 SXM2", "V100 32GB", "V100"),
        peaks=peaks_of(float16=125, float32=15.7),
        bytes_per_s=900 * GIGA,
        memory_bytes=32 * GIB,
        document="NVIDIA V100 Tensor Core GPU data sheet",
        read_at="NVIDIA, Ampere Architecture In-Depth, table of P100, V100 and A100",
        read_on=READ_AGAIN,
        note="No bfloat16 in its tensor cores.",
    ),
    Datasheet(
        name="V100 SXM2 16GB",
        aliases=("Tesla V100-SXM2-16GB", "V100 SXM2 16GB", "V100 16GB"),
        peaks=peaks_of(float16=125, float32=15.7),
        bytes_per_s=900 * GIGA,
        memory_bytes=16 * GIB,
        document="NVIDIA V100 Tensor Core GPU data sheet",
        read_at="NVIDIA, Ampere Architecture In-Depth, table of P100, V100 and A100",
        read_on=READ_AGAIN,
        note="No bfloat16 in its tensor cores.",
    ),
)
