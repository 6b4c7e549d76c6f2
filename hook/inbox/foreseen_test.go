package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// firstOf is the first line of the inbox.
func (r *rig) firstOf() string {
	line, _, _ := strings.Cut(r.get("inbox.jsonl"), "\n")
	return line + "\n"
}

// TestAQuestionSaysBeforehandWhatIsMissing: which queued prompts went with a cut, replaced
// or removed inbox was known only after the answer, which filed them.
func TestAQuestionSaysBeforehandWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(*rig)
		want string // id=prompt …
	}{
		{"cut within what is done", func(r *rig) { r.put("inbox.jsonl", r.firstOf()) }, `c="" d=""`},
		{"cut, and written to again", func(r *rig) {
			r.put("inbox.jsonl", r.firstOf())
			r.echo(strings.Repeat("new\n", 200))
		}, `c="" d=""`},
		{"cut, and prompts were sent", func(r *rig) {
			r.put("inbox.jsonl", r.firstOf())
			r.send("x", strings.Repeat("new ", 200))
			r.send("y", "newer")
		}, `c="" d=""`},
		{"another file with the beginning alone", func(r *rig) {
			r.put("new", r.firstOf())
			r.rename("new", "inbox.jsonl")
		}, `c="three" d="four"`},
		{"asked about, then removed", func(r *rig) {
			r.put("inbox.jsonl", r.firstOf())
			_, _ = r.Next()
			r.remove("inbox.jsonl")
		}, `c="" d=""`},
		{"cut, and one was appended again", func(r *rig) {
			lines := slices.Collect(strings.Lines(r.get("inbox.jsonl")))
			r.put("inbox.jsonl", lines[0]+lines[3])
		}, `c=""`},
		{"cut, and one was given up", func(r *rig) {
			if n, err := r.DropQueued("c"); n != 1 || err != nil {
				r.t.Fatal(n, err)
			}
			r.put("inbox.jsonl", r.firstOf())
		}, `d=""`},
		{"cut, and the sidecar removed: what was done is not certain", func(r *rig) {
			r.put("inbox.jsonl", r.firstOf())
			r.remove(metaFile)
		}, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			for _, l := range [][2]string{{"a", "one"}, {"b", "two"}, {"c", "three"}, {"d", "four"}} {
				r.send(l[0], l[1])
			}
			r.do(2)
			tt.do(r)
			asked, err := r.Question()
			if err != nil || asked == nil {
				t.Fatalf("%+v, %v", asked, err)
			}
			var got, ids []string
			for _, gone := range asked.Missing {
				got, ids = append(got, fmt.Sprintf("%s=%q", gone.ID, gone.Prompt)), append(ids, gone.ID)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("missing %s, want %s", text, tt.want)
			}
			gone, err := r.Missing()
			if err != nil || gone.Entries != len(ids) || !slices.Equal(gone.IDs, ids) {
				t.Errorf("%+v, %v", gone, err)
			}
			for _, a := range asked.Answers {
				if a.Missing != len(ids) || !slices.Equal(a.MissingIDs, ids) {
					t.Errorf("%s: %+v", a.Name, a)
				}
			}
			if len(ids) == 0 {
				return
			}
			before := len(r.dead())
			if err := r.StartAt(0); err != nil {
				t.Fatal(err)
			}
			var filed []string
			for _, d := range r.dead()[before:] {
				filed = append(filed, d.ID)
			}
			if !slices.Equal(filed, ids) {
				t.Errorf("filed %q, said %q", filed, ids)
			}
		})
	}
}

// TestWhatAnAnswerLeavesOutKeepsItsText: a prompt that an answer passed became a dead
// letter without its text, though the inbox has it.
func TestWhatAnAnswerLeavesOutKeepsItsText(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	for _, l := range [][2]string{{"a", "one"}, {"b", "two"}, {"c", "three"}, {"d", "four"}} {
		r.send(l[0], l[1])
	}
	r.do(2)
	lines := slices.Collect(strings.Lines(r.get("inbox.jsonl")))
	r.put("inbox.jsonl", lines[0]+strings.Replace(lines[1], "two", "TWO", 1)+lines[2])
	asked, err := r.Question()
	if err != nil || asked == nil || len(asked.Missing) != 1 || asked.Missing[0].ID != "d" {
		t.Fatalf("%+v, %v", asked, err)
	}
	if err := r.StartAt(int64(len(r.get("inbox.jsonl")))); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.dead() {
		got = append(got, fmt.Sprintf("%s %t", d.ID, d.Retryable()))
	}
	if want := []string{"c true", "d false"}; !slices.Equal(got, want) {
		t.Errorf("filed %q, want %q", got, want)
	}
}

// TestACutIsSeenThoughPromptsWereSentSince: an inbox that was cut and had grown again, by a
// prompt that was sent before anybody looked, lost what was queued without a word.
func TestACutIsSeenThoughPromptsWereSentSince(t *testing.T) {
	t.Parallel()
	for done := range 3 {
		r := newRig(t).unsynced()
		for _, id := range []string{"a", "b", "c"} {
			r.send(id, "prompt "+id)
		}
		r.do(done)
		r.put("inbox.jsonl", strings.Join(slices.Collect(strings.Lines(r.get("inbox.jsonl")))[:done], ""))
		r.send("x", strings.Repeat("new ", 200))
		r.send("y", "newer")
		want := []string{"a", "b", "c"}[done:]
		if gone, err := r.Missing(); err != nil || !slices.Equal(gone.IDs, want) {
			t.Errorf("%d done: missing %+v, %v, want %q", done, gone, err, want)
		}
		if got := len(r.drain()); got != 2 || len(r.dead()) != len(want) {
			t.Errorf("%d done: %d handed over, dead letters %+v", done, got, r.dead())
		}
	}
}

// lasting is a context that ends when it has been asked a few times.
type lasting struct {
	context.Context
	times int
}

func (l *lasting) Err() error {
	if l.times--; l.times < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestAQuestionIsAskedThoughWhatIsMissingCannotBeTold: an error of that preview took the
// question with it, and nobody could answer.
func TestAQuestionIsAskedThoughWhatIsMissingCannotBeTold(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	for _, l := range [][2]string{{"a", "one"}, {"b", "two"}, {"c", "three"}, {"d", "four"}} {
		r.send(l[0], l[1])
	}
	r.do(2)
	r.put("inbox.jsonl", r.firstOf())
	want, err := r.Question()
	if err != nil || want == nil || len(want.Missing) != 2 {
		t.Fatalf("%+v, %v", want, err)
	}
	untold := 0
	for times := range 100 {
		r.Within(&lasting{t.Context(), times})
		asked, err := r.Question()
		switch {
		case err != nil:
		case len(asked.Answers) != len(want.Answers):
			t.Errorf("%d answers, want %d", len(asked.Answers), len(want.Answers))
		case asked.MissingUnknown == "":
			if len(asked.Missing) != 2 {
				t.Errorf("it says that %d are missing", len(asked.Missing))
			}
		default:
			untold++
			for _, a := range asked.Answers {
				if !a.MissingUnknown || a.Missing+len(a.MissingIDs)+len(asked.Missing) > 0 {
					t.Errorf("it is not known what is missing, and it says %+v, %+v", asked.Missing, a)
				}
			}
		}
	}
	if untold == 0 {
		t.Error("the question is asked only where what is missing can be told")
	}
}
