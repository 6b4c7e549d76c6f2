package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// wallTime is one in our files, and in the client's.
var wallTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

// setClock makes it look as if the wall clock had been set by d: what was noted
// before is as far off.
func (l *lab) setClock(d time.Duration) {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.home, "*"))
	hidden, err2 := filepath.Glob(filepath.Join(l.home, ".*"))
	if err != nil || err2 != nil {
		l.t.Fatal(err, err2)
	}
	for _, path := range append(append(files, hidden...), l.transcript) {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		moved := wallTime.ReplaceAllFunc(data, func(text []byte) []byte {
			at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(text))
			if err != nil || at.Year() < 1000 {
				return text
			}
			return []byte(at.Add(-d).Format(`"` + time.RFC3339Nano + `"`))
		})
		if err := os.WriteFile(path, moved, 0o600); err != nil {
			l.t.Fatal(err)
		}
		at := info.ModTime().Add(-d)
		if err := os.Chtimes(path, at, at); err != nil {
			l.t.Fatal(err)
		}
	}
}

// steps are what a time server, a person or a suspended machine sets a clock by.
var steps = []time.Duration{
	-30 * 365 * 24 * time.Hour, -25 * time.Hour, -time.Hour, -3 * time.Second, 0, 3 * time.Second, time.Hour, 30 * 365 * 24 * time.Hour,
}

// Finished work came again when the clock had been set back meanwhile: the Stop
// that acknowledges it was taken for one that was called before, and the
// transcript's proof for an older one.
func TestAClockThatIsSetRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, d := range steps {
		t.Run(fmt.Sprint("the next Stop, ", d), func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two", "three"})
			l.handsOver("two", nil)
			l.setClock(d)
			l.handsOver("three", fields{"stop_hook_active": true})
			if n := len(l.replies()); n != 2 {
				t.Errorf("%d replies\n%s", n, l.log())
			}
		})
		t.Run(fmt.Sprint("the transcript, ", d), func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two", "three"})
			l.handsOver("two", nil)
			clienttest.Append(t, l.transcript, `{"timestamp":"`+time.Now().Format(time.RFC3339Nano)+`",`+clienttest.UserLine(clienttest.Feedback + "[x hook]: two")[1:])
			l.setClock(d)
			l.handsOver("three", fields{"prompt_id": "P2"})
		})
		t.Run(fmt.Sprint("recovered, ", d), func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two"})
			l.handsOver("two", nil)
			clienttest.Append(t, l.transcript, clienttest.UserLine(clienttest.Feedback+"[x hook]: two"))
			l.setClock(d)
			if a := handover.Arrived(*l.flight()); a != inbox.Seen {
				t.Errorf("arrived: %v", a)
			}
		})
		t.Run(fmt.Sprint("hand-wired, ", d), func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\nthree")
			o.transcript = filepath.Join(o.home, "t.jsonl")
			blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
			o.setClock(d)
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true})), "two")
			clienttest.Append(t, o.transcript, clienttest.UserLine(clienttest.Feedback+"two"))
			o.setClock(d)
			o.append("") // the last line's end
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"prompt_id": "P2"})), "three")
		})
	}
}

// What a session's record says has passed is what has passed.
func TestAClockThatIsSetLetsNoTimePass(t *testing.T) {
	t.Parallel()
	for _, d := range steps {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
			l := newLab(t, persistent, func(r *Record) {
				r.StartedAt, r.Since, r.TypedAt = ago(time.Hour), ago(10*time.Minute), ago(time.Minute)
				r.Work = &Work{DeliveryID: "d", Since: ago(5 * time.Minute)}
				r.Ruling = &Ruling{Why: EndDrained, At: ago(time.Second)}
			})
			for range 3 { // each reader writes it again
				l.setClock(d)
				l.change(func(*Record) {})
			}
			r := l.record()
			for name, c := range map[string]struct {
				at   time.Time
				want time.Duration
			}{
				"started": {r.StartedAt, time.Hour}, "since": {r.Since, 10 * time.Minute}, "typed": {r.TypedAt, time.Minute},
				"work": {r.Work.Since, 5 * time.Minute}, "ruled": {r.Ruling.At, time.Second},
			} {
				if got := time.Since(c.at); got < c.want-time.Second || got > c.want+time.Minute {
					t.Errorf("%s %s ago, want %s", name, got, c.want)
				}
			}
			if !r.BoundAt.IsZero() {
				t.Errorf("bound at %s", r.BoundAt)
			}
		})
	}
}

// A person who has typed hushes the queue for as long as before.
func TestAClockThatIsSetBackHushesNoLonger(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"}, persistent, func(r *Record) { r.Policy.TypingPause = 2 * time.Second })
	l.change(func(r *Record) { r.TypedAt = time.Now() })
	l.setClock(-time.Hour)
	if r := ended(t, l.wait()); r.status != 2 || r.stderr != "two" {
		t.Errorf("%+v\n%s", r, l.log())
	}
}
