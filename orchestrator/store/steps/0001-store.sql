CREATE TABLE store (
  -- What this database is. One row. In all tables a time is in milliseconds since 1970: see
  -- datetime(at / 1000, 'unixepoch'); 0 is none.
  -- store_id: random, for good. version: how many steps have made the tables.
  -- made: when. inode, born, machine: the file and the machine as its writer last opened it
  -- (born: in nanoseconds): where they differ it is a copy, or was restored.
  -- clean: 1 if its last writer has closed it, 0 while one has it or after a crash.
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  store_id TEXT NOT NULL,
  version  INTEGER NOT NULL,
  made     INTEGER NOT NULL,
  inode    INTEGER NOT NULL,
  born     INTEGER NOT NULL,
  machine  TEXT NOT NULL,
  clean    INTEGER NOT NULL
) STRICT;

CREATE TABLE adopted (
  -- Files of the state directory that an earlier version of heartbeat kept, and that are in
  -- this database now. file: its path in the state directory. at: when it was taken over. The
  -- file itself is in before-store/.
  file TEXT PRIMARY KEY,
  at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
