"""The smallest typer command: what `gcluster validate` is compared with."""

from __future__ import annotations

import typer

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    """Greet."""
    typer.echo(f"hello {name}")


if __name__ == "__main__":
    app()
