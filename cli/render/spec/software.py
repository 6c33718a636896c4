"""Software sets, and what `adopt` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....lifecycle.cluster.adopt import AdoptedFiles
from ....schemas.stack import Lock, Resolved, SoftwareRow, TestedSet
from ...console import Console, pad, printable, width
from ..diagnostics import diagnostics_text

_ORIGINS = {
    "requested": "as the spec says",
    "lock": "from the set",
    "companion": "goes with the rest",
    "cluster": "one for the cluster",
    "distribution": "the distribution's package",
}
_INSTALLED = {"built": "built by the cluster", "distribution": "the distribution's package"}
_NOT_CARRIED = {
    "unfinished": "not known here, and the spec waits for it",
    "guess": "written, though not in the source",
    "lost": "not carried over",
    "replaced": "done by gcluster in its own way",
}
_MARK = "*"
"""Behind a version that the set's evidence doesn't say together with the others."""


def pools_text(pools: Mapping[str, Resolved], console: Console) -> str:
    """Return what each pool gets; pools that get the same are together."""
    alike: dict[Resolved, list[str]] = {}
    for name, resolved in pools.items():
        alike.setdefault(resolved, []).append(name)
    blocks = ["\n".join(_pool(names, resolved, console)) for resolved, names in alike.items()]
    marked = any(not row.verified for resolved in alike for row in resolved.rows)
    if marked:
        blocks.append(console.paint("faint", f"{_MARK} not tested together with the rest"))
    return console.plain("\n\n".join(blocks))


def _pool(names: list[str], resolved: Resolved, console: Console) -> Iterator[str]:
    title = f"pool {names[0]}" if len(names) == 1 else f"pools {', '.join(names)}"
    yield console.paint("strong", printable(title))
    entries = [("set", f"{resolved.set or 'none'}: {resolved.reason}")]
    if resolved.evidence is not None:
        evidence = resolved.evidence
        entries.append(("tested", f"{evidence.who}, {evidence.date}: {evidence.what}"))
        entries.append(("source", evidence.source))
    entries.append(("system", resolved.distribution or "what the hosts have"))
    for name, text in entries:
        yield f"  {pad(name, 8)}{text}"
    image = next((row for row in resolved.rows if row.by == resolved.image), None)
    if image is not None:
        yield f"  {pad('image', 8)}{image.by} ({image.source}, {image.date})"
    rows = [_row(row) for row in resolved.rows]
    rows += [(piece.name, "missing", "nothing brings it: GC622") for piece in resolved.missing]
    columns = [max((width(row[n]) for row in rows), default=0) for n in range(2)]
    for name, version, origin in rows:
        yield f"    {pad(name, columns[0])}  {pad(version, columns[1])}  {origin}".rstrip()
    for package in resolved.packages:
        yield f"    {package}  with the fabric manager, whatever version fits the driver"
    for difference in resolved.differences:
        text = f"{difference.name} {difference.requested}: the set has {difference.tested}"
        yield f"  {console.paint('warning', 'differs')} {text}"


def _row(row: SoftwareRow) -> tuple[str, str, str]:
    """Return a component, its version, and its origin: a role, the image, or none and why."""
    if row.outcome == "not wanted":
        return row.name, "-", f"not wanted: {row.why} ({row.by})"
    if row.outcome == "image":
        return row.name, row.version or "any", f"comes with {row.by}"
    version = row.version or "whatever is there"
    marked = version if row.verified else f"{version}{_MARK}"
    why = _ORIGINS[row.origin] if row.origin else ""
    install = _INSTALLED[row.install] if row.install and row.origin != "distribution" else ""
    notes = "; ".join(filter(None, (f"role {row.by}", why, install, row.source)))
    return row.name, marked, notes


def sets_text(lock: Lock, console: Console) -> str:
    """Return the tested sets, newest first."""
    newest = sorted(lock.sets, key=lambda s: (s.evidence.date, s.name), reverse=True)
    return console.plain("\n\n".join("\n".join(_set(each, lock, console)) for each in newest))


def _set(tested: TestedSet, lock: Lock, console: Console) -> Iterator[str]:
    nodes = " ".join(tested.gpus or (f"GPUs of {c}" for c in tested.capabilities)) or "no GPU"
    where = ", ".join((*tested.distributions, *tested.architectures))
    yield f"{console.paint('strong', tested.name)}   {nodes}, {where}"
    versions = (
        f"{component.name} {tested.versions[component.key]}"
        f"{_MARK if component.key in tested.unverified else ''}"
        for component in lock.components
        if component.key in tested.versions
    )
    yield from _wrapped(versions, console)
    evidence = tested.evidence
    faint = f"{evidence.who}, {evidence.date}: {evidence.what}; {evidence.source}"
    yield f"  {console.paint('faint', faint)}"


def _wrapped(words: Iterator[str], console: Console) -> Iterator[str]:
    """Yield the words in lines that fit the console."""
    line = ""
    for word in words:
        if line and width(line) + width(word) + len("  , ,") > console.width:
            yield f"  {line},"
            line = word
        else:
            line = f"{line}, {word}" if line else word
    yield f"  {line}"


def adopted_text(written: AdoptedFiles, console: Console) -> str:
    """Return the files, what is not in them, and what `validate` says of the spec."""
    lines = [f"wrote {path}" for path in (written.spec, written.machines) if path]
    for kind, title in _NOT_CARRIED.items():
        of_kind = [each for each in written.not_carried if each.kind == kind]
        if of_kind:
            lines += ["", console.paint("warning", f"{title}:")]
        lines += [
            f"  {printable(each.where)}   {console.paint('faint', printable(each.why))}"
            for each in of_kind
        ]
    count = written.settings
    lines += ["", f"{count.carried} of {count.total} settings are carried over"]
    if written.findings:
        lines += ["", diagnostics_text(written.findings, console)]
    lines += ["", f"next: gcluster validate {written.spec}\n      gcluster plan {written.spec}"]
    return console.plain("\n".join(lines))
