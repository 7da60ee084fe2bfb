"""``python -m visuals.panel.player_file``: a run file's first run to the page that plays it.

The run comes on standard input and the page goes to standard output; what the page does not show
is said on standard error. The command line starts this as a process of its own.
"""

from __future__ import annotations

import sys

from inference.runs.run_file import read_bytes
from visuals.panel.player_page import player_page


def main() -> int:
    """Write the page."""
    page = player_page(read_bytes(sys.stdin.buffer.read())[0])
    sys.stdout.buffer.write(page.content)
    sys.stderr.write("".join(f"{remark}\n" for remark in page.remarks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
