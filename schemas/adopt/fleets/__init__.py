"""Tasks and fleets without a scheduler of their own: SkyPilot and dstack."""
