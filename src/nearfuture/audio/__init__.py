"""Sound in: files of any kind as mono samples, and two resamplers, for files and for live audio."""

from nearfuture.audio.decode import Audio, AudioError, read
from nearfuture.audio.live import LiveResampler, ResamplerState
from nearfuture.audio.resampling import resample, resampled_length

__all__ = [
    "Audio",
    "AudioError",
    "LiveResampler",
    "ResamplerState",
    "read",
    "resample",
    "resampled_length",
]
