"""Evidence that arrives late: why a little of the future helps, by construction and learned.

    python -m recipes.evidence construction
    python -m recipes.evidence voicing
    python -m recipes.evidence letters
    python -m recipes.evidence text
    python -m recipes.evidence export DIR

`construction` adds up evidence with the real lookahead layer; `plosives` and `voicing` let models
of each lookahead tell /t/ from /d/; `letters` asks the bundled recogniser which letters gain;
`sentences`, `tagger` and `taggings` do the same for words of two senses; `figures` draws, `graphs`
exports for the browser, and `__main__` is the command line.
"""
