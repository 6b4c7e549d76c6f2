CREATE TABLE pauses (
  -- Which agents, and which of their triggers, are paused by heartbeat pause: also in the next
  -- run nothing is started for the agent, or the trigger does not fire by itself. agent: its key
  -- in agents. trigger: the trigger's permanent key; '': the agent itself. since: when the pause
  -- began. until: when it ends by itself; 0: only resume ends it. by_agent: the agent whose
  -- session asked for it; '': a person did.
  agent    TEXT NOT NULL,
  trigger  TEXT NOT NULL,
  since    INTEGER NOT NULL,
  until    INTEGER NOT NULL,
  by_agent TEXT NOT NULL,
  PRIMARY KEY (agent, trigger)
) STRICT, WITHOUT ROWID;
