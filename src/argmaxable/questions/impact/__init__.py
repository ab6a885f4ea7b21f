"""Whether unargmaxable classes matter: how often they occur in somebody's data, and what wins instead."""
