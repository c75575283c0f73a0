"""Whose quantum is computed next: many live streams through one engine."""

from nearfuture.runtime.scheduler.dispatcher import Dispatcher
from nearfuture.runtime.scheduler.live_stream import LiveStream
from nearfuture.runtime.scheduler.load import Busy
from nearfuture.runtime.scheduler.stats import DispatchStats, Occupancy

__all__ = ["Busy", "DispatchStats", "Dispatcher", "LiveStream", "Occupancy"]
