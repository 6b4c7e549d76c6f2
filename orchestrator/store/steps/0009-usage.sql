CREATE TABLE usage (
  -- What sessions have cost, a row for what was spent on an entry since the row before it:
  -- rows add up. session, delivery, number: the row's key, number counts within the session, so
  -- that none is written twice. delivery: of the entry, '' if none was in flight. at: when.
  -- agent, account, agent_group: whose session, on which account, in which group, by their names
  -- of then. entry, source, attempt: the id that the entry's sender gave it, who that was, and
  -- which of its attempts this is. turns, calls, input, output, cache_read, cache_write (tokens),
  -- cost (US dollars at list price), unseen (turns without figures), unpriced, guessed (turns
  -- whose cost is not known, or guessed): what was spent.
  -- began, transcript, start, total, unknown: where the count goes on if whoever counts is
  -- killed. began: since when lines count, 0: all. transcript, start: the client's file, and its
  -- size before the session; in the first row of each file, '' and 0 in the others. total: what
  -- the client has said that the conversation cost; unknown: 1 if it has not said so.
  -- Rows of more than 400 days are removed, and the oldest beyond a million, each agent's beyond
  -- its share.
  n           INTEGER PRIMARY KEY,
  session     TEXT NOT NULL,
  delivery    TEXT NOT NULL,
  number      INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  agent       TEXT NOT NULL,
  account     TEXT NOT NULL,
  agent_group TEXT NOT NULL,
  entry       TEXT NOT NULL,
  source      TEXT NOT NULL,
  attempt     INTEGER NOT NULL,
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
  began       INTEGER NOT NULL,
  transcript  TEXT NOT NULL,
  start       INTEGER NOT NULL,
  total       REAL NOT NULL,
  unknown     INTEGER NOT NULL,
  UNIQUE (session, delivery, number)
) STRICT;
CREATE INDEX usage_agent ON usage (agent, at);
CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_delivery ON usage (delivery);
