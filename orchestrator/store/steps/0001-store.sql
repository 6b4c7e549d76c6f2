-- What this database is. One row.
-- store_id: random, for good. version: how many steps have made the tables.
-- made: when. inode, born, machine: the file and the machine as its writer last opened it:
-- where they differ it is a copy, or was restored.
-- clean: 1 if its last writer has closed it, 0 while one has it or after a crash.
CREATE TABLE store (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  store_id TEXT NOT NULL,
  version  INTEGER NOT NULL,
  made     INTEGER NOT NULL,
  inode    INTEGER NOT NULL,
  born     INTEGER NOT NULL,
  machine  TEXT NOT NULL,
  clean    INTEGER NOT NULL
) STRICT;

-- Files of the state directory that an earlier version of heartbeat kept, and that are in
-- this database now. file: its path in the state directory. at: when it was taken over. The
-- file itself is in before-store/.
CREATE TABLE adopted (
  file TEXT PRIMARY KEY,
  at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
