CREATE TABLE intakes (
  -- The files that stood at the name of an agent's inbox, as far as they are to be known again.
  -- inbox: its path, below the agent's directory without that. n: counts them, and names the file
  -- in the folder taken. device, inode: which file it is. moved: 1 if it stands in that folder, 0
  -- if at the inbox's name. position: how far it was taken in. size: how long it was then; seen:
  -- the SHA-256 of its first and last 4 KiB then. skipping: 1 if the rest of a line that was too
  -- long comes at position. lines: how many were taken in; hash: of them, so that the same lines
  -- are known when they come once more. began: when its first line was taken in, at: its last one.
  -- ended: when the file was gone; 0: it is there. One of several lines is known for seven days.
  agent    TEXT NOT NULL,
  inbox    TEXT NOT NULL,
  n        INTEGER NOT NULL,
  device   INTEGER NOT NULL,
  inode    INTEGER NOT NULL,
  moved    INTEGER NOT NULL,
  position INTEGER NOT NULL,
  size     INTEGER NOT NULL,
  seen     TEXT NOT NULL,
  skipping INTEGER NOT NULL,
  lines    INTEGER NOT NULL,
  hash     TEXT NOT NULL,
  began    INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  ended    INTEGER NOT NULL,
  PRIMARY KEY (agent, inbox, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX intakes_there ON intakes (agent, inbox, ended);
