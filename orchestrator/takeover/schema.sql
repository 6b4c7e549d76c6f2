CREATE TABLE takeovers (
  -- The queues in files that were taken into this store. agent: whose it is. inbox: where it was. at:
  -- when. moved: 1 once the files have been moved away: what has their names from then on was put
  -- there later.
  agent TEXT NOT NULL,
  inbox TEXT NOT NULL,
  at    INTEGER NOT NULL,
  moved INTEGER NOT NULL,
  PRIMARY KEY (agent, inbox)
) STRICT, WITHOUT ROWID;

CREATE TABLE takeover_files (
  -- The files that were read for that, until they are moved. file: its name, in the folder of the
  -- inbox. inode: which file it was.
  agent TEXT NOT NULL,
  file  TEXT NOT NULL,
  inode INTEGER NOT NULL,
  PRIMARY KEY (agent, file)
) STRICT, WITHOUT ROWID;
