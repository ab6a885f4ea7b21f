"""spaCy pipelines: the output layers of their trained components, which thinc stores as MessagePack."""
