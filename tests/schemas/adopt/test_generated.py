"""What is generated for an adopted blueprint differs from its tool's for stated reasons alone."""

from __future__ import annotations

import pytest

from . import generated, published


@pytest.mark.parametrize("name", generated.names())
def test_every_difference_has_a_reason_and_nothing_else_has(name: str) -> None:
    rows = generated.compared(name)

    assert len(rows) >= 60
    assert [row for row in rows if row.theirs != row.ours and not row.why] == []
    assert [row for row in rows if row.theirs == row.ours and row.why] == []


@pytest.mark.parametrize("name", generated.names())
def test_the_blueprint_is_one_that_is_adopted_or_its_cluster_is_re_expressed(name: str) -> None:
    assert (name in published.names()) != ("spec" in generated.case(name))


def test_the_pages_are_as_they_would_be_written_now() -> None:
    written = {path.name: path.read_text() for path in generated.DOCS.glob("generated-compared*")}

    assert written == generated.pages()
