"""Long recordings with a text, cut into utterances to train on."""

from nearfuture.data.segmentation.alignment import Emissions, FrameSpan, Segment
from nearfuture.data.segmentation.folder import SegmentFolder
from nearfuture.data.segmentation.segmenting import (
    DroppedSegment,
    SegmentationOptions,
    Segments,
    segment,
)

__all__ = [
    "DroppedSegment",
    "Emissions",
    "FrameSpan",
    "Segment",
    "SegmentFolder",
    "SegmentationOptions",
    "Segments",
    "segment",
]
