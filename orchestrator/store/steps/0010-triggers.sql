CREATE TABLE triggers (
  -- What triggers remember from one run to the next, so that nothing fires again or is lost
  -- because an agent or a trigger was renamed. agent: the agent's key. trigger: the trigger's
  -- permanent key, with which the ids of its prompts begin. place: its place among the agent's
  -- triggers, the declared ones first. kind, name, named, core, sieve, prompt: by which it is
  -- known again: cron, watch, poll or webhook; its name, and 1 if a person gave it; what it
  -- watches for; how a poll tells outputs apart; a hash of its prompt. gone: since when it is no
  -- longer declared; 0: it is. fired: of cron, the last fire, or since when the schedule counts.
  -- delay: what jitter adds to each fire, in nanoseconds, and was: what it added before changed.
  -- polled: of poll, when its last successful run began.
  agent   TEXT NOT NULL,
  trigger TEXT NOT NULL,
  place   INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  name    TEXT NOT NULL,
  named   INTEGER NOT NULL,
  core    TEXT NOT NULL,
  sieve   TEXT NOT NULL,
  prompt  TEXT NOT NULL,
  gone    INTEGER NOT NULL,
  fired   INTEGER NOT NULL,
  delay   INTEGER NOT NULL,
  was     INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  polled  INTEGER NOT NULL,
  PRIMARY KEY (agent, trigger)
) STRICT, WITHOUT ROWID;

CREATE TABLE trigger_names (
  -- How many keys were made from a name of a trigger: none is used again, since the queue
  -- remembers what fired under it.
  agent TEXT NOT NULL,
  name  TEXT NOT NULL,
  used  INTEGER NOT NULL,
  PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE seen_files (
  -- The files that a watch has seen, as they were when it fired for them, or did not. file: its
  -- path below the agent's directory. size: in bytes. modified, changed: the times of its content
  -- and of its inode, in nanoseconds of Unix time; changed is 0 where the system does not tell.
  -- sum: the SHA-256 of its content.
  agent    TEXT NOT NULL,
  trigger  TEXT NOT NULL,
  file     TEXT NOT NULL,
  size     INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  changed  INTEGER NOT NULL,
  sum      TEXT NOT NULL,
  PRIMARY KEY (agent, trigger, file)
) STRICT, WITHOUT ROWID;

CREATE TABLE fired_keys (
  -- What a poll with dedupe has fired for, the last 1,000. key: a hash of what identifies it.
  -- n: in the order of the fires.
  agent   TEXT NOT NULL,
  trigger TEXT NOT NULL,
  key     TEXT NOT NULL,
  n       INTEGER NOT NULL,
  PRIMARY KEY (agent, trigger, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE recent_fires (
  -- The fires that count for a trigger's rate. n: which of those of one millisecond.
  agent   TEXT NOT NULL,
  trigger TEXT NOT NULL,
  at      INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  PRIMARY KEY (agent, trigger, at, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE refused_requests (
  -- The requests that a webhook has refused since it last accepted one of that sender. sender,
  -- fault: whose they were, and what was wrong with them. since, last, times: the first, the last
  -- and how many. detail: more of what was wrong with the last one.
  agent   TEXT NOT NULL,
  trigger TEXT NOT NULL,
  sender  TEXT NOT NULL,
  fault   TEXT NOT NULL,
  since   INTEGER NOT NULL,
  last    INTEGER NOT NULL,
  times   INTEGER NOT NULL,
  detail  TEXT NOT NULL,
  PRIMARY KEY (agent, trigger, sender, fault)
) STRICT, WITHOUT ROWID;
