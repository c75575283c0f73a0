"""A bundle as a service: one engine, many live streams, clients that already exist."""
