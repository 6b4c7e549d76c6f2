CREATE TABLE tokens (
  -- Who may see the fleet's page, and who may answer by the command line.
  -- hash: the SHA-256 of the secret, which is kept nowhere. id, name: what it is called.
  -- role: look, act, or command, which no browser has. link: 1 for a link that nobody has opened
  -- yet. made, used, until: when it was made, when it was used last (0: never), when it ends.
  -- One that was revoked, or opened, is removed. A backup that is restored brings none back.
  hash  TEXT PRIMARY KEY,
  id    TEXT NOT NULL,
  name  TEXT NOT NULL,
  role  TEXT NOT NULL,
  link  INTEGER NOT NULL,
  made  INTEGER NOT NULL,
  used  INTEGER NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE page (
  -- The page. One row, once a link was made. host: the name below localhost that this fleet's
  -- links have on this machine.
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  host TEXT NOT NULL
) STRICT;
