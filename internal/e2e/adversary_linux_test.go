package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/journal"
)

// posterName is the name by which the test binary is a program that posts to each
// socket that it finds in folders.
const posterName = "post"

func posterMain(args []string) int {
	var posts int
	for _, dir := range args {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.Type()&fs.ModeSocket == 0 {
				return nil
			}
			c := http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}}}
			for _, act := range []string{"answer-approval", "cancel", "resume", "stop", "restart", "reload"} {
				body := strings.NewReader(`{"agent":"a","agents":["a"],"id":"1","answer":"approved","by":"a person"}`)
				if resp, err := c.Post("http://x/v1/"+act, "application/json", body); err == nil {
					resp.Body.Close()
					posts++
				}
			}
			return nil
		})
	}
	if posts > 0 {
		fmt.Println(posts, "answers")
	}
	return 0
}

const writesOver = "writes over its prompt, and all that tells of it"

// lies are what an agent tries that wants to be done without having done anything. Its
// shell is in its directory.
var lies = map[string]string{
	"only claims": "true",
	"writes that it is done": `cd .heartbeat; d=$(sed -n 's/.*"delivery_id":"\([0-9a-f]*\)".*/\1/p' .in-flight | head -n 1)
printf '{"delivery_id":"%s","entry_id":"x","source":"send","attempt":1,"delivered_at":"2999-01-01T00:00:00Z","reply":"done","verdict":{"by":"check","iteration":1}}\n' "$d" >> outbox.jsonl`,
	"puts an outbox in its place": `cd .heartbeat; d=$(sed -n 's/.*"delivery_id":"\([0-9a-f]*\)".*/\1/p' .in-flight | head -n 1)
printf '{"delivery_id":"%s","entry_id":"x","attempt":1,"verdict":{"by":"check","iteration":1}}\n' "$d" > new; mv new outbox.jsonl`,
	"says that no check is made": `cd .heartbeat; sed -i 's/"checked": *true/"checked":false/g' .in-flight session.json inbox.jsonl`,
	"removes what is in flight":  "rm -f .heartbeat/.in-flight",
	"moves its own cursor":       `cd .heartbeat; rm -f .in-flight; stat -c %s inbox.jsonl > .inbox-offset`,
	"edits what is in flight":    `cd .heartbeat; sed -i 's/"delivery_id":"[0-9a-f]*"/"delivery_id":"0123456789ab"/; s/"checked": *true/"checked":false/; s/"state":"[a-z]*"/"state":"background"/' .in-flight`,
	"makes up its delivery":      `cd .heartbeat; sed -i 's/"delivery_id":"[0-9a-f]\{4\}/"delivery_id":"0123/' .in-flight`,
	writesOver: `cd .heartbeat; of() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" .in-flight | head -n 1; }; s=$(of start_offset)
line=$(tail -c +$((s + 1)) inbox.jsonl | head -n 1 | sed 's/"prompt":"lie/"prompt":"Lie/'); printf %s "$line" | dd of=inbox.jsonl bs=1 seek="$s" conv=notrunc 2>/dev/null
id=$(printf %s "$line" | sha256sum | cut -c 1-64); d=$({ printf '%s\0%s\0' "$(of generation)" "$s"; printf %s "$line"; } | sha256sum | cut -c 1-12)
sed -i "s/\(prompt[^a-z]*\)lie/\1Lie/; s/\"entry_id\":\"[0-9a-f]*\"/\"entry_id\":\"$id\"/; s/\"delivery_id\":\"[0-9a-f]*\"/\"delivery_id\":\"$d\"/" .in-flight; rm -f .ids`,
	"says that it is unproven":    `cd .heartbeat; sed -i 's/"state":"[a-z]*"/"state":"unproven"/' .in-flight`,
	"edits its session":           `cd .heartbeat; sed -i 's/"phase": *"[a-z]*"/"phase":"idle"/; s/"checked": *true/"checked":false/g' session.json`,
	"removes its session":         "rm -f .heartbeat/session.json",
	"approves itself":             `for id in $(HEARTBEAT approval | grep -Eo '^[0-9a-f]{8}'); do HEARTBEAT approval approve "$id"; done; HEARTBEAT approval approve 1; HEARTBEAT cancel a`,
	"approves itself, as another": `(env -u HEARTBEAT_SESSION setsid HEARTBEAT resume a </dev/null >/dev/null 2>&1 &) ; env -i HOME="$HOME" setsid HEARTBEAT -f FILE approval approve 1`,
	"posts to the sockets":        "POST DIR > posted; [ -s posted ]",
}

// claimed is what a liar says at last.
const claimed = "All is done, I have checked it. <promise>ALL DONE</promise>"

// tellers makes the programs that lies need, and returns what makes a command of a lie.
func (f *fleet) tellers() func(lie string) string {
	f.t.Helper()
	poster := filepath.Join(f.Dir, posterName)
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, poster)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.NewReplacer(
		"POST", poster, "HEARTBEAT ", filepath.Join(f.bin, "heartbeat")+" ", "/STATE", filepath.Join(f.Dir, "state"), "DIR", f.Dir, "FILE", f.file,
	).Replace
}

// TestNobodyIsDoneByLying: whatever an agent writes, says and calls, nothing is done
// without a check that has passed, nothing is lost, and each verdict is applied once.
func TestNobodyIsDoneByLying(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(lies))
	if !*testbed.Full { // a minute of pauses between its sessions
		names = slices.DeleteFunc(names, func(name string) bool { return name == "removes its session" })
	}
	for _, name := range testbed.SampleOf(t, names, 8) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, client{name: "simulate"}, []string{
				`until: {check: [sh, -c, "[ -e ../allowed ] || { echo not yet; exit 1; }"], promise: ALL DONE, max-iterations: 2}`,
			})
			f.teach(behaviour{match: "lie", bash: f.tellers()(lies[name]), reply: claimed}, behaviour{match: "honest", reply: claimed})
			for _, id := range []string{"1", "2"} {
				f.must("lie", "send", "a", "-", "--id", id)
			}
			f.once()
			if posted, err := os.ReadFile(filepath.Join(f.Work, "posted")); err == nil && len(posted) == 0 {
				t.Error("no socket was found")
			}
			f.judge("1", "2")
			if done := f.passed(); len(done) > 0 {
				t.Errorf("checks have passed: %q", done)
			}
			if told := f.journal(journal.Forged); name == writesOver && (len(told) != 2 || !strings.Contains(told[0].Reason.Raw(), "says something else")) {
				t.Errorf("what was written over is not told: %+v", told)
			}
			letters, err := promise.Ask(f.ask).DeadLetters("a")
			if err != nil {
				t.Error(err)
			}
			for _, d := range letters {
				if d.Prompt != "lie" && d.Prompt != "" {
					t.Errorf("a dead letter says %q", d.Prompt)
				}
			}
			f.write(filepath.Join(f.Dir, "allowed"), "")
			f.must("be honest", "send", "a", "-", "--id", "3")
			f.once()
			f.judge("1", "2", "3")
			if done := f.outbox(); len(f.passed()) != 1 || len(done) == 0 || done[len(done)-1].ID != "3" {
				t.Errorf("done: %+v", done)
			}
		})
	}
}

// once works until nothing is left to do.
func (f *fleet) once() {
	f.t.Helper()
	s := f.start("--once")
	select {
	case <-s.done:
	case <-time.After(patience):
		f.t.Fatal("heartbeat run --once does not end")
	}
	f.gone()
}

// passed are the entries whose check has passed.
func (f *fleet) passed() (all []string) {
	for _, e := range f.journal(journal.Checked) {
		if e.Verdict == "passed" {
			all = append(all, e.Entry)
		}
	}
	return all
}

// judge checks that what is done was proven or is told as forged, that each prompt is
// done or a dead letter, and that each verdict was told once.
func (f *fleet) judge(ids ...string) {
	f.t.Helper()
	passed, known := f.passed(), map[string]bool{}
	var forged []string
	for _, e := range f.journal(journal.Forged) {
		forged = append(forged, e.Entry)
	}
	for _, d := range f.outbox() {
		switch {
		case slices.Contains(passed, d.DeliveryID):
			known[d.ID] = true
		case !slices.Contains(forged, d.DeliveryID):
			f.t.Errorf("it is done without a check: %+v", d)
		}
	}
	for _, d := range f.dead() {
		known[d.ID] = true
	}
	for _, id := range ids {
		if !known[id] {
			f.t.Errorf("prompt %s is lost: done %+v, dead letters %+v, forged %q", id, f.outbox(), f.dead(), forged)
		}
	}
	once := map[string]bool{}
	for _, e := range f.journal(journal.Checked) {
		what := fmt.Sprintf("%s, iteration %d", e.Entry, e.Iteration)
		if e.Verdict != "check-again" && e.Verdict != "check-trouble" && once[what] {
			f.t.Errorf("%s has two verdicts", what)
		}
		once[what] = true
	}
}
