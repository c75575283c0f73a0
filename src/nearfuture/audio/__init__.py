"""Sound in: recordings of any kind, whole or block by block, and two resamplers."""

from nearfuture.audio.decode import Audio, read
from nearfuture.audio.error import AudioError, Damage, TruncatedAudioError
from nearfuture.audio.input import AudioSource
from nearfuture.audio.live import LiveResampler, ResamplerState
from nearfuture.audio.reader import AudioReader, open_audio
from nearfuture.audio.resampling import resample, resample_blocks, resampled_length

__all__ = [
    "Audio",
    "AudioError",
    "AudioReader",
    "AudioSource",
    "Damage",
    "LiveResampler",
    "ResamplerState",
    "TruncatedAudioError",
    "open_audio",
    "read",
    "resample",
    "resample_blocks",
    "resampled_length",
]
