"""Runs many queries to a cloud at once, before anything is created; each result is a diagnostic."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import msgspec

from ...schemas.catalog import Catalog
from ...schemas.cost.quotas import QuotaNeed, quota_needs
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ..provider import ProviderError, provider_error
from .engine.events import cause
from .plan import CloudPool, architecture_of

PoolT = TypeVar("PoolT", bound=CloudPool[Any])
ImageT = TypeVar("ImageT")
_AT_ONCE = 16
"""Questions that are open at the same time: a cloud shares its rate among all of an account."""
PRICE_TOLERANCE = 0.05
"""Least relative difference from the catalog's price that is reported."""


class Question(NamedTuple):
    """A query to a cloud."""

    what: str
    """As text that follows "not checked": "quota L-417A185B"."""
    ask: Callable[[], Iterable[Diagnostic]]
    """Queries and yields what blocks `up`; may raise ProviderError."""


class Cloud(msgspec.Struct, frozen=True, kw_only=True):
    """The message for a query without a response."""

    name: str
    """"Google Cloud"."""
    not_logged_in: str
    """Code for a login that is missing or over."""
    unanswered: str
    """Code for a question without an answer."""


def run_preflight(cloud: Cloud, questions: Iterable[Question]) -> tuple[Diagnostic, ...]:
    """Run all queries at once; return the results in the order of the queries.

    A query without a response is a warning that names it: the others still count. All that is
    unknown for lack of a login is one warning, which comes first.
    """
    requested = list(questions)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(_answer, requested))
    findings: list[Diagnostic] = []
    logged_out: list[str] = []
    login: ProviderError | None = None
    for question, answer in zip(requested, answers, strict=True):
        if not isinstance(answer, ProviderError):
            findings += answer
        elif _is_login(answer):
            logged_out.append(question.what)
            login = login or answer
        else:
            findings.append(_unanswered(cloud, question.what, answer))
    if login is not None:
        findings.insert(0, _not_logged_in(cloud, login, logged_out))
    return tuple(dict.fromkeys(findings))


def _answer(question: Question) -> list[Diagnostic] | ProviderError:
    try:
        return list(question.ask())
    except ProviderError as error:
        return error
    except msgspec.MsgspecError as error:  # an answer in a form that the reference doesn't have
        return provider_error("GC966", "the answer can't be read", detail=str(error))


def _is_login(error: ProviderError) -> bool:
    return any(cause(finding) == "expired" for finding in error.diagnostics)


def _not_logged_in(cloud: Cloud, error: ProviderError, unknown: list[str]) -> Diagnostic:
    diagnostic = error.diagnostics[0]
    return finding(
        cloud.not_logged_in,
        f"not logged in to {cloud.name}: {len(unknown)} questions were not answered",
        severity=Severity.WARNING,
        detail=f"Not known: {', '.join(unknown)}\n{diagnostic.detail}",
        hint=diagnostic.hint,
    )


def _unanswered(cloud: Cloud, what: str, error: ProviderError) -> Diagnostic:
    """Return the warning. Where the cause isn't known, its hint is about a change that stopped."""
    diagnostic = error.diagnostics[0]
    other = cause(diagnostic) in {"other", None}
    return finding(
        cloud.unanswered,
        f"{what}: not checked, {diagnostic.summary}",
        severity=Severity.WARNING,
        detail="" if diagnostic.detail in diagnostic.summary else diagnostic.detail,
        hint="`gcluster plan` queries again; nothing else depends on it"
        if other
        else diagnostic.hint,
    )


class ExistingMachines:
    """The cluster's own machines in a cloud: queried once, when first needed."""

    def __init__(self, pools: Callable[[], Iterable[str]]) -> None:
        """Hold the question, which answers with the pool of each machine."""
        self._ask = pools
        self._lock = threading.Lock()
        self._counts: Mapping[str, int] | None = None

    def counts(self) -> Mapping[str, int]:
        """Return how many machines each pool has; one that has none is left out.

        Raises:
            ProviderError: the cloud can't be queried.
        """
        with self._lock:
            if self._counts is None:
                self._counts = Counter(self._ask())
            return self._counts

    def of(self, pool: str) -> int:
        """Return how many machines a pool has; raises as `counts`."""
        return self.counts().get(pool, 0)


def nothing_exists() -> ExistingMachines:
    """Return the state of a cluster that has no machines yet."""
    return ExistingMachines(tuple)


def site_quotas(spec: ClusterSpec, catalog: Catalog, site: str) -> Iterator[QuotaNeed]:
    """Yield what a site's pools need of its cloud's quotas."""
    cloud = spec.sites[site].provider
    for need in quota_needs(spec, catalog):
        if need.provider == cloud and any(spec.pools[pool].site == site for pool in need.pools):
            yield need


def by_image(
    pools: Iterable[PoolT], image: Callable[[PoolT], ImageT], catalog: Catalog
) -> dict[tuple[ImageT, str], list[PoolT]]:
    """Return the pools that boot an image on an architecture; one query for each."""
    users: dict[tuple[ImageT, str], list[PoolT]] = {}
    for pool in pools:
        architecture = architecture_of(catalog.machines.get(pool.machine))
        users.setdefault((image(pool), architecture), []).append(pool)
    return users


def price_finding(
    code: str, machine: str, market: str, usd: float, *, source: str, known: float | None
) -> Diagnostic:
    """Return a machine's price: a note, or a warning where the catalog differs.

    Args:
        code: of the cloud's prices.
        machine: its type.
        market: how it would be bought.
        usd: price per hour, the cloud's current one.
        source: its origin and age.
        known: the catalog's price; None: it has none.
    """
    fits = known is not None and abs(usd - known) <= known * PRICE_TOLERANCE
    other = "" if fits else "; the catalog "
    if not fits:
        other += "has no price" if known is None else f"says {known:.2f}"
    return finding(
        code,
        f"{machine} costs {usd:.2f} USD an hour ({market}){other}",
        severity=Severity.NOTE if fits or known is None else Severity.WARNING,
        detail=source,
    )


def finding(
    code: str,
    summary: str,
    *,
    severity: Severity = Severity.ERROR,
    detail: str = "",
    hint: str = "",
) -> Diagnostic:
    """Return a diagnostic that has no place in the spec."""
    return Diagnostic(code=code, severity=severity, summary=summary, detail=detail, hint=hint)
