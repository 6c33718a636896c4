"""What adopting wrote, as text."""

from __future__ import annotations

from ...lifecycle.adopt import AdoptedFiles
from .cells import printable
from .diagnostics import diagnostics_text
from .surface import Surface


def adopted_text(written: AdoptedFiles, surface: Surface) -> str:
    """Return the files, what is not in them, and what `validate` says of the spec."""
    lines = [f"wrote {path}" for path in (written.spec, written.machines) if path]
    if written.not_carried:
        lines += ["", surface.paint("warning", "not carried over:")]
        lines += [
            f"  {printable(each.where)}   {surface.paint('faint', printable(each.why))}"
            for each in written.not_carried
        ]
    if written.findings:
        lines += ["", diagnostics_text(written.findings, surface)]
    lines += ["", f"next: gcluster validate {written.spec}\n      gcluster plan {written.spec}"]
    return surface.plain("\n".join(lines))
