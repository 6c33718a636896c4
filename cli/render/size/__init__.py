"""Answers of `gcluster size`: text, and reports as Markdown and HTML with plots."""
