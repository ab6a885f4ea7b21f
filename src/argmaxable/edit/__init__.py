"""Changes to a head, each with a proof: repair gives classes their chance back, prune takes classes out."""
