package doctor

import (
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
)

func queueFixtures() []fixture {
	const inboxFile = "work/.heartbeat/inbox.jsonl"
	return []fixture{
		{
			"queue-needs-person", Error, false,
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "rubbish") },
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "4") },
		},
		{
			"queue-unreadable", Error, false,
			func(r *rig) { r.must(os.Symlink(filepath.Join(r.home, "x"), r.agent.Inbox)); r.put("home/x", "one\n") },
			func(r *rig) { r.put(inboxFile, "one\n") },
		},
		{
			"cursor", Warning, true,
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "99") },
			func(r *rig) { r.put(inboxFile, "one\ntwo"); r.put("work/.heartbeat/.inbox-offset", "7") },
		},
		{
			"cursor", Warning, true,
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "2") },
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "8\n") },
		},
		{"orphan", Warning, true, (*rig).offer, (*rig).bury},
		{"orphan", Warning, true, (*rig).offer, (*rig).finish}, // its check has yet to run
		{ // somebody works there: it is no orphan
			"orphan", Warning, false,
			func(r *rig) { r.offer(); r.wiredEntry("", "") },
			func(r *rig) { r.offer(); r.hold(r.agent.Dir) },
		},
		{
			"torn-line", Warning, false,
			func(r *rig) { r.put(inboxFile, "one\nha"); r.age(inboxFile, time.Minute) },
			func(r *rig) { r.put(inboxFile, "one\nha") },
		},
		{
			"foreign-urgent", Warning, false,
			func(r *rig) {
				r.agent.Inbox = filepath.Join(r.agent.Dir, "inbox.jsonl")
				r.must(os.WriteFile(filepath.Join(r.agent.Dir, inbox.UrgentFile), []byte("a list of theirs\n"), 0o600))
			},
			func(r *rig) {
				r.agent.Inbox = filepath.Join(r.agent.Dir, "inbox.jsonl")
				r.must(os.WriteFile(filepath.Join(r.agent.Dir, inbox.UrgentFile), []byte(`{"heartbeat":1,"id":"x","source":"send","prompt":"x"}`+"\n"), 0o600))
			},
		},
		{"dead-letters", Warning, false, (*rig).bury, (*rig).offer},
		{
			"dead-letters-broken", Warning, false,
			func(r *rig) {
				r.bury()
				r.must(os.Truncate(filepath.Join(r.agent.Home, ".dead-letter.jsonl"), 1<<40)) // too much to read
			},
			(*rig).bury,
		},
		{
			"queue-file-unreadable", Warning, false,
			func(r *rig) { r.must(os.Mkdir(filepath.Join(r.agent.Home, "outbox.jsonl"), 0o700)) },
			func(r *rig) { r.put("outbox.jsonl", "{}\n") },
		},
	}
}

// hold takes a lock until the test's end.
func (r *rig) hold(path string) {
	r.t.Helper()
	unlock, err := flock.TryLock(path)
	r.must(err)
	r.t.Cleanup(func() { _ = unlock() })
}

// record writes the record of a session whose shim is this process, or none.
func (r *rig) record(alive bool) {
	r.t.Helper()
	shim := hook.Process{PID: 1 << 30, Start: 1}
	if alive {
		shim = self(r.t)
	}
	r.recordOf(shim)
}

func (r *rig) recordOf(shim hook.Process) {
	r.t.Helper()
	r.must(state.Save(filepath.Join(r.state, "live", "s.json"), session.Leftover{Agent: "triage", Session: "s", Shim: shim, Home: r.agent.Home}))
}

func lockFixtures() []fixture {
	const temp = "work/.heartbeat/.inbox-offset.tmp-0123456789abcdef"
	lock := func(r *rig, name string) string { return filepath.Join(r.agent.Home, name) }
	return []fixture{
		{
			"lock-no-file", Error, false,
			func(r *rig) { r.must(os.Mkdir(lock(r, inbox.HookLock), 0o700)) },
			func(r *rig) { r.put("work/.heartbeat/.hook-lock", "") },
		},
		{
			"lock-stuck", Error, false,
			func(r *rig) { r.hold(lock(r, inbox.HookLock)) },
			func(r *rig) {
				unlock, err := flock.TryLock(lock(r, inbox.HookLock))
				r.must(err)
				time.AfterFunc(50*time.Millisecond, func() { _ = unlock() })
			},
		},
		{
			"lock-stuck", Error, false,
			func(r *rig) { r.hold(lock(r, inbox.SessionLock)); r.record(false) },
			func(r *rig) { r.hold(lock(r, inbox.SessionLock)); r.record(true) },
		},
		{
			"session-without-run", Warning, false,
			func(r *rig) { r.hold(lock(r, inbox.SessionLock)); r.record(true) },
			func(r *rig) { r.hold(lock(r, inbox.SessionLock)); r.record(true); r.hold(r.agent.Dir) },
		},
		{
			"stale-files", Info, true,
			func(r *rig) { r.put(temp, ""); r.age(temp, 2*time.Hour) },
			func(r *rig) {
				r.put(temp, "")
				r.put("work/.heartbeat/mine.tmp-x", "")
				r.age("work/.heartbeat/mine.tmp-x", 2*time.Hour)
			},
		},
		{
			"corrupt-files", Info, false,
			func(r *rig) { r.put("work/.heartbeat/.in-flight.corrupt-20261121T000000.0Z", "") },
			func(*rig) {},
		},
		{"no-gitignore", Warning, true, func(r *rig) { r.remove("work/.heartbeat/.gitignore") }, func(r *rig) { r.remove("work/.heartbeat") }},
		{
			"clock-behind", Warning, false,
			func(r *rig) { r.put("work/.heartbeat/hook.log", ""); r.age("work/.heartbeat/hook.log", -time.Hour) },
			func(r *rig) { r.put("work/.heartbeat/hook.log", ""); r.age("work/.heartbeat/hook.log", -time.Minute) },
		},
	}
}
