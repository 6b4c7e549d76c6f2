CREATE TABLE demands (
  -- What an entry has to pass that is not what its agent's until: says: of send --check, or of a
  -- trigger. trigger: the trigger's name, whose present until: counts where it has one. none: 1
  -- if nothing has to be passed, whatever the agent's until: says. program: the absolute path of
  -- the check's program where it was given as a path. check_timeout, max_time, hold: in ms. aside:
  -- 1 if the queue goes on while it waits for a person. promise: what the agent has to claim.
  agent          TEXT NOT NULL,
  seq            INTEGER NOT NULL,
  trigger        TEXT NOT NULL,
  none           INTEGER NOT NULL,
  program        TEXT NOT NULL,
  check_timeout  INTEGER NOT NULL,
  aside          INTEGER NOT NULL,
  promise        TEXT NOT NULL,
  max_iterations INTEGER NOT NULL,
  max_time       INTEGER NOT NULL,
  hold           INTEGER NOT NULL,
  PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE demand_words (
  -- The words of a demand. kind: check, the command's words in their order; approve, who has to say
  -- yes; env, NAME=VALUE.
  agent TEXT NOT NULL,
  seq   INTEGER NOT NULL,
  kind  TEXT NOT NULL,
  n     INTEGER NOT NULL,
  word  TEXT NOT NULL,
  PRIMARY KEY (agent, seq, kind, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE passes (
  -- A check that has passed, while people have not yet said yes: it is not run again meanwhile.
  -- check_no: which check; definition: a hash of what had to be passed. output: what it said. files:
  -- a digest of the agent's files after it. took: in ms. at: when it ended.
  agent      TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  check_no   INTEGER NOT NULL,
  definition TEXT NOT NULL,
  output     TEXT NOT NULL,
  files      TEXT NOT NULL,
  took       INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE unanswered_checks (
  -- The checks in a row of an entry that gave no answer. since: the first of them. times: how many.
  -- what, why: what happened the last time, in a word and in a line.
  agent TEXT NOT NULL,
  seq   INTEGER NOT NULL,
  since INTEGER NOT NULL,
  times INTEGER NOT NULL,
  what  TEXT NOT NULL,
  why   TEXT NOT NULL,
  PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;
