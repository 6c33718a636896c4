"""What launchers and terminals write around a line, and how a line comes out whole again.

Formats: Open MPI 4 (orte/mca/iof/base/iof_base_output.c) writes its tag before every piece that it
read, wherever that begins; PMIx, under Open MPI 5, before whole lines (src/common/pmix_iof.c).
"""

from __future__ import annotations

import re

LONGEST_PIECE = 64 * 1024
"""Characters of an unfinished line that are kept for each rank."""

MOST_SOURCES = 100_000
"""Ranks whose unfinished lines are kept."""

_TERMINAL = re.compile(r"\r|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x00")
_CLOCK = r"[A-Z][a-z]{2}\ [A-Z][a-z]{2}\ [ \d]\d\ \d\d:\d\d:\d\d\ \d{4}"
_TAG = rf"""(?:\[?{_CLOCK}\]?)?          # --timestamp-output, --output timestamp
    (?:\[(?P<rank>[^\[\]\s]*\d)\])?      # [1,0] [prterun-gpu001-17@1,0] [0]
    (?:\[[^\[\]\s]+:\w+\])?              # --output tag-detailed: [host:pid]
    (?<=[\]\d])<std(?:out|err|diag)>:"""
_MPI_TAG = re.compile(_TAG, re.VERBOSE)
_NUMBERS_AND_NAMES = r"\d+\s+\d+\s+[a-z]\w*\s+[a-z]+\s"
_ROW = rf"\s*{_NUMBERS_AND_NAMES}"
_ROW_HEAD = re.compile(_ROW)
_PREFIX = re.compile(
    rf"""{_TAG.replace("?P<rank>", "?:")}\ ?
    |   \s*\d+:\ (?=.)                      # srun --label
    |   \[\d+\]\ +(?=\#|\S+:\d+:\d+\ \[|{_ROW})  # Hydra: a bare rank before a line of its own
    |   \[pod/[^\]\s]+\]\ ?                 # kubectl logs --prefix
    |   [\w.-]+\ +\|\ ?(?=.)                # docker compose logs
    |   \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)\s  # kubectl --timestamps
    |   std(?:out|err)\ [FP]\               # a container runtime's own log, after its stamp
    |   \([^()]*\b(?:rank|pid)=[^()]*\)\      # torchrun, Ray, SkyPilot and their kin
    |   \[\d{{4}}-\d\d-\d\d\ \d\d:\d\d:\d\d(?:[.,]\d+)?\]\ (?=\S+:\d+:\d+\ )  # NCCL's own clock
    |   [\w.-]+:\ (?=\#|{_ROW})             # pdsh, clush: the host's name
    """,
    re.VERBOSE,
)


_OWN = r"""Rank\s|nThread|nccl-tests\s|size\s|error:|gcluster\s|Reducing\s|Collective\s
    |[A-Z][\w ]*:"""
_OTHER_LABEL = re.compile(
    rf"[^#]{{0,200}}?(?:^|[\s:>|\])])(?=\#\s*(?:{_OWN})|{_NUMBERS_AND_NAMES})", re.VERBOSE
)
"""Any label: the prefix of a comment of nccl-tests or of a row. It ends in a blank or a sign, and a
row's start is recognisable: it alone has two numbers before the name of a type."""


def decoded(line: str) -> str:
    """Return a line without what another encoding left in it: PowerShell's `>` writes UTF-16."""
    if "\0" in line:
        line = line.replace("\0", "")
    return line.lstrip("\ufeff\ufffd")


def strip(line: str) -> str:
    """Return the line as its program wrote it, without its newline."""
    text = _TERMINAL.sub("", line.rstrip("\n"))
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    return text.rstrip()


def without_other_label(text: str) -> str:
    """Return a stripped line without a label that isn't known: of journald, stern, PALS, ts ..."""
    match = None if _ROW_HEAD.match(text) else _OTHER_LABEL.match(text)
    return text[match.end() :] if match else text


class LinesByRank:
    """Joins the pieces of each rank's lines that mpirun has tagged and written in between others.

    A piece that no newline ends is continued by the next piece of the same rank, whether that is in
    the same line of the log or in a later one.
    """

    def __init__(self) -> None:
        """Start with nothing unfinished."""
        self._unfinished: dict[str, str] = {}

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Pieces whose lines never ended."""
        return tuple(self._unfinished.values())

    def join(self, line: str) -> str:
        """Return the line of the rank that ends it here; a line without tags as it is."""
        tags = list(_MPI_TAG.finditer(line)) if "<std" in line else []
        if not tags:
            return line
        ends = [*(tag.start() for tag in tags[1:]), len(line)]
        for tag, end in zip(tags, ends, strict=True):
            source, piece = tag["rank"] or "", line[tag.end() : end]
            before = self._unfinished.pop(source, "")
            if not before and piece.startswith(" ") and tag is tags[0]:
                piece = piece[1:]  # PMIx ends its tag with a blank
            whole = (before + piece)[:LONGEST_PIECE]
            if end < len(line) and len(self._unfinished) < MOST_SOURCES:
                self._unfinished[source] = whole
        return whole
