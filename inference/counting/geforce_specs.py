"""NVIDIA's GeForce cards as its architecture white papers state them. Figures only, no torch.

Their tensor cores do float32 accumulation at half the rate of float16 accumulation, which is twice
the rate of the other cores without TF32; both rates follow from cores and boost clock, so the
figures of a white paper can be checked against each other. A card that no white paper has a table
of is left out.
"""

from __future__ import annotations

from inference.counting.gpu_specs import GIB, GIGA, READ_AGAIN, READ_ON, peaks_of
from inference.records.rooflines import Datasheet

AMPERE = "NVIDIA Ampere GA102 GPU architecture white paper, appendix A"
ADA = "NVIDIA Ada GPU architecture white paper, appendix A"
BLACKWELL = "NVIDIA RTX Blackwell GPU architecture white paper, appendix A"
BY_CLOCKS = "the white paper; checked by cores x 2 x boost clock and by bus width x data rate"
TWICE = "Matrix products take half the time of float32 without TF32."

NVIDIA_GEFORCE = (
    Datasheet(
        name="RTX 5090",
        aliases=("NVIDIA GeForce RTX 5090", "GeForce RTX 5090", "RTX 5090"),
        peaks=peaks_of(bfloat16=209.5, float16=209.5, tfloat32=104.8, float32=104.8),
        bytes_per_s=1792 * GIGA,
        memory_bytes=32 * GIB,
        document=BLACKWELL,
        read_at="spheron.network/blog/nvidia-rtx-5090-specs and fpsbench.com",
        read_on=READ_ON,
        note="838 with sparsity and float16 accumulation was read; a quarter of it stands here.",
    ),
    Datasheet(
        name="RTX 5080",
        aliases=("NVIDIA GeForce RTX 5080", "GeForce RTX 5080", "RTX 5080"),
        peaks=peaks_of(bfloat16=112.6, float16=112.6, tfloat32=56.3, float32=56.3),
        bytes_per_s=960 * GIGA,
        memory_bytes=16 * GIB,
        document=BLACKWELL,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 5070 Ti",
        aliases=("NVIDIA GeForce RTX 5070 Ti", "GeForce RTX 5070 Ti", "RTX 5070 Ti"),
        peaks=peaks_of(bfloat16=87.9, float16=87.9, tfloat32=43.9, float32=43.9),
        bytes_per_s=896 * GIGA,
        memory_bytes=16 * GIB,
        document=BLACKWELL,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 5070",
        aliases=("NVIDIA GeForce RTX 5070", "GeForce RTX 5070", "RTX 5070"),
        peaks=peaks_of(bfloat16=61.7, float16=61.7, tfloat32=30.9, float32=30.9),
        bytes_per_s=672 * GIGA,
        memory_bytes=12 * GIB,
        document=BLACKWELL,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 4090",
        aliases=("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "RTX 4090"),
        peaks=peaks_of(bfloat16=165.2, float16=165.2, tfloat32=82.6, float32=82.6),
        bytes_per_s=1008 * GIGA,
        memory_bytes=24 * GIB,
        document=ADA,
        read_at="waredb.com/processor/nvidia-geforce-rtx-4090 and hmc-tech.com",
        read_on=READ_ON,
    ),
    Datasheet(
        name="RTX 4080",
        aliases=("NVIDIA GeForce RTX 4080", "GeForce RTX 4080", "RTX 4080"),
        peaks=peaks_of(bfloat16=97.5, float16=97.5, tfloat32=48.7, float32=48.7),
        bytes_per_s=716.8 * GIGA,
        memory_bytes=16 * GIB,
        document=ADA,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 4070 Ti",
        aliases=("NVIDIA GeForce RTX 4070 Ti", "GeForce RTX 4070 Ti", "RTX 4070 Ti"),
        peaks=peaks_of(bfloat16=80.2, float16=80.2, tfloat32=40.1, float32=40.1),
        bytes_per_s=504 * GIGA,
        memory_bytes=12 * GIB,
        document=ADA,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 3090",
        aliases=("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "RTX 3090"),
        peaks=peaks_of(bfloat16=71, float16=71, tfloat32=35.6, float32=35.6),
        bytes_per_s=936 * GIGA,
        memory_bytes=24 * GIB,
        document=AMPERE,
        read_at="quotations of the white paper in public repositories",
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 3080",
        aliases=("NVIDIA GeForce RTX 3080", "GeForce RTX 3080", "RTX 3080"),
        peaks=peaks_of(bfloat16=59.5, float16=59.5, tfloat32=29.8, float32=29.8),
        bytes_per_s=760 * GIGA,
        memory_bytes=10 * GIB,
        document=AMPERE,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
    Datasheet(
        name="RTX 3070",
        aliases=("NVIDIA GeForce RTX 3070", "GeForce RTX 3070", "RTX 3070"),
        peaks=peaks_of(bfloat16=40.6, float16=40.6, tfloat32=20.3, float32=20.3),
        bytes_per_s=448 * GIGA,
        memory_bytes=8 * GIB,
        document=AMPERE,
        read_at=BY_CLOCKS,
        read_on=READ_AGAIN,
        note=TWICE,
    ),
)
