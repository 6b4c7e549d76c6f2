ALTER TABLE awaited ADD COLUMN asked_by /* the agent whose session asked for the wait; '': a
  person; '-': a process that is no person's and of no session. A session ends only the waits of
  its agent's sessions. */ TEXT NOT NULL DEFAULT '';
