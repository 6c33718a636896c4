"""Takes away what launchers, terminals and log collectors put around a program's own lines."""

from __future__ import annotations

import re

_TERMINAL = re.compile(r"\r|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_PREFIX = re.compile(
    r"""\[\d+,\d+\]<std(?:out|err)>:\ ?     # mpirun --tag-output
    |   \s*\d+:\ (?=.)                      # srun --label
    |   \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)\s  # kubectl logs --timestamps
    |   \(\w+,\ rank=\d+,\ pid=\d+\)\       # torchrun and its kin
    |   \[\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\]\ (?=\S+:\d+:\d+\ )  # NCCL's own clock
    """,
    re.VERBOSE,
)


def strip(line: str) -> str:
    """Return the line as its program wrote it, without its newline."""
    text = _TERMINAL.sub("", line.rstrip("\n"))
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    return text.rstrip()
