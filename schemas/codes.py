"""Every diagnostic code of schemas, explained: a sentence for tables and a paragraph to read."""

from __future__ import annotations

import msgspec


class CodeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a code means."""

    code: str
    summary: str
    explanation: str


_STRUCTURE: dict[str, tuple[str, str]] = {
    "GC001": (
        "A key that the spec does not have.",
        (
            "Keys are closed: an unknown one is a mistake, never ignored. The message names the "
            "key that was probably meant, or the keys that are known at that place."
        ),
    ),
    "GC002": (
        "A key that must be there is missing.",
        "The message names the key and the place; `gcluster schema` lists all keys.",
    ),
    "GC003": (
        "A value of the wrong kind.",
        (
            "A number where text is expected, a list where a mapping is expected, and so on. Plain "
            "scalars are read by YAML 1.2: only true and false are booleans, yes and no are text."
        ),
    ),
    "GC004": (
        "A value that is not one of the choices.",
        "The message lists the choices and the one that was probably meant.",
    ),
    "GC005": (
        "A number out of range, or something empty that must not be.",
        "The message names the limit.",
    ),
    "GC006": (
        "Text of the wrong form.",
        (
            "Names are lower-case letters, digits and hyphens; quantities carry their unit (30m, "
            "400 GB/s); the message gives an example of the right form."
        ),
    ),
    "GC007": (
        "A provider or type that does not exist, or none at all.",
        (
            "A site needs `provider`, the scheduler `type`: that key decides which other keys are "
            "allowed beside it, so nothing else of the entry is looked at until it is right."
        ),
    ),
    "GC010": (
        "The text is not valid YAML.",
        (
            "Reading stops at the place shown. The mistake is there or shortly before it: an open "
            "bracket or quote, a missing space after a colon, or lines that do not line up."
        ),
    ),
    "GC011": ("A tab in the indentation.", "YAML indents by spaces only. Replace each tab."),
    "GC012": (
        "A key is given twice in one mapping.",
        "Many YAML readers silently keep the last one; here it is an error that names the first.",
    ),
    "GC013": (
        "A language tag.",
        (
            "Tags such as !!python/object ask a reader to make objects. A spec is plain data, so "
            "only the tags of YAML's own core (!!str, !!int ...) are read."
        ),
    ),
    "GC014": (
        "An alias that is unknown, refers to itself, or stands for too much.",
        (
            "Aliases (*name) repeat what an anchor (&name) marks. Together they may stand for "
            "100,000 values, which stops a small file from growing without bounds."
        ),
    ),
    "GC015": ("Several documents in one file.", 'One file holds one cluster; remove the "---".'),
    "GC016": ("An empty file.", "There is nothing but comments or white space in it."),
    "GC017": (
        "A file that is not UTF-8 text.",
        "It holds bytes or characters that no text has, or it is in UTF-16. Save it as UTF-8.",
    ),
    "GC018": ("The root is not a mapping.", "A spec is key: value from its first line on."),
    "GC019": ("Nested too deep.", "64 levels is the limit; a spec needs about eight."),
    "GC020": (
        "A file above the limits.",
        "A spec has at most 8 MB and 1,000,000 values. Name hosts by ranges: gpu[0001-4096].",
    ),
    "GC021": (
        "A file that can't be read.",
        "It does not exist, is a directory, or the permissions forbid it.",
    ),
    "GC022": (
        "A key that is not text.",
        (
            "Keys are words. A number or true as a key needs quotes; merge keys (<<) are not part "
            "of YAML 1.2."
        ),
    ),
    "GC023": (
        "A number that can't be kept exactly.",
        "Whole numbers have 64 bits; infinities and .nan are refused.",
    ),
    "GC024": (
        "Too many structural errors to list.",
        "After 1,000 errors the rest is left out and the meaning is not checked.",
    ),
}


def explanations() -> dict[str, CodeExplanation]:
    """Return every code that loading and checking a spec can give, in order."""
    from gcluster.schemas.checks import CHECKS  # noqa: PLC0415  # keeps the structure codes light

    known = {
        code: CodeExplanation(code=code, summary=summary, explanation=explanation)
        for code, (summary, explanation) in _STRUCTURE.items()
    }
    for code, rule in CHECKS.items():
        known[code] = CodeExplanation(code=code, summary=rule.summary, explanation=rule.explanation)
    return dict(sorted(known.items()))
