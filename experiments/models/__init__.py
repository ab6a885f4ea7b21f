"""The models that experiments train or run: language models, a translator, a recommender."""
