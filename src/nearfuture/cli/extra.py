"""How to install what the base install leaves out."""

HOW_TO_TRAIN = (
    "pip install 'nearfuture[train]' (without a GPU, install torch's CPU build first: it saves "
    "gigabytes, see README)"
)
"""The remedy in messages about missing torch or its extras."""
