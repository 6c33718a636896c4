"""Kubernetes without a registry: its bundle, built from Go modules or fetched from the release."""
