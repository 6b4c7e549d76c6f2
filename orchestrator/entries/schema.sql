CREATE TABLE queues (
  -- The queue of each agent. agent: its key in agents. binding: the number of the agent's binding
  -- to this scheduler; who moves an entry names it, and one with another number moves nothing.
  -- seq: the last number that was given to an entry or to a place in the queue. done, dead: the last
  -- numbers that were given to ends. gone: how many dead entries are dead no more: queued again, or
  -- purged.
  agent   TEXT PRIMARY KEY,
  binding INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  done    INTEGER NOT NULL,
  dead    INTEGER NOT NULL,
  gone    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE entries (
  -- The prompts of each agent, a row each, from when they are accepted until 90 days after their
  -- end. seq: in the order in which they were accepted. delivery: 12 hex digits, the same for each
  -- attempt. entry_id: the SHA-256 of its line. id: what its sender named it, or ''. source: who
  -- sent it. state: later, queued; in flight offered, taken, started, background, checking,
  -- unproven; suspended; done, dead, dropped. lane: 0 returning after a person's answer, 1 urgent,
  -- 2 the others; place: its order in the lane. not_before: when it is to be queued; 0: at once.
  -- attempt: the hand-overs; repeats: the interruptions that used up one. untouched: 1 while no
  -- session can have worked on an earlier attempt. unread: 1 once a session has not read the file
  -- that it was handed over in. checked: 1 if a check has to pass. iteration: the hand-overs that a
  -- check has followed, and the present one. most: how many there may be; 0: any number. check_no:
  -- the last check that was asked for. claimed: when the session said that it is done, while that
  -- is checked. interrupted: the state in which its session ended, if it is checked for that.
  -- handover: the number of the present hand-over in handovers. failure: the API failure that ended
  -- its turn. cancel: what a person wants of it once its session is gone: for-good or again.
  -- suspended: since when it waits for a person beside the queue; conversation: the client's in
  -- which it goes on afterwards. ended: when it ended; 0: it has not. reason: why it is dead; cause:
  -- what happened, in a line. n: its number among those that are done, or among the dead ones, in
  -- the order in which that was committed; 0: it is neither.
  agent       TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  delivery    TEXT NOT NULL,
  entry_id    TEXT NOT NULL,
  id          TEXT NOT NULL,
  source      TEXT NOT NULL,
  state       TEXT NOT NULL,
  lane        INTEGER NOT NULL,
  place       INTEGER NOT NULL,
  not_before  INTEGER NOT NULL,
  accepted    INTEGER NOT NULL,
  attempt     INTEGER NOT NULL,
  repeats     INTEGER NOT NULL,
  untouched   INTEGER NOT NULL,
  unread      INTEGER NOT NULL,
  checked     INTEGER NOT NULL,
  iteration   INTEGER NOT NULL,
  most        INTEGER NOT NULL,
  check_no    INTEGER NOT NULL,
  claimed     INTEGER NOT NULL,
  interrupted TEXT NOT NULL,
  handover    INTEGER NOT NULL,
  failure     TEXT NOT NULL,
  cancel      TEXT NOT NULL,
  suspended   INTEGER NOT NULL,
  conversation TEXT NOT NULL,
  ended       INTEGER NOT NULL,
  reason      TEXT NOT NULL,
  cause       TEXT NOT NULL,
  n           INTEGER NOT NULL,
  PRIMARY KEY (agent, seq),
  UNIQUE (agent, delivery)
) STRICT, WITHOUT ROWID;
CREATE INDEX entries_next ON entries (agent, lane, place) WHERE state = 'queued';
CREATE INDEX entries_live ON entries (agent, state, lane) WHERE ended = 0;
CREATE INDEX entries_due ON entries (not_before) WHERE state = 'later';
CREATE INDEX entries_ended ON entries (ended) WHERE ended > 0;
CREATE INDEX entries_ends ON entries (agent, state, n) WHERE n > 0;

CREATE TABLE texts (
  -- What each entry says. prompt: the text. hash: its SHA-256, compared at each hand-over. line:
  -- the line of the inbox that it came in; empty: the envelope that its other columns make. length:
  -- how long the line was, in bytes at least, where it is not here whole; 0: it is.
  agent  TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  prompt TEXT NOT NULL,
  hash   TEXT NOT NULL,
  line   BLOB NOT NULL,
  length INTEGER NOT NULL,
  PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE ids (
  -- The ids that senders gave, for seven days, the last 100,000 of each agent, and those of entries
  -- that have not ended: an id comes once.
  agent TEXT NOT NULL,
  id    TEXT NOT NULL,
  seq   INTEGER NOT NULL,
  at    INTEGER NOT NULL,
  PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ids_seq ON ids (agent, seq);

CREATE TABLE handovers (
  -- Each hand-over of an entry. n: from 1. session: to whom. via: kickoff, the prompt argument of a
  -- session that begins; stop, a Stop hook; resume, by going on with its conversation. at: when.
  -- prompt_id: the client's. transcript, place: where the client's record would show it. file: the
  -- file whose name was handed over, or ''. unmarked: 1 where a repeat was handed over without a
  -- word that it is one. came: the furthest state that the entry reached in it: offered, taken,
  -- started or background. ended: when it was over; 0: it is not. outcome: how: done; checking: what
  -- comes of the check is in verdicts; withdrawn: it reached nobody; again: the entry was handed over
  -- once more; given-again: the store is older; dead; or what was decided when its session was gone.
  agent      TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  n          INTEGER NOT NULL,
  session    TEXT NOT NULL,
  via        TEXT NOT NULL,
  at         INTEGER NOT NULL,
  prompt_id  TEXT NOT NULL,
  transcript TEXT NOT NULL,
  place      INTEGER NOT NULL,
  file       TEXT NOT NULL,
  unmarked   INTEGER NOT NULL,
  came       TEXT NOT NULL,
  ended      INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  PRIMARY KEY (agent, seq, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE replies (
  -- What a session has said of an entry when its turn was over, the last time. cut: 1 if it was
  -- longer than 64 KiB. abandoned: the background tasks that still ran, a line each.
  agent     TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  session   TEXT NOT NULL,
  reply     TEXT NOT NULL,
  cut       INTEGER NOT NULL,
  abandoned TEXT NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE shown (
  -- What the next hand-over of an entry shows. output: what its last check said. answers: what
  -- people have answered to its agent.
  agent   TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  output  TEXT NOT NULL,
  answers TEXT NOT NULL,
  PRIMARY KEY (agent, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdicts (
  -- Each verdict about an entry's work. check_no: which check. iteration: what people call it.
  -- passed: 1 if its work is done. reason: why the entry was given up, or ''. by_whom: what
  -- decided: check, promise, or who approved. why: what the check ended with. took: in ms. at: when.
  -- worked: how long the agent worked on the iteration, in ms. said: a digest of what the check
  -- printed, without digits. files: a digest of the agent's files after it. same: 1 if they were
  -- before it what they were after the check before. told: 1 if nothing was checked, and the
  -- agent was told what people have answered.
  agent     TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  check_no  INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  passed    INTEGER NOT NULL,
  reason    TEXT NOT NULL,
  by_whom   TEXT NOT NULL,
  why       TEXT NOT NULL,
  took      INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  worked    INTEGER NOT NULL,
  said      TEXT NOT NULL,
  files     TEXT NOT NULL,
  same      INTEGER NOT NULL,
  told      INTEGER NOT NULL,
  PRIMARY KEY (agent, seq, check_no)
) STRICT, WITHOUT ROWID;
