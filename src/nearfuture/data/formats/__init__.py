"""The forms in which recordings come: one file for each; `read(path, found)` fills a collector."""
