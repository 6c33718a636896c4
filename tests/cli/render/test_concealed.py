"""What is shown of a line that contains a secret."""

from __future__ import annotations

import pytest

from gcluster.cli.render.diagnostics import concealed

WORD = "hunter2 & more"


@pytest.mark.parametrize(
    "line",
    [
        f"  - {{name: ada, password: {WORD}, uid: 2001}}",
        f"slurm_password: {WORD}  # of the old cluster",
        f'  "ldapPassword": "{WORD}"',
        f"  passwd: '{WORD}'",
        f"  api_key: {WORD}",
        f"  AUTH-TOKEN: {WORD}",
        f"  private-key: {WORD}",
        f"  credentials:   {WORD}",
        f'{{"secret":"{WORD}"}}',
    ],
)
def test_a_value_under_a_key_that_names_a_secret_is_hidden(line: str) -> None:
    shown = concealed(line)
    assert "hunter2" not in shown
    assert "more" not in shown
    assert len(shown) == len(line)
    assert shown.replace("*", "") == line.replace(f'"{WORD}"', "").replace(f"'{WORD}'", "").replace(
        WORD, ""
    )


def test_two_of_them_are_hidden_both() -> None:
    assert concealed("{password: a1, token: b2}") == "{password: **, token: **}"


def test_a_login_in_a_url_is_hidden() -> None:
    assert concealed("https: http://ada:hunter2@10.0.0.3:3128/x@y") == (
        "https: http://***********@10.0.0.3:3128/x@y"
    )


@pytest.mark.parametrize(
    "line",
    [
        "  password: env:LDAP_PASSWORD",
        '  password: "sops:secrets.yaml#ldap.password"',
        "secrets: {provider: age, key: env:KEY}",
        "  secret:",
        "  secrets: [a, b]",
        "  tokens: &shared {}",
        "  name: token-ring",
        "  image: registry/secret:v1",
        "",
    ],
)
def test_what_is_no_secret_is_shown(line: str) -> None:
    assert concealed(line) == line


def test_a_very_long_line_is_done_at_once() -> None:
    assert concealed("password" * 100_000).endswith("password")
    assert concealed("password" * 100_000 + ": x").endswith(": *")


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ("password: env:WORD ", "password: env:WORD "),
        ("secret: {name: a ", "secret: {name: a "),
        ("password: 'word', ", "password: ******, "),
        ("password: word # ", "password: **** # "),
        ("{password: word, ", "{password: ****, "),
    ],
)
def test_each_of_a_hundred_thousand_keys_in_one_line_is_checked(entry: str, shown: str) -> None:
    """Two megabytes: the test wouldn't end if each value were read to the end of the line."""
    assert concealed(entry * 100_000) == shown * 100_000


def test_a_value_that_reaches_over_a_hundred_thousand_keys_is_hidden_once() -> None:
    keys = "password: word " * 100_000
    assert concealed(keys) == f"password: {'*' * (len(keys) - 11)} "
