package adopt

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// lab is a state directory with a store, and files of an earlier version.
type lab struct {
	*testing.T
	dir   string
	store *store.Store
	log   strings.Builder
}

func newLab(t *testing.T) *lab {
	l := &lab{T: t, dir: t.TempDir()}
	l.store = storetest.New(t, l.dir)
	return l
}

func (l *lab) put(name, text string) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) adopt() {
	l.Helper()
	if err := All(l.Context(), l.store, slog.New(slog.NewTextHandler(&l.log, nil))); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) count(query string) (n int) {
	l.Helper()
	if err := l.store.Read(l.Context(), func(v *store.View) error { _, err := v.One(query, nil, &n); return err }); err != nil {
		l.Fatal(err)
	}
	return n
}

// is checks whether a file of an earlier version, or a folder of those, is there.
func (l *lab) is(there bool, name string) {
	l.Helper()
	_, err := os.Lstat(filepath.Join(l.dir, name))
	if has := err == nil && name != Barrier; has != there {
		l.Errorf("%s: there: %v, want %v", name, has, there)
	}
}

// unbar removes what keeps earlier versions from running the fleet, as a person may.
func (l *lab) unbar() {
	l.Helper()
	if err := os.RemoveAll(filepath.Join(l.dir, Barrier)); err != nil {
		l.Fatal(err)
	}
}

// examples are what the files of earlier versions held, by their names in all, with the
// question that counts one row once it is taken over; of a folder files names one in it.
func examples() (files map[string]string, whole map[string]struct{ text, count string }) {
	files = map[string]string{"awaited": "awaited/a.json", "approvals": "approvals/done/4f1c02d3.json", "holds": "holds/a.json", "triggers": "triggers/a.json", "conversations": "conversations/a.json"} // one of a folder
	whole = map[string]struct{ text, count string }{
		"page/orders.json": {
			`[{"key":"t 0-AAAAAAAAAAAAAAAAAAAAAAAAAA pause a","at":"2026-11-01T10:00:00Z","done":true,"answer":"paused"}, null]`,
			`SELECT COUNT(*) FROM orders WHERE token = 't' AND what = 'pause a' AND done = 1 AND answer = 'paused'`,
		},
		"page/tokens.json": {
			`{"host":"heartbeat-x.localhost","links":[{"id":"b","name":"b","role":"act","made":"2026-11-01T10:00:00Z","until":"2026-11-01T10:10:00Z","sha256":"02"}],
				"tokens":[{"id":"a","name":"phone","role":"look","made":"2026-11-01T10:00:00Z","used":"2026-11-01T11:00:00Z","until":"2027-01-30T10:00:00Z","sha256":"01"}],
				"commands":[{"id":"c","name":"laptop","role":"command","made":"2026-11-01T10:00:00Z","until":"2027-01-30T10:00:00Z","sha256":"03"}]}`,
			`SELECT COUNT(*) FROM page WHERE host = 'heartbeat-x.localhost'
				AND EXISTS (SELECT 1 FROM tokens WHERE hash = '01' AND id = 'a' AND name = 'phone' AND role = 'look' AND link = 0 AND made = 1793527200000 AND used = made + 3600000 AND until = made + 7776000000)
				AND EXISTS (SELECT 1 FROM tokens WHERE hash = '02' AND role = 'act' AND link = 1 AND used = 0)
				AND EXISTS (SELECT 1 FROM tokens WHERE hash = '03' AND role = 'command' AND link = 0)`,
		},
		"journal.1.jsonl": {"{\"at\":\"2026-11-01T10:00:00Z\",\"agent\":\"a\",\"kind\":\"fired\"}\n\n{\"at\":\"2026", `SELECT COUNT(*) FROM events WHERE agent = 'a' AND kind = 'fired' AND at = 1793527200000 AND crc = -1 AND n = 1`},
		"journal.2.jsonl": {"no event\n{\"at\":\"2026-11-01T10:00:00Z\",\"kind\":\"removed\"}\n", `SELECT COUNT(*) FROM events WHERE agent = '' AND kind = 'removed'`},
		"journal.jsonl":   {"{\"at\":\"2026-11-01T10:00:00Z\",\"agent\":\"a\",\"kind\":\"fired\",\"crc\":\"00000000\"}\n", `SELECT COUNT(*) FROM events WHERE crc > 0`},
		"identities.json": {
			`{"Agents":[{"name":"new","dir":"/agents/a","key":"old","triggers":"aa"},{"name":"b","dir":"/agents/b","key":"b","gone":"2026-11-01T10:00:00Z"}]}`,
			`SELECT COUNT(*) FROM agents WHERE agent = 'old' AND name = 'new' AND dir = '/agents/a' AND triggers = 'aa' AND gone = 0 AND EXISTS (SELECT 1 FROM agents WHERE agent = 'b' AND gone = 1793527200000)`,
		},
		"paused.json": {
			`{"since":{"a":"2026-11-01T10:00:00Z","b":"2026-11-01T10:00:00Z"},"until":{"b":"2026-11-01T11:00:00Z"},"by":{"b":"a"}}`,
			`SELECT COUNT(*) FROM pauses WHERE agent = 'a' AND trigger = '' AND since = 1793527200000 AND until = 0 AND by_agent = ''
				AND EXISTS (SELECT 1 FROM pauses WHERE agent = 'b' AND until = since + 3600000 AND by_agent = 'a')`,
		},
		"holds": {
			`{"since":"2026-11-01T10:00:00Z","why":"4 failures","fix":"do","answers":"aa","definition":"dd"}`,
			`SELECT COUNT(*) FROM holds WHERE agent = 'a' AND since = 1793527200000 AND why = '4 failures' AND fix = 'do' AND answers = 'aa' AND definition = 'dd'`,
		},
		"triggers": {
			`{"triggers":[{"kind":"watch","name":"w","named":true,"core":"*.md","prompt":"pp","key":"w","gone":"2026-11-01T10:00:00Z","delay":7,"seen":{"x.md":{"size":1,"mtime":2,"ctime":3,"sha256":"ss"}},
				"recent":["2026-11-01T10:00:00Z"],"refused":[{"sender":"GitHub","fault":"late","since":"2026-11-01T10:00:00Z","last":"2026-11-01T11:00:00Z","times":2,"detail":"d"}],"paused":{"since":"2026-11-01T10:00:00Z","by":"b"}}],
				"used":{"w":3},"fired":{"cron-1":"2026-11-01T10:00:00Z"},"kept":{"poll-1":["one","two"]},"polled":{"poll-1":"2026-11-01T10:00:00Z"}}`,
			`SELECT COUNT(*) FROM triggers t JOIN trigger_names USING (agent, name) JOIN seen_files s USING (agent, trigger) JOIN recent_fires r USING (agent, trigger)
				JOIN refused_requests f USING (agent, trigger) JOIN pauses p USING (agent, trigger)
				WHERE t.agent = 'a' AND t.trigger = 'w' AND kind = 'watch' AND named = 1 AND core = '*.md' AND prompt = 'pp' AND gone = 1793527200000 AND delay = 7 AND used = 3
				AND file = 'x.md' AND size = 1 AND modified = 2 AND s.changed = 3 AND sum = 'ss' AND r.at = gone AND sender = 'GitHub' AND fault = 'late' AND last = f.since + 3600000
				AND times = 2 AND detail = 'd' AND p.since = gone AND by_agent = 'b'
				AND EXISTS (SELECT 1 FROM triggers WHERE trigger = 'cron-1' AND kind = 'cron' AND fired = 1793527200000)
				AND EXISTS (SELECT 1 FROM triggers JOIN fired_keys k USING (agent, trigger) WHERE trigger = 'poll-1' AND polled = 1793527200000 AND key = 'two' AND n = 2)`,
		},
		"conversations": {
			`{"id":"c","dir":"/agents/a","sessions":["one","two"]}`,
			`SELECT COUNT(*) FROM conversations WHERE agent = 'a' AND id = 'c' AND dir = '/agents/a' AND session = 'two' AND before = 'one'`,
		},
		"awaited": {
			`{"agent":"a","id":"x","target":"phone","at":"2026-11-01T10:00:00Z","due":"2026-11-01T11:00:00Z","before":true}`,
			`SELECT COUNT(*) FROM awaited WHERE agent = 'a' AND prompt = 'x' AND target = 'phone' AND at = 1793527200000 AND due = at + 3600000 AND queued_before = 1`,
		},
		"approvals": {
			`{"id":"4f1c02d3","agent":"new","key":"old","at":"2026-11-01T10:00:00Z","until":"2026-11-08T10:00:00Z","aside":true,"name":"release","category":"destroy","question":"Deploy?","payload":"x\u0000y","cut":true,
				"session":"s","entry":"e","iteration":2,"about":"h","state":"rejected","answered_at":"2026-11-01T11:00:00Z","by":"a person (phone)","note":"not now","person":true,"told":true,"needless":"gone"}`,
			`SELECT COUNT(*) FROM requests WHERE request = '4f1c02d3' AND agent = 'old' AND agent_name = 'new' AND at = 1793527200000 AND until = at + 604800000 AND aside = 1 AND approver = 'release'
				AND category = 'destroy' AND question = 'Deploy?' AND payload = 'x' || char(0) || 'y' AND cut = 1 AND session = 's' AND entry = 'e' AND iteration = 2 AND about = 'h' AND state = 'rejected'
				AND answered_at = at + 3600000 AND answered_by = 'a person (phone)' AND note = 'not now' AND person = 1 AND told = 1 AND needless = 'gone'`,
		},
		"notices.json": {
			`{"told":{"a/held":{"Key":"a/held","Agent":"a","Kind":"held","Urgent":true,"Since":"2026-11-01T10:00:00Z","Text":"x","Do":"y","Of":"z","First":"2026-11-01T10:00:00Z","At":"2026-11-01T10:00:10Z","Reminders":2,"Gone":"2026-11-01T11:00:00Z","Returns":1,
					"Pending":["one","two"],"Missed":2,"PendingOf":["d1"]}},
				"boxes":{"phone":{"waiting":[{"key":"k1","event":"happened","kind":"given-up","agent":"a","urgent":true,"at":"2026-11-01T10:00:00Z","text":"t","to":"phone","of":["d1","d2"],"due":"2026-11-01T10:00:02Z"}],
					"sending":{"key":"k2","made":"2026-11-01T10:00:00Z","attempts":3,"notices":[{"key":"k2","event":"began","kind":"held","urgent":true,"at":"2026-11-01T10:00:00Z","text":"u"}]},
					"next":"2026-11-01T10:05:00Z","failing":"2026-11-01T10:00:00Z","why":"refused"}},
				"marks":{"a":{"dead":"2026-11-01T10:00:00.000000001Z","reply":"2026-11-01T10:00:00Z","reply_id":"d9"}},
				"ping":{"since":"2026-11-01T10:00:00Z","why":"no route"},"heads":{"a":{"id":"p","since":"2026-11-01T10:00:00Z"}},"replied":["r1","r2"]}`,
			`SELECT COUNT(*) FROM facts WHERE fact = 'a/held' AND urgent = 1 AND since = 1793527200000 AND remedy = 'y' AND about = 'z' AND told = since + 10000 AND reminders = 2 AND gone = since + 3600000 AND returns = 1 AND missed = 2
				AND (SELECT COUNT(*) FROM facts_untold WHERE what = 'text') = 2 AND EXISTS (SELECT 1 FROM facts_untold WHERE what = 'about' AND value = 'd1')
				AND EXISTS (SELECT 1 FROM targets WHERE target = 'phone' AND why = 'refused' AND message = 'k2' AND attempts = 3 AND next = 1793527500000)
				AND EXISTS (SELECT 1 FROM notices WHERE sending = 0 AND notice = 'k1' AND only_to = 'phone' AND due = at + 2000) AND (SELECT COUNT(*) FROM notices_about WHERE notice = 'k1') = 2
				AND EXISTS (SELECT 1 FROM notices WHERE sending = 1 AND notice = 'k2' AND event = 'began')
				AND EXISTS (SELECT 1 FROM letters_read WHERE agent = 'a' AND dead = 1793527200000000001 AND reply_id = 'd9')
				AND EXISTS (SELECT 1 FROM ping_fails WHERE why = 'no route') AND EXISTS (SELECT 1 FROM queue_heads WHERE agent = 'a' AND prompt = 'p') AND (SELECT COUNT(*) FROM replies_passed) = 2`,
		},
		"notices.jsonl.1": {"{\"at\":\"2026-11-01T10:00:00Z\",\"target\":\"phone\",\"outcome\":\"given-up\",\"key\":\"k\",\"attempts\":5,\"why\":\"x\",\"notices\":[{\"key\":\"k\",\"to\":\"phone\",\"entry\":\"e\"}]}\n{\"cut", `SELECT COUNT(*) FROM messages WHERE target = 'phone' AND outcome = 'given-up' AND replies = 1 AND why = 'x' AND at = 1793527200000`},
		"notices.jsonl":   {"{\"at\":\"2026-11-01T10:00:00Z\",\"target\":\"phone\",\"outcome\":\"sent\",\"key\":\"k\",\"attempts\":1,\"notices\":[]}\n", `SELECT COUNT(*) FROM messages WHERE outcome = 'sent' AND replies = 0`},
		"foreign-stop-hooks.json": {
			`{"hooks":{"0123456789abcdef":{"command":"make test","agents":["a","b"],"since":"2026-11-01T10:00:00Z"}}}`,
			`SELECT COUNT(*) FROM stop_hooks WHERE hook = 'make test' AND agent = 'b' AND since = 1793527200000 AND EXISTS (SELECT 1 FROM stop_hooks WHERE agent = 'a')`,
		},
		"accounts.json": {
			`{"login abc": {"until":"2026-11-01T10:00:00Z","since":"2026-11-01T09:00:00Z","source":"status-line","reason":"why","limits":{"five_hour":{"used":100,"resets":"2026-11-01T10:00:00Z"}}}}`,
			`SELECT COUNT(*) FROM accounts WHERE account = 'login abc' AND until = 1793527200000 AND since = until - 3600000 AND source = 'status-line' AND reason = 'why' AND five_hour_used = 100 AND five_hour_resets = until AND seven_day_resets = 0`,
		},
	}
	return files, whole
}

// TestEachFileIsTakenOnce walks all files: one that is whole, one that is there again, one that
// is damaged.
func TestEachFileIsTakenOnce(t *testing.T) {
	t.Parallel()
	files, whole := examples()
	for _, o := range all {
		t.Run(o.file, func(t *testing.T) {
			t.Parallel()
			w, ok := whole[o.file]
			if !ok {
				t.Fatal("no example of it")
			}
			file := cmp.Or(files[o.file], o.file)
			l := newLab(t)
			l.put(file, w.text)
			l.adopt()
			if n := l.count(w.count); n != 1 || l.log.Len() > 0 {
				t.Errorf("%d rows, want 1\n%s", n, &l.log)
			}
			l.is(false, o.file)
			l.is(true, filepath.Join(Folder, o.file))
			if back := l.back(); back.count(w.count) != 1 || back.log.Len() > 0 {
				t.Errorf("by the way back: not the same\n%s", &back.log)
			}
			l.unbar()
			l.put(file, w.text) // an earlier version has run again
			l.adopt()
			if n := l.count(w.count); n != 1 || !strings.Contains(l.log.String(), "not used any more") {
				t.Errorf("%d rows, want 1\n%s", n, &l.log)
			}
			l.is(true, filepath.Join(Folder, o.file+".1"))

			l = newLab(t)
			l.put(file, `{"cut`)
			l.adopt()
			l.is(true, filepath.Join(Folder, o.file))
			if !strings.Contains(l.log.String(), "is damaged") || !strings.Contains(l.log.String(), "lost=") {
				t.Errorf("nothing is told:\n%s", &l.log)
			}
		})
	}
}

// TestRequestsAreTakenAsTheyAre: one that has its answer counts as that, also where a kill left it
// among those that wait; what nobody can read is neither a yes nor a no.
func TestRequestsAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	put := func(name, id, state string) {
		l.put("approvals/"+name+".json", `{"id":"`+id+`","agent":"a","key":"a","at":"2026-11-01T10:00:00Z","until":"2026-11-08T10:00:00Z","question":"q","state":"`+state+`"}`)
	}
	put("ffffffff", "ffffffff", "asked")
	put("done/ffffffff", "ffffffff", "approved")
	put("0a0a0a0a", "0a0a0a0a", "asked")
	put("done/0b0b0b0b", "0a0a0a0a", "approved") // another's yes
	put("done/0c0c0c0c", "0c0c0c0c", "asked")
	put("0d0d0d0d", "0d0d0d0d", "approved")
	l.put("approvals/.lock", "")
	l.put("approvals/done/README", "")
	l.adopt()
	if n := l.count(`SELECT COUNT(*) FROM requests WHERE request || ' ' || state IN ('ffffffff approved', '0a0a0a0a asked')`); n != 2 || l.count(`SELECT COUNT(*) FROM requests`) != 2 {
		t.Errorf("%d of 2 requests are right", n)
	}
	if n := strings.Count(l.log.String(), "a file of the version before"); n != 3 {
		t.Errorf("%d damaged files are told, want 3:\n%s", n, &l.log)
	}
}
