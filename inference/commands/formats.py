"""``python -m inference formats``: what number formats of the weights buy, and what they cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from inference.commands import Subparsers, add_model_argument, write_stdout
from inference.commands.progress import ProgressLine
from inference.commands.run import reading_aids
from inference.counting.what_if import check_positive
from inference.records.fidelity import FormatComparison, FormatResult
from inference.records.finite import finite

TEXT_FILE = Path(__file__).resolve().parents[2] / "assets" / "long_prompt.txt"
USUAL = "float32,bfloat16,float16,q8_0,q4_1"
COLUMNS = ("format", "weights/step", "TTFT ms", "TPOT ms", "same tokens", "KL nats", "same choice")


def add_parser(subparsers: Subparsers) -> None:
    """Add the ``formats`` command."""
    parser = subparsers.add_parser(
        "formats", help="compare number formats of a model: bytes, speed, and how answers agree"
    )
    add_model_argument(parser)
    parser.add_argument("--prompt", required=True, help="what every format answers")
    parser.add_argument(
        "--formats",
        default=USUAL,
        help=f"parted by commas, the one that all are held to first; {USUAL}",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps")
    parser.add_argument("--max-new-tokens", type=int, default=64, help="of each answer")
    parser.add_argument(
        "--text-tokens", type=int, default=256, help="of the shipped text behind the perplexity"
    )
    parser.add_argument("--raw", action="store_true", help="apply no chat template")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Load one format after the other, compare them and print what came of it."""
    check_positive(max_new_tokens=args.max_new_tokens, text_tokens=args.text_tokens)
    from inference.bench.format_fidelity import (  # noqa: PLC0415  torch is slow
        FormatOrder,
        compare_formats,
    )

    order = FormatOrder(
        model=args.model,
        dtypes=tuple(name.strip() for name in args.formats.split(",") if name.strip()),
        prompt=args.prompt,
        text=TEXT_FILE.read_text(encoding="utf-8"),
        device=args.device,
        max_new_tokens=args.max_new_tokens,
        text_tokens=args.text_tokens,
        is_raw=args.raw,
    )
    with ProgressLine() as progress:
        made = compare_formats(order, progress.show)
    write_stdout(f"{formats_json(made) if args.json else formats_table(made)}\n")
    return 0


def formats_json(made: FormatComparison) -> str:
    """Return the comparison as JSON, field for field."""
    from pydantic import TypeAdapter  # noqa: PLC0415  only here

    fields = TypeAdapter(FormatComparison).dump_python(made, mode="json")
    return json.dumps(finite(fields), indent=2, ensure_ascii=False, allow_nan=False)


def formats_table(made: FormatComparison) -> str:
    """Return the comparison for a terminal: one line a format, what the columns are below."""
    first = made.results[0]
    rows = [(*COLUMNS, "perplexity"), *(_cells(result, first) for result in made.results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in pairs)
        for pairs in (list(enumerate(zip(row, widths, strict=True))) for row in rows)
    ]
    aids = [
        f"{result.dtype}: {aid.strip(' ()')}."
        for result in made.results
        if (aid := reading_aids(result.latency))
    ]
    return "\n".join(
        [
            f"{made.model_id} on {made.device}, prompt of {made.prompt_tokens:,} tokens, greedy",
            "",
            *lines,
            "",
            "weights/step: counted, scales included. TTFT and TPOT: measured on one run, after a",
            f"warm-up. Same tokens: those of {first.dtype} until the first other one. KL and same",
            f"choice: of the next token, fed the answer of {first.dtype}. Perplexity: of a shipped",
            f"text of {made.text_tokens:,} tokens.",
            *aids,
        ]
    )


def _cells(result: FormatResult, first: FormatResult) -> tuple[str, ...]:
    most = min(result.output_tokens, first.output_tokens)
    return (
        result.dtype,
        f"{result.weight_bytes / 1e6:.1f} MB",
        _ms(result.latency.ttft_s),
        _ms(result.latency.tpot_s),
        f"{result.same_tokens:,} of {most:,}",
        f"{result.kl_nats:.2e}",
        f"{100 * result.same_choice_ratio:.1f} %",
        f"{result.perplexity:.2f}",
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"
