CREATE TABLE requests (
  -- What agents ask people for, and what was answered. request: its id. agent, agent_name:
  -- whose it is, by its key and by its name. at, until: when it was asked, and when it ends as
  -- a no. aside: 1 while the agent's queue goes on. approver: the name of until.approve that
  -- has to agree ('': the agent asks by itself). category, question, payload: what is asked;
  -- cut: 1 if payload is the beginning of it. session: which one asked. entry, iteration: the
  -- delivery id of the entry that it is about, or that was worked on then. about: a hash of
  -- what the approver is shown; the answer counts for that alone. state: asked, approved,
  -- rejected, expired or withdrawn. answered_at, answered_by, note: when, who or which rule,
  -- and why. person: 1 if a person answered. told: 1 once the agent has the answer, or needs
  -- none; needless: why it needs none. The oldest answered ones are removed beyond 500, but for
  -- those whose answer somebody still has to get.
  request     TEXT NOT NULL PRIMARY KEY,
  agent       TEXT NOT NULL,
  agent_name  TEXT NOT NULL,
  at          INTEGER NOT NULL,
  until       INTEGER NOT NULL,
  aside       INTEGER NOT NULL,
  approver    TEXT NOT NULL,
  category    TEXT NOT NULL,
  session     TEXT NOT NULL,
  entry       TEXT NOT NULL,
  iteration   INTEGER NOT NULL,
  about       TEXT NOT NULL,
  state       TEXT NOT NULL,
  answered_at INTEGER NOT NULL,
  answered_by TEXT NOT NULL,
  person      INTEGER NOT NULL,
  told        INTEGER NOT NULL,
  needless    TEXT NOT NULL,
  cut         INTEGER NOT NULL,
  question    TEXT NOT NULL,
  note        TEXT NOT NULL,
  payload     TEXT NOT NULL
) STRICT;
CREATE INDEX requests_state ON requests (state, at);
