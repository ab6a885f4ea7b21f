"""Which sets of labels can come out of a head: exactly these on, these the top k, at least these on."""
