"""Clients of live recognition servers, ours or others', and what they measure. No torch here."""

from nearfuture.client.caption import Caption
from nearfuture.client.choice import ProtocolName, address, choose, rate_sent
from nearfuture.client.connection import Closed, Connection, websocket
from nearfuture.client.conversation import converse
from nearfuture.client.failure import ServerError
from nearfuture.client.measurement import Measurement, Played, measure
from nearfuture.client.nearfuture_stream import NearfutureStream
from nearfuture.client.openai_realtime import OpenAIRealtime
from nearfuture.client.protocol import Protocol
from nearfuture.client.recording import Recording
from nearfuture.client.vosk import Vosk

__all__ = [
    "Caption",
    "Closed",
    "Connection",
    "Measurement",
    "NearfutureStream",
    "OpenAIRealtime",
    "Played",
    "Protocol",
    "ProtocolName",
    "Recording",
    "ServerError",
    "Vosk",
    "address",
    "choose",
    "converse",
    "measure",
    "rate_sent",
    "websocket",
]
