CREATE TABLE agents (
  -- Who the fleet's agents are, from one run to the next: an agent stays the same when its name
  -- or its directory changes. agent: its permanent key, under which all else of it is kept: its
  -- first name, unless another agent had that. name, dir: as it was declared last. triggers: a
  -- hash of its triggers when they last ran; '': they never did. gone: since when it is no longer
  -- declared; 0: it is. Of those that are gone the last 1,000 are kept.
  agent    TEXT PRIMARY KEY,
  name     TEXT NOT NULL,
  dir      TEXT NOT NULL,
  triggers TEXT NOT NULL,
  gone     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
