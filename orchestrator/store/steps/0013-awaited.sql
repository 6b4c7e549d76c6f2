CREATE TABLE awaited (
  -- Who waits for the reply to which prompt (send --reply-to): a target of notify. prompt: its id.
  -- at: when that was asked for. due: when the prompt is sent, if that is later (0: at once).
  -- queued_before: 1 if the prompt was queued before. A row goes when the reply is on its way, and
  -- after 30 days.
  agent         TEXT NOT NULL,
  prompt        TEXT NOT NULL,
  target        TEXT NOT NULL,
  at            INTEGER NOT NULL,
  due           INTEGER NOT NULL,
  queued_before INTEGER NOT NULL,
  PRIMARY KEY (agent, prompt, target)
) STRICT, WITHOUT ROWID;
