"""Changes to a head, each with a proof: repair gives classes their chance back, teach gives them rows that
read examples, prune takes classes out."""
