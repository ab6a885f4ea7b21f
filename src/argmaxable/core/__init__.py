"""The nouns: head, domain, verdict and the other claims, result, errors. A new domain is one class here."""
