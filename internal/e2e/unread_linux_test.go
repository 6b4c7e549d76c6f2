package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/fakeapi"
)

// TestALongPromptThatMayNotBeReadBeginsAnotherSession: handed over by a file that no rule
// lets the session read, it counted as done with "I cannot". A client that gets it whole
// (before 2.1.332) does it at once.
func TestALongPromptThatMayNotBeReadBeginsAnotherSession(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	const mark = "the middle of it"
	f := newFleet(t, c, nil, fakeapi.Rule{Match: mark, Answer: fakeapi.Answer{Text: "did it"}}, fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok"}})
	text, err := os.ReadFile(f.file)
	if err != nil {
		t.Fatal(err)
	}
	f.write(f.file, strings.Replace(string(text), "allow: [Bash]", "allow: [Bash]\n      deny: [Read]", 1))
	half := strings.Repeat("x y z ", hookclient.MostWhole/12)
	for _, prompt := range []string{"one", half + mark + half, "three"} {
		f.send(prompt)
	}
	f.must("", "run", "--once")
	var replies []string
	for _, d := range f.outbox() {
		replies = append(replies, d.Reply)
	}
	if want := []string{"ok", "did it", "ok"}; !slices.Equal(replies, want) || len(f.dead()) > 0 {
		t.Fatalf("done: %q, want %q; dead letters: %+v\n%s", replies, want, f.dead(), f.hookLog())
	}
	unread, ends := strings.Contains(f.hookLog(), " was not read: "), f.ends()
	if attempt := f.outbox()[1].Attempt; unread != (attempt == 2) || unread != (len(ends) == 2 && strings.HasPrefix(ends[0], "released (it has not read")) {
		t.Errorf("done at attempt %d; sessions ended by %q\n%s", attempt, ends, f.hookLog())
	}
}
