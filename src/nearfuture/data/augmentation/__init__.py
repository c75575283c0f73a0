"""How training varies recordings: ends, speed, room, level and noise."""

from nearfuture.data.augmentation.augmentation import Augmentation
from nearfuture.data.augmentation.environment import AcousticEnvironment, corpus_contents
from nearfuture.data.augmentation.noise import add_noise
from nearfuture.data.augmentation.sound import at_level

__all__ = ["AcousticEnvironment", "Augmentation", "add_noise", "at_level", "corpus_contents"]
