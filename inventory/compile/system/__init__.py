"""What every machine has, whatever its jobs: packages, kernel, logins, health (pure)."""
