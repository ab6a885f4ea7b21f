"""Campaigns: the file that lists models, the loop over them, and the index page (docs/campaigns.md)."""
