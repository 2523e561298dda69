"""The benchmark: explorers × datasets × seeds, resumable, on one machine or many."""
