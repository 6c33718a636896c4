"""Evaluate every policy for every item it applies to. What can't be evaluated is refused."""

from __future__ import annotations

from ..catalog import Catalog, load_catalog
from ..diagnostics import Diagnostic, PathTuple, Severity, Span, in_file_order
from ..load import Loaded
from ..structure.document import Document
from .cel import EvaluationError
from .compile import CompiledPolicy
from .facts import Facts, Item
from .load import LoadedPolicies


def judge(
    policies: LoadedPolicies, loaded: Loaded, *, catalog: Catalog | None = None
) -> list[Diagnostic]:
    """Return each breach of a policy, located in the spec, in file order."""
    if loaded.spec is None or loaded.document is None or not policies.policies:
        return []
    facts = Facts(loaded.spec, catalog or load_catalog(loaded.catalogs))
    found = [
        _diagnostic(breach, policy, item, policies.file, loaded)
        for policy in policies.policies
        for item in facts.items(policy.policy.applies_to)
        if (breach := _breach(policy, item)) is not None
    ]
    return in_file_order(found)


def _breach(policy: CompiledPolicy, item: Item) -> tuple[str, str] | None:
    """Return the code and the words of a breach, or None when the item is allowed."""
    try:
        if policy.when is not None and not policy.when.holds(item.variables):
            return None
        if policy.rule.holds(item.variables):
            return None
    except EvaluationError as error:
        return "GC802", f"can't be judged, so it counts as not kept: {error}"
    return "GC801", policy.message.text(item.variables)


def _diagnostic(
    breach: tuple[str, str], compiled: CompiledPolicy, item: Item, file: str, loaded: Loaded
) -> Diagnostic:
    policy = compiled.policy
    code, words = breach
    keys = tuple(policy.at.split(".")) if policy.at is not None else ()
    path = keys if policy.applies_to == "cluster" and keys else (*item.path, *keys)
    return Diagnostic(
        code=code,
        severity=Severity(policy.severity),
        summary=f'policy "{policy.name}" of {policy.owner}: {item.label}: {words}',
        detail=f"{policy.description}\nrule: {policy.rule.strip()}\n({file}:{compiled.line})",
        path=path,
        file=loaded.file,
        span=_place(loaded.document, item, path),
        hint=policy.hint or f"ask {policy.owner}, who owns this policy",
    )


def _place(document: Document | None, item: Item, path: PathTuple) -> Span | None:
    """Return the place of the diagnostic: at a key that is not written, the item is shown."""
    if document is None:
        return None
    written = not path or path[0] in document.data
    return document.locate(path if written else item.path, key=not written or path == item.path)
