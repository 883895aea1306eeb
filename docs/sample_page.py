"""Copy a report as a sample page: without links to the files that lie beside it, and without paths of its machine.

python docs/sample_page.py results/report.html docs/samples/cpu_default.html
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LARGEST_BYTES = 1_000_000


def main(report: str, sample: str) -> None:
    html = Path(report).read_text(encoding="utf-8")
    html = re.sub(r'<a href="[\w./]+" download>(.*?)</a>', r"\1", html)
    folder = str(Path(report).resolve().parents[1])
    html = html.replace(f"{folder}/", "").replace(folder, "crossover")
    html = re.sub(r"(?:\.\.)?/[\w./-]*/(config/studies/)", r"\1", html)
    html = re.sub(r", in <code>/[^<]*</code>", "", html)
    html = re.sub(r"-s /\S*/Snakefile", "-s CHECKOUT/Snakefile", html)
    if (size := len(html.encode())) > LARGEST_BYTES:
        sys.exit(f"error: {report}: {size:,} bytes; allowed: {LARGEST_BYTES:,}")
    Path(sample).write_text(html, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
