CREATE TABLE conversations (
  -- The client's conversation that an agent's last sessions had: context: resume continues it,
  -- and so does an entry whose turn the service has ended. agent: its key in agents. id: the
  -- client's name for it. dir: where the client keeps it: the agent's directory. session: the last
  -- session that had it. before: the one before that, whose entry it continued; '': it did not.
  agent   TEXT PRIMARY KEY,
  id      TEXT NOT NULL,
  dir     TEXT NOT NULL,
  session TEXT NOT NULL,
  before  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
