"""One run over a head: its plan, its phases, the session that collects verdicts, the journal."""
