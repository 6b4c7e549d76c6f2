CREATE TABLE stop_hooks (
  -- Which Stop hooks that are not heartbeat's have continued a client, in which agents: seen in
  -- the client's record of a Stop. A hook counts for all agents once two have seen it. hook: its
  -- command line, shortened, or 'unknown Stop hook'. agent: its key in agents. since: when it was
  -- seen first. Of an agent 32 are kept.
  hook  TEXT NOT NULL,
  agent TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (hook, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX stop_hooks_agent ON stop_hooks (agent);
