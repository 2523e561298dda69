"""Learning how to explore: exploration policies trained on synthetic tasks."""
