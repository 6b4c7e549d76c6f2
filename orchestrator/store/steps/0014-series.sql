CREATE TABLE series (
  -- What each agent did in each ten minutes, as far back as people look: events and usage have
  -- the same of each turn, but not for as long. A row is added to in the transaction that writes
  -- the event or the record. agent: '' for what all did together: such a row also says that a
  -- run was there. at: when the ten minutes begin.
  -- looked: of agent '', 1 if it was looked how much the queues held; 0 in all other rows.
  -- queued: the most entries that were queued at once, counted each minute. done, failed: entries
  -- that were done, and given up. sessions: that ended. fires: of triggers; late: the longest
  -- delay of a scheduled one, in milliseconds. turns to guessed: as in usage.
  -- Rows of more than 400 days are removed.
  agent       TEXT NOT NULL,
  at          INTEGER NOT NULL,
  looked      INTEGER NOT NULL,
  queued      INTEGER NOT NULL,
  done        INTEGER NOT NULL,
  failed      INTEGER NOT NULL,
  sessions    INTEGER NOT NULL,
  fires       INTEGER NOT NULL,
  late        INTEGER NOT NULL,
  turns       INTEGER NOT NULL,
  calls       INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost        REAL NOT NULL,
  unseen      INTEGER NOT NULL,
  unpriced    INTEGER NOT NULL,
  guessed     INTEGER NOT NULL,
  PRIMARY KEY (agent, at)
) STRICT, WITHOUT ROWID;
