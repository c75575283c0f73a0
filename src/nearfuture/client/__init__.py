"""Clients of live recognition servers, ours or others': protocols, captions, measurements."""
