package inbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// do does the first n entries.
func (r *rig) do(n int) {
	r.t.Helper()
	for range n {
		r.offer()
		r.advance(Taken)
		r.ack()
	}
}

// Each answer says what counts as done and what is handed over, and that is so.
func TestEachAnswerDoesWhatItSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(*rig)
		want string // name@offset done/given …
	}{
		"a corrupt cursor without a sidecar": {
			func(r *rig) { r.put("inbox.jsonl", "one\n\ntwo\nthree\n"); r.put(CursorFile, "rubbish") },
			"start@0 0/3 one, end@15 3/0 ",
		},
		"another file with the same line over and over": {
			func(r *rig) {
				r.echo("again\nagain\nagain\n")
				r.do(2)
				r.put("new", r.get("inbox.jsonl"))
				r.rename("new", "inbox.jsonl")
			},
			"start@0 0/3 again, last@6 1/2 again, cursor@12 2/1 again, end@18 3/0 ",
		},
		"cut within what is done": {
			func(r *rig) {
				r.echo("{\"heartbeat\":1,\"id\":\"a\",\"prompt\":\"one\"}\ntwo\nthree\n")
				r.do(3)
				r.put("inbox.jsonl", "{\"heartbeat\":1,\"id\":\"a\",\"prompt\":\"one\"}\ntwo\n")
			},
			"start@0 0/2 one, last@40 1/1 two, end@44 2/0 ",
		},
		"cursor and sidecar removed": {
			func(r *rig) { r.echo("one\ntwo\nthree\n"); r.do(2); r.remove(CursorFile); r.remove(metaFile) },
			"start@0 0/3 one, last@8 2/1 three, end@14 3/0 ",
		},
		"a last line without its newline": {
			func(r *rig) { r.put("inbox.jsonl", "one\ntw"); r.put(CursorFile, "rubbish") },
			"start@0 0/1 one, end@4 1/0 ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			tt.make(r)
			asked, err := r.Question()
			if err != nil || asked == nil || asked.InFlight != nil {
				t.Fatalf("%+v, %v", asked, err)
			}
			var got []string
			for _, a := range asked.Answers {
				got = append(got, fmt.Sprintf("%s@%d %d/%d %s", a.Name, a.Offset, a.Done, a.Given, a.Next))
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
			for i, a := range asked.Answers {
				r := newRig(t).unsynced()
				tt.make(r)
				if err := r.StartAt(a.Offset); err != nil {
					t.Fatal(err)
				}
				if asked, err := r.Question(); asked != nil || err != nil {
					t.Errorf("%s: it asks again: %+v, %v", a.Name, asked, err)
				}
				if d, err := r.Depth(0); err != nil || d.Entries != a.Given {
					t.Errorf("%s: %d queued, %v, want %d", a.Name, d.Entries, err, asked.Answers[i].Given)
				}
			}
		})
	}
}

// Before, an answer that lies before the entry in flight left out what stands
// between the two: its acknowledgement moves the cursor behind it.
func TestAnAnswerBeforeWhatIsInFlightLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\ntwo\nthree\n")
	r.do(1)
	r.offer()
	r.advance(Started)
	r.put("inbox.jsonl", strings.Replace(r.get("inbox.jsonl"), "one", "ONE", 1)) // edited before the cursor
	if _, err := r.Depth(0); err != nil && !errors.Is(err, ErrNeedsOperator) {
		t.Fatal(err)
	}
	if err := r.StartAt(0); err != nil {
		t.Fatal(err)
	}
	if got := join(r.drain()); got != "ONE|two|three" {
		t.Errorf("drained %q", got)
	}
}

func TestAQueueThatKnowsWhereToGoOnAsksNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	if asked, err := r.Question(); asked != nil || err != nil {
		t.Errorf("%+v, %v", asked, err)
	}
}

// TestAnAnswerSaysWhatItLosesAndRepeats: the list had byte offsets, and left it to the
// person to find out which prompts were done.
func TestAnAnswerSaysWhatItLosesAndRepeats(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\ntwo\nthree\nfour\n")
	r.do(2)
	r.remove(CursorFile)
	r.remove(metaFile)
	asked, err := r.Question(14)
	if err != nil || asked == nil {
		t.Fatalf("%+v, %v", asked, err)
	}
	var got []string
	for _, a := range asked.Answers {
		got = append(got, fmt.Sprintf("%s loses %d %q repeats %d %q", a.Name, a.Loses, a.LostFirst, a.Repeats, a.RepeatedFirst))
	}
	want := []string{
		`start loses 0 "" repeats 2 "one"`, `last loses 0 "" repeats 0 ""`, `offset loses 1 "three" repeats 0 ""`, `end loses 2 "three" repeats 0 ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestADeadLetterTellsHandOversFromAttempts: what is shown could be more than
// max-attempts, as not every hand-over uses one up.
func TestADeadLetterTellsHandOversFromAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	for i := range 3 {
		r.offer()
		r.advance(Taken)
		if _, _, err := r.Recover(Interruption{Policy: Retry, MaxAttempts: 2, Counts: i > 0, Cause: "stalled"}); err != nil {
			t.Fatal(err)
		}
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Poison || dead[0].Attempts != 3 || dead[0].Counted != 2 || dead[0].Cause != "stalled" {
		t.Errorf("%+v", dead)
	}
}
