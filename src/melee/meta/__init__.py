"""Learning how to explore: exploration policies trained by imitation on synthetic tasks."""
