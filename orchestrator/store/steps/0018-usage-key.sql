CREATE INDEX agents_name ON agents (name);
ALTER TABLE usage ADD COLUMN agent_key /* the key in agents of who had the name of agent when
  the row was written, or of rows from before this step, when that was taken; the name, if nobody
  had it. An agent that is renamed goes on with its budgets by it. */ TEXT NOT NULL DEFAULT '';
UPDATE usage SET agent_key = COALESCE((SELECT a.agent FROM agents a WHERE a.name = usage.agent ORDER BY a.gone LIMIT 1), usage.agent);
CREATE INDEX usage_key ON usage (agent_key, at);
