"""One model from its name to its answers: find the head, plan, verify, store. Campaigns do it for many."""
