CREATE TABLE events (
  -- What happened to the fleet's agents, for people and programs to read (heartbeat events).
  -- n: in the order in which it was written down. at: when it happened. agent: '' for what is
  -- about the fleet. kind: a word of the list in room journal. body: the event as JSON, as
  -- heartbeat events -o json prints it; no statement looks into it. crc: a checksum (CRC-32C) of
  -- body; -1: none, it was written by a version without.
  -- The oldest are removed beyond 800,000, each agent's beyond its share, its Stops first.
  n     INTEGER PRIMARY KEY,
  at    INTEGER NOT NULL,
  agent TEXT NOT NULL,
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL,
  crc   INTEGER NOT NULL
) STRICT;
CREATE INDEX events_agent ON events (agent, kind, n);
