"""Check one or many specs: load what is named, look for clashes, hold policies against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..diagnostics import Diagnostic, Severity, in_file_order
from ..load import Loaded, load, load_text
from ..policies import find_policies, judge, load_policies
from ..spec import ClusterSpec

if TYPE_CHECKING:
    # Reports are never read from JSON, and most specs have no policies to import this for.
    from ..policies.load import LoadedPolicies  # as above

STDIN = "-"
"""The name of standard input."""


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """The specs that were named, loaded."""

    specs: tuple[Loaded, ...]
    notes: tuple[Diagnostic, ...] = ()
    """What is said about other files and folders than the specs."""
    many: bool = False
    """Whether a folder or several files were named."""


class CheckedSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A spec and everything that is said about it."""

    loaded: Loaded
    clashes: tuple[Diagnostic, ...] = ()
    """With other specs, and with the day on which they are checked."""
    breaches: tuple[Diagnostic, ...] = ()
    """Of policies."""
    more: tuple[Diagnostic, ...] = ()
    """Of who knows more than the checks do: providers and the compiler."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All of it, in file order."""
        more = (*self.clashes, *self.breaches, *self.more)
        found = self.loaded.diagnostics
        return tuple(in_file_order([*found, *more])) if more else found

    @property
    def spec(self) -> ClusterSpec | None:
        """The spec, when nothing at all is wrong with it."""
        return None if any(found.is_error for found in self.diagnostics) else self.loaded.spec


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was checked and what was found."""

    specs: tuple[CheckedSpec, ...]
    notes: tuple[Diagnostic, ...] = ()
    """What is said about other files and folders than the specs."""
    policies: tuple[LoadedPolicies, ...] = ()
    """The policies that the specs were held against."""
    many: bool = False
    """Whether a folder or several files were named: then the end says how many there were."""

    def found(self) -> Iterator[Diagnostic]:
        """Yield every finding, file by file."""
        for checked in self.specs:
            yield from checked.diagnostics
        yield from self.general()

    def general(self) -> Iterator[Diagnostic]:
        """Yield the findings that are not about a spec."""
        for policies in self.policies:
            yield from policies.diagnostics
        yield from self.notes

    def texts(self) -> Mapping[str, str]:
        """Return the source of every file that findings point into."""
        sources = {policies.file: policies.text for policies in self.policies}
        return sources | {checked.loaded.file: checked.loaded.text for checked in self.specs}

    @property
    def is_wrong(self) -> bool:
        """Whether a spec has errors of its own, or clashes with another."""
        about_specs = (
            found
            for spec in self.specs
            for found in (*spec.loaded.diagnostics, *spec.clashes, *spec.more)
        )
        return any(found.is_error for found in (*self.notes, *about_specs))

    @property
    def is_refused(self) -> bool:
        """Whether a policy is not kept, or can't be read."""
        breaches = (found for spec in self.specs for found in spec.breaches)
        of_files = (found for policies in self.policies for found in policies.diagnostics)
        return any(found.is_error for found in (*breaches, *of_files))


def gather(names: Sequence[str], read_stdin: Callable[[], bytes]) -> Gathered:
    """Load every spec that is named, each file once: it doesn't clash with itself.

    Args:
        names: paths of files, of folders (all specs below them), or "-" for standard input.
        read_stdin: gives its text.
    """
    loaded: list[Loaded] = []
    notes: list[Diagnostic] = []
    many = len(names) > 1
    for name in names:
        if name == STDIN:
            loaded.append(load_text(read_stdin(), file="<stdin>"))
        elif _is_folder(name):
            from .folder import load_folder  # noqa: PLC0415  # for folders

            folder = load_folder(Path(name))
            loaded += folder.specs
            notes += folder.notes
            many = True
        else:
            loaded.append(load(Path(name)))
    return Gathered(specs=_each_once(loaded), notes=tuple(notes), many=many)


def check(
    gathered: Gathered,
    *,
    policies: Path | None = None,
    today: date | None = None,
    more: Callable[[Loaded], tuple[Diagnostic, ...]] = lambda _: (),
) -> Report:
    """Look for clashes between the specs, and hold policies against those without errors.

    Args:
        gathered: the specs.
        policies: the file of policies; default: policies.yaml next to each spec, if it is there.
        today: the day, in UTC; None: no spec is too old.
        more: says what else is wrong with a spec without errors.
    """
    clashes = _by_file(gathered.specs)
    found = {each.file: _policies_of(each, policies) for each in gathered.specs}
    files = dict.fromkeys(path for path in found.values() if path is not None)
    rules = {path: _loaded_policies(path) for path in files}
    checked = [
        CheckedSpec(
            loaded=each,
            clashes=(*clashes.get(each.file, ()), *_past_end(each, today)),
            breaches=() if (path := found[each.file]) is None else _breaches(each, rules[path]),
            more=more(each),
        )
        for each in gathered.specs
    ]
    return Report(
        specs=tuple(checked),
        notes=gathered.notes,
        policies=tuple(rules.values()),
        many=gathered.many,
    )


def _is_folder(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()  # "": a variable of a shell that isn't set
    except OSError:  # loading says why
        return False


def _each_once(loaded: Sequence[Loaded]) -> tuple[Loaded, ...]:
    if len(loaded) == 1:
        return tuple(loaded)
    kept: dict[Path, Loaded] = {}
    for each in loaded:
        kept.setdefault(Path(each.file).resolve(), each)
    return tuple(kept.values())


def _past_end(loaded: Loaded, today: date | None) -> Iterator[Diagnostic]:
    """Yield that a spec's last day is over; a day that there isn't is another finding."""
    budget = None if loaded.spec is None else loaded.spec.budget
    if budget is None or budget.expires_on is None or loaded.document is None or today is None:
        return
    path = ("budget", "expires_on")
    try:
        last = date.fromisoformat(budget.expires_on)
    except ValueError:
        return
    if last <= today:
        yield Diagnostic(
            code="GC863",
            severity=Severity.ERROR,
            summary=f"it expires on {last}, which is past: nothing would be brought up",
            path=path,
            file=loaded.file,
            span=loaded.document.locate(path),
            hint="write a day to come, or expires: 30d after its first up",
        )


def _by_file(specs: Sequence[Loaded]) -> dict[str, list[Diagnostic]]:
    clashes: dict[str, list[Diagnostic]] = {}
    if len(specs) > 1:
        from .clashes import check_fleet  # noqa: PLC0415  # most often there is one spec

        for clash in check_fleet(specs):
            clashes.setdefault(clash.file, []).append(clash)
    return clashes


def _policies_of(loaded: Loaded, given: Path | None) -> Path | None:
    """Return the policies to hold against a spec; none against what could not even be read."""
    if loaded.document is None:
        return None
    if given is not None:
        return given

    return find_policies(Path(loaded.file))


def _loaded_policies(path: Path) -> LoadedPolicies:

    return load_policies(path)


def _breaches(loaded: Loaded, policies: LoadedPolicies) -> tuple[Diagnostic, ...]:

    return tuple(judge(policies, loaded))
