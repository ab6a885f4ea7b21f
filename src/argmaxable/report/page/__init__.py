"""One page about a run, as HTML or Markdown: data first, then a template (docs/report.md)."""
