package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
)

// TestToldIsOfTheSessionsOwnConversation: what the file says of another one, or
// what nobody can read, is passed over, and the last that counted stays.
func TestToldIsOfTheSessionsOwnConversation(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), ".heartbeat")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	r, at := new(hook.Record), time.Now()
	write := func(text string) {
		path := filepath.Join(home, ".status-line.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var k told
	cost := func() float64 {
		k.look(home, r, time.Now())
		if k.last == nil {
			return -1
		}
		return k.last.Cost
	}
	if got := cost(); got != -1 {
		t.Errorf("without a file: %v", got)
	}
	write(`{"session_id":"C","cost":{"total_cost_usd":1}}`)
	if got := cost(); got != -1 {
		t.Errorf("before the session is bound: %v", got)
	}
	r.ClientSession = "C"
	for _, step := range []struct {
		text string
		want float64
	}{
		{"", 1}, // it was there before the client was bound
		{`{"session_id":"C","cost":{"total_cost_usd":2}}`, 2},
		{`{"session_id":"another","cost":{"total_cost_usd":9}}`, 2},
		{`{"session_id":"C","cost":`, 2},
		{`{"session_id":"C","cost":{"total_cost_usd":3}}`, 3},
	} {
		if step.text != "" {
			write(step.text)
		}
		if got := cost(); got != step.want {
			t.Errorf("%s: %v, want %v", step.text, got, step.want)
		}
	}
}

// TestSignsAreOfTheSessionAndItsEntry: what another session has said, or garbage, is
// none, and what was said of one entry is not said of the next.
func TestSignsAreOfTheSessionAndItsEntry(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), ".heartbeat")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &hook.Record{Terms: hook.Terms{Session: "mine"}, Progress: hook.Progress{Work: &hook.Work{DeliveryID: "one"}}}
	now := time.Now()
	var s signs
	for i, step := range []struct{ file, delivery, want string }{
		{"", "one", ""},
		{`{"session":"an older one","text":"old"}`, "one", ""},
		{`{"session":"mine","text":"half"}`, "one", "half"},
		{"garbage", "one", "half"},
		{"", "two", ""},
		{`{"session":"mine","text":"anew"}`, "two", "anew"},
	} {
		if step.file != "" {
			path := filepath.Join(home, ".alive.json")
			at := now.Add(time.Duration(i) * time.Second)
			if err := errors.Join(os.WriteFile(path, []byte(step.file), 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		r.Work = &hook.Work{DeliveryID: step.delivery}
		now = now.Add(signEvery)
		s.look(home, r, now)
		got := ""
		if s.last != nil {
			got = s.last.Text
		}
		if got != step.want || (got != "") != !s.at().IsZero() {
			t.Errorf("step %d: %q at %v, want %q", i, got, s.at(), step.want)
		}
	}
}

// TestAFigureIsOfTheTimeItIsReadWith: a figure that came between the look at the file's time
// and the reading of it was taken for one of that time, and the entry that it was about had
// cost nothing: the one before it had cost both.
func TestAFigureIsOfTheTimeItIsReadWith(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), ".heartbeat")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	const figures = 2000 // the n-th is of the n-th second
	written := make(chan error, 1)
	go func() {
		path := filepath.Join(home, ".status-line.json")
		for n := range figures {
			text, at := fmt.Sprintf(`{"session_id":"C","cost":{"total_cost_usd":%d}}`, n+1), time.Unix(int64(n+1), 0)
			err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Chtimes(path+".new", at, at), os.Rename(path+".new", path))
			if err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	var k told
	r := new(hook.Record)
	r.ClientSession = "C"
	for done := false; !done; {
		select {
		case err := <-written:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		k.look(home, r, time.Now())
		if k.last != nil && k.last.Cost != float64(k.at.Unix()) {
			t.Fatalf("the figure of second %v is told as one of second %d", k.last.Cost, k.at.Unix())
		}
	}
	if k.last == nil || k.last.Cost != figures {
		t.Errorf("the last one is %+v", k.last)
	}
}
