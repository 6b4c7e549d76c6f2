CREATE TABLE export_key (
  -- The key of the MACs in the lines of exports: see the package. One row, made once. It is in
  -- backups: a store that is restored from one has to know its own lines.
  one INTEGER PRIMARY KEY CHECK (one = 1),
  key BLOB NOT NULL
) STRICT;

CREATE TABLE exports (
  -- How far the exports of each agent have come. state: done (outbox.jsonl) or dead
  -- (.dead-letter.jsonl). n: the number of the last end (entries.n) whose line is on the disk. gone:
  -- queues.gone when the whole file was last written. owed: since when lines cannot be written; 0:
  -- they can. why: the reason.
  agent TEXT NOT NULL,
  state TEXT NOT NULL,
  n     INTEGER NOT NULL,
  gone  INTEGER NOT NULL,
  owed  INTEGER NOT NULL,
  why   TEXT NOT NULL,
  PRIMARY KEY (agent, state)
) STRICT, WITHOUT ROWID;
CREATE INDEX exports_owed ON exports (owed) WHERE owed > 0;

CREATE TABLE behind (
  -- The agents of which this store is older than their exports, until a person has said what is to
  -- be done. at: when that was found. seq: the last number in their queue then. hidden: how many of
  -- the ends that are missing here no line tells of any more.
  agent  TEXT PRIMARY KEY,
  at     INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  hidden INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE behind_ends (
  -- The ends that their exports show and this store does not know, the last one of each entry. n:
  -- its number. given: when the entry was last handed over; 0: never. ended: when it ended. reason:
  -- why it is dead; '': it is done. line: of a dead one, its line in the inbox. What else there is
  -- means what it means in entries, texts, replies and verdicts.
  agent     TEXT NOT NULL,
  delivery  TEXT NOT NULL,
  n         INTEGER NOT NULL,
  entry_id  TEXT NOT NULL,
  id        TEXT NOT NULL,
  source    TEXT NOT NULL,
  urgent    INTEGER NOT NULL,
  session   TEXT NOT NULL,
  given     INTEGER NOT NULL,
  ended     INTEGER NOT NULL,
  attempt   INTEGER NOT NULL,
  repeats   INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  reason    TEXT NOT NULL,
  cause     TEXT NOT NULL,
  output    TEXT NOT NULL,
  line      BLOB NOT NULL,
  length    INTEGER NOT NULL,
  excerpt   TEXT NOT NULL,
  reply     TEXT NOT NULL,
  cut       INTEGER NOT NULL,
  abandoned TEXT NOT NULL,
  checked   INTEGER NOT NULL,
  by_whom   TEXT NOT NULL,
  took      INTEGER NOT NULL,
  PRIMARY KEY (agent, delivery)
) STRICT, WITHOUT ROWID;
