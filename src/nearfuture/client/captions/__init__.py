"""Live captions in a terminal: where samples come from, and where text goes."""

from nearfuture.client.captions.level import LevelMeter
from nearfuture.client.captions.microphone import LiveSource, Microphone, PlayedFile, microphones
from nearfuture.client.captions.screen import CaptionScreen

__all__ = ["CaptionScreen", "LevelMeter", "LiveSource", "Microphone", "PlayedFile", "microphones"]
