"""Stored runs in the browser: pages that only read, and a playground (docs/explorer.md)."""
