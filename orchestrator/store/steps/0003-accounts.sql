CREATE TABLE accounts (
  -- What is known of the accounts that agents use, as far as the next run has to know it.
  -- account: a name for it that shows no secret. until, since, source, reason: it is parked until
  -- then, since when, how that is known, and why; all 0 and '' if it is not.
  -- five_hour_used, seven_day_used: how far its limits are used, in percent, as a client has
  -- shown it last, and when these windows end; 0: not known.
  account          TEXT PRIMARY KEY,
  until            INTEGER NOT NULL,
  since            INTEGER NOT NULL,
  source           TEXT NOT NULL,
  reason           TEXT NOT NULL,
  five_hour_used   REAL NOT NULL,
  five_hour_resets INTEGER NOT NULL,
  seven_day_used   REAL NOT NULL,
  seven_day_resets INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
