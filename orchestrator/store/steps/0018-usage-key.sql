CREATE INDEX agents_name ON agents (name);
ALTER TABLE usage ADD COLUMN agent_key /* the key in agents of the agent that had this name then;
  its name, if there was none. An agent that is renamed goes on with its budgets by it. */ TEXT NOT NULL DEFAULT '';
UPDATE usage SET agent_key = COALESCE((SELECT a.agent FROM agents a WHERE a.name = usage.agent ORDER BY a.gone LIMIT 1), usage.agent);
CREATE INDEX usage_key ON usage (agent_key, at);
