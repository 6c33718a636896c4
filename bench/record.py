"""Record a real run as the README's picture: the command's own screen, as tmux shows it, as SVG.

Usage: python bench/record.py OUT.svg "gcluster up examples/local.yaml --yes"
Needs tmux. What the picture shows is what the terminal showed when the command had ended.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 104, 30
LONGEST_S = 600


def tmux(*arguments: str) -> str:
    """Run tmux on a server of our own and return what it prints."""
    command = ["tmux", "-L", f"gcluster-record-{os.getpid()}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def record(command: str) -> str:
    """Run `command` in a fresh terminal; return its last screen with colours."""
    done = f"record-{os.getpid()}"
    tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "sh")
    try:
        tmux("send-keys", "PS1='$ '; clear; tmux set-option -g status off", "Enter")
        time.sleep(1)
        tmux("send-keys", f"clear; {command}; tmux wait-for -S {done}", "Enter")
        waiting = ["tmux", "-L", f"gcluster-record-{os.getpid()}", "wait-for", done]
        subprocess.run(waiting, check=True, timeout=LONGEST_S)
        return tmux("capture-pane", "-e", "-p")
    finally:
        tmux("kill-server")


def main() -> None:
    """Record the command and write the picture."""
    out, command = Path(sys.argv[1]), sys.argv[2]
    recorded = record(command).rstrip().removesuffix("$").rstrip()
    console = Console(record=True, width=COLUMNS, file=Path(os.devnull).open("w"))  # noqa: SIM115
    console.print(Text.assemble(("$ ", "bold green"), command))
    console.print(Text.from_ansi(recorded))
    svg = console.export_svg(title="gcluster")
    # No fonts from the network: the reader's own monospace one will do.
    out.write_text(re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL), encoding="utf-8")
    sys.stdout.write(f"wrote {out}\n")


if __name__ == "__main__":
    main()
