"""Software as text: the tested sets, and per pool the versions, where they come from and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...schemas.stack import Lock, Resolved, ResolvedComponent, TestedSet
from .cells import pad, printable, width
from .surface import Surface

_ORIGINS = {
    "asked": "as the spec says",
    "lock": "from the set",
    "cluster": "one for the cluster",
    "distribution": "the distribution's package",
}
_MARK = "*"
"""Behind a version that the set's evidence doesn't say together with the others."""


def pools_text(pools: Mapping[str, Resolved], surface: Surface) -> str:
    """Return what each pool gets; pools that get the same stand together."""
    alike: dict[Resolved, list[str]] = {}
    for name, resolved in pools.items():
        alike.setdefault(resolved, []).append(name)
    blocks = ["\n".join(_pool(names, resolved, surface)) for resolved, names in alike.items()]
    marked = any(not c.verified for resolved in alike for c in resolved.components)
    if marked:
        blocks.append(surface.paint("faint", f"{_MARK} not tested together with the rest"))
    return surface.plain("\n\n".join(blocks))


def _pool(names: list[str], resolved: Resolved, surface: Surface) -> Iterator[str]:
    title = f"pool {names[0]}" if len(names) == 1 else f"pools {', '.join(names)}"
    yield surface.paint("strong", printable(title))
    told = [("set", f"{resolved.set or 'none'}: {resolved.reason}")]
    if resolved.evidence is not None:
        evidence = resolved.evidence
        told.append(("tested", f"{evidence.who}, {evidence.date}: {evidence.what}"))
        told.append(("source", evidence.source))
    told.append(("system", resolved.distribution or "what the hosts have"))
    for name, text in told:
        yield f"  {pad(name, 8)}{text}"
    rows = [_row(component) for component in resolved.components]
    columns = [max((width(row[n]) for row in rows), default=0) for n in range(2)]
    for name, version, origin in rows:
        yield f"    {pad(name, columns[0])}  {pad(version, columns[1])}  {origin}".rstrip()
    for package in resolved.packages:
        yield f"    {package}  beside the fabric manager, whatever version fits the driver"
    for difference in resolved.differences:
        text = f"{difference.name} {difference.asked}: the set has {difference.tested}"
        yield f"  {surface.paint('warning', 'differs')} {text}"


def _row(component: ResolvedComponent) -> tuple[str, str, str]:
    version = component.version if component.verified else f"{component.version}{_MARK}"
    origin = _ORIGINS[component.origin]
    return component.name, version, f"{origin}; {component.source}" if component.source else origin


def sets_text(lock: Lock, surface: Surface) -> str:
    """Return the tested sets, newest first."""
    newest = sorted(lock.sets, key=lambda s: (s.evidence.date, s.name), reverse=True)
    return surface.plain("\n\n".join("\n".join(_set(each, lock, surface)) for each in newest))


def _set(tested: TestedSet, lock: Lock, surface: Surface) -> Iterator[str]:
    nodes = " ".join(tested.gpus) or "no GPU"
    where = ", ".join((*tested.distributions, *tested.architectures))
    yield f"{surface.paint('strong', tested.name)}   {nodes}, {where}"
    versions = (
        f"{component.name} {tested.versions[component.key]}"
        f"{_MARK if component.key in tested.unverified else ''}"
        for component in lock.components
        if component.key in tested.versions
    )
    yield from _wrapped(versions, surface)
    evidence = tested.evidence
    faint = f"{evidence.who}, {evidence.date}: {evidence.what}; {evidence.source}"
    yield f"  {surface.paint('faint', faint)}"


def _wrapped(words: Iterator[str], surface: Surface) -> Iterator[str]:
    """Yield the words in lines that fit the surface."""
    line = ""
    for word in words:
        if line and width(line) + width(word) + len("  , ,") > surface.width:
            yield f"  {line},"
            line = word
        else:
            line = f"{line}, {word}" if line else word
    yield f"  {line}"
