"""`python -m gcluster.inventory.alerts` prints docs/alerts.md."""

import sys

from .pages import alerts_page

if __name__ == "__main__":
    sys.stdout.write(alerts_page())
