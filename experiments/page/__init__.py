"""What docs/results.md says besides the experiments: facts about the text, and what long runs cost."""
