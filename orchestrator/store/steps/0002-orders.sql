CREATE TABLE orders (
  -- What people have ordered by the page in the last 25 hours, so that each is done once.
  -- token: whose. form: the key of the form that was sent. what: what was ordered by it.
  -- at: when. done: 1 once it is known what became of it. failed: 1 if it was not done.
  -- answer: what was said of it.
  token  TEXT NOT NULL,
  form   TEXT NOT NULL,
  what   TEXT NOT NULL,
  at     INTEGER NOT NULL,
  done   INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  answer TEXT NOT NULL,
  PRIMARY KEY (token, form, what)
) STRICT, WITHOUT ROWID;
CREATE INDEX orders_at ON orders (at);
