"""Takes away what launchers, terminals and log collectors put around a program's own lines."""

from __future__ import annotations

import re

_TERMINAL = re.compile(r"\r|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x00")
_PREFIX = re.compile(
    r"""(?:\[[^\[\]\s]*\d+,\d+\]|\[\d+\])<std(?:out|err)>:?\ ?   # mpirun --tag-output
    |   \s*\d+:\ (?=.)                      # srun --label
    |   \[\d+\]\ +(?=\#|\S+:\d+:\d+\ \[)    # Hydra, a bare rank before a line of its own
    |   \[pod/[^\]\s]+\]\ ?                 # kubectl logs --prefix
    |   \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)\s  # kubectl logs --timestamps
    |   std(?:out|err)\ [FP]\               # a container runtime's own log, after its stamp
    |   \(\w+,?\ (?:rank|pid)=[^)]*\)\      # torchrun, Ray and their kin
    |   \[\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\]\ (?=\S+:\d+:\d+\ )  # NCCL's own clock
    |   [\w.-]+:\ (?=\#|\s*\d+\s+\d+\s+[a-z]\w*\s+[a-z]+\s)      # pdsh, clush: the host's name
    """,
    re.VERBOSE,
)
_TAG_INSIDE = re.compile(r"\[[^\[\]\s]*\d+,\d+\]<std(?:out|err)>:?")


def strip(line: str) -> str:
    """Return the line as its program wrote it, without its newline."""
    text = _TERMINAL.sub("", line.rstrip("\n"))
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    if "<std" in text:  # a row that was written in pieces has a label at each
        text = _TAG_INSIDE.sub(" ", text)
    return text.rstrip()
