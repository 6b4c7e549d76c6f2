CREATE TABLE facts (
  -- What people were told about the fleet, so that the next run tells nothing twice. One row for
  -- each fact that was seen. fact: its name, the same after a restart. agent: '' for what is about
  -- the fleet. kind, urgent, since, text, remedy, link: as it was seen last. slow, once, only_to,
  -- not_to, about, quiet: how it is told, and to whom alone or not. seen, told: when it was first
  -- seen, and when it was told last (0: not yet). reminders: how often it was told. gone: since
  -- when it is not true (0: it is). end_told: 1 if its end was told. returns: how often it has come
  -- back. missed: how often it has happened since it was told. happens: 1 for what happens, 0 for
  -- what lasts.
  fact      TEXT PRIMARY KEY,
  agent     TEXT NOT NULL,
  kind      TEXT NOT NULL,
  urgent    INTEGER NOT NULL,
  since     INTEGER NOT NULL,
  text      TEXT NOT NULL,
  remedy    TEXT NOT NULL,
  link      TEXT NOT NULL,
  slow      INTEGER NOT NULL,
  once      INTEGER NOT NULL,
  only_to   TEXT NOT NULL,
  not_to    TEXT NOT NULL,
  about     TEXT NOT NULL,
  quiet     INTEGER NOT NULL,
  seen      INTEGER NOT NULL,
  told      INTEGER NOT NULL,
  reminders INTEGER NOT NULL,
  gone      INTEGER NOT NULL,
  end_told  INTEGER NOT NULL,
  returns   INTEGER NOT NULL,
  missed    INTEGER NOT NULL,
  happens   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE facts_untold (
  -- What has happened since a fact was told, in the order of n. what: text for what is told of
  -- it, about for what it is about.
  fact  TEXT NOT NULL,
  what  TEXT NOT NULL,
  n     INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (fact, what, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE targets (
  -- The targets of notify: that have got something, or are to get it. next: when the message is
  -- tried again. failing: since when attempts fail (0: the last one did not). why: why.
  -- arrived: when a message arrived last. dropped: how many notices were too many. unnamed: 1
  -- while the fleet's file does not name it. message: the key of the message that is on its way
  -- ('': none). made, attempts: when that was made, and how often it was tried.
  target   TEXT PRIMARY KEY,
  next     INTEGER NOT NULL,
  failing  INTEGER NOT NULL,
  why      TEXT NOT NULL,
  arrived  INTEGER NOT NULL,
  dropped  INTEGER NOT NULL,
  unnamed  INTEGER NOT NULL,
  message  TEXT NOT NULL,
  made     INTEGER NOT NULL,
  attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE notices (
  -- The notices on their way to each target, until they have arrived. sending: 1 for those of the
  -- target's message; 0 for those that wait until due. notice: the key that a notice keeps.
  -- event, kind, agent, urgent, at, since, over, text, remedy, link, times, entry, reply, only_to,
  -- not_to: what it says, as JSON of notify has it.
  target  TEXT NOT NULL,
  sending INTEGER NOT NULL,
  notice  TEXT NOT NULL,
  due     INTEGER NOT NULL,
  event   TEXT NOT NULL,
  kind    TEXT NOT NULL,
  agent   TEXT NOT NULL,
  urgent  INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  since   INTEGER NOT NULL,
  over    INTEGER NOT NULL,
  text    TEXT NOT NULL,
  remedy  TEXT NOT NULL,
  link    TEXT NOT NULL,
  times   INTEGER NOT NULL,
  entry   TEXT NOT NULL,
  reply   TEXT NOT NULL,
  only_to TEXT NOT NULL,
  not_to  TEXT NOT NULL,
  PRIMARY KEY (target, sending, notice)
) STRICT, WITHOUT ROWID;

CREATE TABLE notices_about (
  -- What a notice is about that may have gone since: dead letters, in the order of n.
  target  TEXT NOT NULL,
  sending INTEGER NOT NULL,
  notice  TEXT NOT NULL,
  n       INTEGER NOT NULL,
  about   TEXT NOT NULL,
  PRIMARY KEY (target, sending, notice, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE letters_read (
  -- How far the dead letters and the replies of each agent were read. dead, reply: the time of
  -- the last one, in nanoseconds of Unix time. reply_id: the delivery id of the last reply.
  agent    TEXT PRIMARY KEY,
  dead     INTEGER NOT NULL,
  reply    INTEGER NOT NULL,
  reply_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE replies_passed (
  -- The last 500 replies that were passed on. reply: its key. n: in their order.
  reply TEXT PRIMARY KEY,
  n     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_heads (
  -- Since when which prompt is the first of an agent's queue, after a minute.
  agent  TEXT PRIMARY KEY,
  prompt TEXT NOT NULL,
  since  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ping_fails (
  -- Since when the pings of the run fail, and why. One row while they do.
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  since INTEGER NOT NULL,
  why   TEXT NOT NULL
) STRICT;

CREATE TABLE messages (
  -- What became of each message, for people and programs to read (heartbeat notify log). n: in
  -- order. at: when. target: to whom. outcome: sent, failed or given-up. replies: how many of its
  -- notices were the reply to a prompt. why: why it was not sent. body: the record as JSON, as
  -- heartbeat notify log -o json prints it; no statement looks into it. The oldest are removed
  -- beyond 10,000.
  n       INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL,
  target  TEXT NOT NULL,
  outcome TEXT NOT NULL,
  replies INTEGER NOT NULL,
  why     TEXT NOT NULL,
  body    TEXT NOT NULL
) STRICT;
CREATE INDEX messages_target ON messages (target, n);
