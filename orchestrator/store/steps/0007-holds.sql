CREATE TABLE holds (
  -- Which agents are held, also in the next run: no session is started until a person resumes the
  -- agent or its definition changes. agent: its key in agents. since: when it was held. why: the
  -- reason. fix: what to change first; '': not known. answers: a hash of what may answer the
  -- question that the client asked at its start; '': it asked none. definition: a hash of the
  -- agent's definition when it failed.
  agent      TEXT PRIMARY KEY,
  since      INTEGER NOT NULL,
  why        TEXT NOT NULL,
  fix        TEXT NOT NULL,
  answers    TEXT NOT NULL,
  definition TEXT NOT NULL
) STRICT, WITHOUT ROWID;
