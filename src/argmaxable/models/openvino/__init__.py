"""OpenVINO's intermediate representation: a network (.xml) and its constants (.bin)."""
