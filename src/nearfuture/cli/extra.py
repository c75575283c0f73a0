"""How to install what the base install leaves out."""

HOW_TO_TRAIN = (
    "pip install 'nearfuture[train]' (without a GPU, install torch's CPU build first: it saves "
    "gigabytes, see README)"
)
"""What a message says where torch, or what comes with it, is missing."""
