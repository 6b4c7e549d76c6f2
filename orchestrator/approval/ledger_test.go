package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"heartbeat/config"
	"heartbeat/hook/foreign"
)

var noRules config.Approvals

func ask(t *testing.T, l Register, r Request, now time.Time) Request {
	t.Helper()
	if r.Agent == "" {
		r.Agent, r.Key = "a", "a"
	}
	if r.Question == "" {
		r.Question = "Deploy?"
	}
	r, err := l.Ask(t.Context(), r, noRules, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func yes(note string) Answer { return ByPerson(Approved, note) }

func TestARequestGetsOneAnswer(t *testing.T) {
	t.Parallel()
	l, now := Of(t.TempDir()), time.Now()
	if all, err := l.Waiting(); len(all) != 0 || err != nil {
		t.Errorf("nobody has asked: %+v, %v", all, err)
	}
	r := ask(t, l, Request{Payload: "x"}, now)
	if !r.Waits() || r.Yes() || !r.Until.Equal(now.Add(Lasts)) {
		t.Errorf("asked: %+v", r)
	}
	if got, err := l.Find(r.ID); err != nil || got.Payload != "x" {
		t.Errorf("found %+v, %v", got, err)
	}
	for _, id := range []string{"", "00000000", "../" + r.ID, "done"} {
		if _, err := l.Answer(t.Context(), id, yes(""), now); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", id, err)
		}
	}
	// Many answer at once: one of them counts.
	var all sync.WaitGroup
	said := make([]error, 8)
	for i := range said {
		all.Go(func() {
			s := Approved
			if i%2 == 0 {
				s = Rejected
			}
			_, said[i] = l.Answer(context.Background(), r.ID, ByPerson(s, fmt.Sprint(i)), now)
		})
	}
	all.Wait()
	taken := -1
	for i, err := range said {
		if err == nil && taken >= 0 || err != nil && !errors.Is(err, ErrAnswered) {
			t.Errorf("answer %d: %v", i, err)
		}
		if err == nil {
			taken = i
		}
	}
	got, err := l.Find(r.ID)
	if err != nil || got.Note.Raw() != fmt.Sprint(taken) || got.Yes() != (taken%2 == 1) || !got.Owes() || !got.Person {
		t.Errorf("answer %d counts: %+v, %v", taken, got, err)
	}
	if err := l.Tell(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	if got, _ := l.Find(r.ID); got.Owes() {
		t.Error("it is told again")
	}
	if waiting, err := l.Waiting(); len(waiting) != 0 || err != nil {
		t.Errorf("still waits: %+v, %v", waiting, err)
	}
}

// TestNoAnswerIsANo, and so is what is not needed any more.
func TestNoAnswerIsANo(t *testing.T) {
	t.Parallel()
	l, now := Of(t.TempDir()), time.Now()
	old, gone, young := ask(t, l, Request{}, now.Add(-Lasts)), ask(t, l, Request{Entry: "e"}, now), ask(t, l, Request{}, now)
	ended, err := l.Settle(t.Context(), func(r Request) string {
		if r.Entry == "e" {
			return "its prompt was cancelled"
		}
		return ""
	}, now)
	if err != nil || len(ended) != 2 || ended[0].ID != old.ID || ended[0].State != Expired || ended[1].ID != gone.ID || ended[1].State != Withdrawn {
		t.Errorf("ended: %+v, %v", ended, err)
	}
	if ended[0].Yes() || !ended[0].Owes() || ended[1].Yes() || ended[1].Owes() {
		t.Errorf("told: %+v", ended)
	}
	if !strings.Contains(ended[0].HandOver(), "not answered within 7 days, which is a no") {
		t.Errorf("it is told: %s", ended[0].HandOver())
	}
	if waiting, err := l.Waiting(); err != nil || len(waiting) != 1 || waiting[0].ID != young.ID {
		t.Errorf("waiting: %+v, %v", waiting, err)
	}
}

// TestAFloodIsBounded: an agent that asks without end, or much at once, fills no disk
// and hides nobody's requests.
func TestAFloodIsBounded(t *testing.T) {
	t.Parallel()
	l, now := Of(t.TempDir()), time.Now()
	ask(t, l, Request{}, now)
	if _, err := l.Ask(t.Context(), Request{Agent: "a", Key: "a", Question: " \n"}, noRules, now); err == nil {
		t.Error("an empty question is one")
	}
	if _, err := l.Ask(t.Context(), Request{Agent: "a", Key: "a", Question: "x", Category: "anything"}, noRules, now); err == nil {
		t.Error("any word is a category")
	}
	big := strings.Repeat("ü\xff", MaxPayload)
	cut, err := Request{Question: foreign.Text(big), Payload: foreign.Text(big), Note: foreign.Text(big), Name: big}.cleaned()
	if err != nil || !cut.Cut || len(cut.Payload) > MaxPayload || len(cut.Question) > MaxQuestion || len(cut.Note) > MaxNote || len(cut.Name) > maxName || !utf8.ValidString(cut.Payload.Raw()) {
		t.Errorf("not bounded: %d, %d, %v", len(cut.Payload), len(cut.Question), err)
	}
	for i := 1; ; i++ {
		_, err := l.Ask(t.Context(), Request{Agent: "a", Key: "a", Question: "q"}, noRules, now)
		if errors.Is(err, ErrTooMany) {
			if i != MostOpen { // one has asked above
				t.Errorf("%d requests wait at once", i)
			}
			break
		}
		if err != nil || i > MostOpen {
			t.Fatal(i, err)
		}
	}
	rules := config.Approvals{Always: []string{"read"}}
	n := 0
	for ; n <= MostInHour; n++ {
		if _, err = l.Ask(t.Context(), Request{Agent: "c", Key: "c", Question: "q", Category: "read"}, rules, now); err != nil {
			break
		}
	}
	if n != MostInHour || !errors.Is(err, ErrTooMany) {
		t.Errorf("%d requests in an hour: %v", n, err)
	}
	if _, err := l.Ask(t.Context(), Request{Agent: "c", Key: "c", Question: "q", Category: "read"}, rules, now.Add(2*time.Hour)); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	if got := ask(t, l, Request{Agent: "other", Key: "other"}, now); !got.Waits() {
		t.Errorf("another agent: %+v", got)
	}
}

// TestWhatIsNoRequest: what stands in the folder and is none hides nothing, and is no
// yes.
func TestWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, now := Of(dir), time.Now()
	r := ask(t, l, Request{}, now)
	other := ask(t, l, Request{}, now)
	path := filepath.Join(dir, folder, doneIn, r.ID+".json")
	for name, put := range map[string]func() error{
		"another's yes": func() error {
			return os.WriteFile(path, []byte(`{"id": "`+other.ID+`", "state": "approved"}`), 0o600)
		},
		"rubbish": func() error { return os.WriteFile(path, []byte("{"), 0o600) },
		"a FIFO":  func() error { return syscall.Mkfifo(path, 0o600) },
		"a link":  func() error { return os.Symlink("/dev/zero", path) },
	} {
		if err := put(); err != nil {
			t.Fatal(name, err)
		}
		if got, _ := l.Find(r.ID); got.Yes() {
			t.Errorf("%s: a yes", name)
		}
		if waiting, _ := l.Waiting(); len(waiting) != 2 {
			t.Errorf("%s: %+v wait", name, waiting)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"deadbeef", "readme"} {
		if err := os.WriteFile(filepath.Join(dir, folder, id+".json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if waiting, err := l.Waiting(); len(waiting) != 2 || err == nil {
		t.Errorf("%+v wait, %v", waiting, err)
	}
	if got := ask(t, l, Request{}, now); !got.Waits() {
		t.Errorf("%+v", got)
	}
}

// TestKilledBetweenTwoSteps: a request that stands in both folders is answered.
func TestKilledBetweenTwoSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, now := Of(dir), time.Now()
	want := Request{Agent: "a", Key: "k", Name: "release", Entry: "e"}
	r := ask(t, l, want, now)
	path := filepath.Join(dir, folder, r.ID+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Answer(t.Context(), r.ID, ByPerson(Rejected, "no"), now); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if waiting, _ := l.Waiting(); len(waiting) != 0 {
		t.Errorf("waits again: %+v", waiting)
	}
	if got, err := l.Answer(t.Context(), r.ID, yes(""), now); !errors.Is(err, ErrAnswered) || got.State != Rejected {
		t.Errorf("answered again: %+v, %v", got, err)
	}
	if got := ask(t, l, want, now); got.ID != r.ID || got.State != Rejected {
		t.Errorf("asked again: %+v", got)
	}
}

// TestAnAnswerCountsForWhatWasShown: what is needed for an entry is asked once, however
// often it is needed; what is shown anew is asked anew, and so is what was withdrawn.
func TestAnAnswerCountsForWhatWasShown(t *testing.T) {
	t.Parallel()
	l, now := Of(t.TempDir()), time.Now()
	want := Request{Agent: "a", Key: "k", Name: "release", Entry: "e", Iteration: 1, About: "first"}
	r := ask(t, l, want, now)
	if again := ask(t, l, want, now); again.ID != r.ID {
		t.Errorf("asked twice: %s, %s", r.ID, again.ID)
	}
	stands := func(about string) (ids []string) {
		t.Helper()
		all, err := l.For("k", "e", about)
		if err != nil {
			t.Error(err)
		}
		for _, r := range all {
			ids = append(ids, r.ID+" "+string(r.State))
		}
		return ids
	}
	if got := stands("first"); !slices.Equal(got, []string{r.ID + " asked"}) {
		t.Errorf("%q", got)
	}
	if _, err := l.Answer(t.Context(), r.ID, ByPerson(Rejected, "no tests"), now); err != nil {
		t.Fatal(err)
	}
	if again := ask(t, l, want, now); again.State != Rejected || again.Note != "no tests" || again.Owes() {
		t.Errorf("asked again: %+v", again)
	}
	want.About = "second" // the same iteration, after the check was voided
	next := ask(t, l, want, now)
	if next.ID == r.ID || !next.Waits() {
		t.Errorf("what is shown anew: %+v", next)
	}
	if _, err := l.Answer(t.Context(), next.ID, Answer{State: Withdrawn, Note: "gone"}, now); err != nil {
		t.Fatal(err)
	}
	if got := stands("second"); len(got) > 0 {
		t.Errorf("withdrawn, and stands: %q", got)
	}
	if again := ask(t, l, want, now); again.ID == next.ID || !again.Waits() {
		t.Errorf("what was withdrawn: %+v", again)
	}
	if got := stands("third"); len(got) > 0 {
		t.Errorf("one that nobody asked for: %q", got)
	}
}

// TestAYesIsKeptWhileOthersAreAskedAboutTheSame: however much is answered meanwhile, it is
// not forgotten before the last of those that an entry needs has its answer.
func TestAYesIsKeptWhileOthersAreAskedAboutTheSame(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	l := Of(dir)
	first := ask(t, l, Request{Agent: "a", Key: "a", Name: "legal", Entry: "e", About: "x"}, now)
	alone := ask(t, l, Request{Agent: "a", Key: "a", Name: "legal", Entry: "other", About: "x"}, now)
	last := ask(t, l, Request{Agent: "a", Key: "a", Name: "release", Entry: "e", About: "x"}, now)
	for _, r := range []Request{first, alone} {
		if _, err := l.Answer(t.Context(), r.ID, yes(""), now); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostDone {
		r := Request{ID: fmt.Sprintf("%08x", i), Agent: "b", Key: "b", Question: "q", State: Approved, Told: true, AnsweredAt: now.Add(time.Minute)}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, doneIn, r.ID+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := ask(t, l, Request{Agent: "c", Key: "c"}, now)
	if _, err := l.Answer(t.Context(), other.ID, yes(""), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Find(first.ID); err != nil {
		t.Errorf("a yes is forgotten while %s waits: %v", last.ID, err)
	}
	if _, err := l.Find(alone.ID); !errors.Is(err, ErrNone) {
		t.Errorf("the oldest that nothing needs is kept: %v", err)
	}
}

// TestAPersonsNoteIsTakenWhole, or refused: its end was lost, and nobody was told.
func TestAPersonsNoteIsTakenWhole(t *testing.T) {
	t.Parallel()
	l, now := Of(t.TempDir()), time.Now()
	r, err := l.Ask(t.Context(), Request{Agent: "a", Key: "a", Question: "q"}, noRules, now)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Repeat("x", MaxNote)
	if _, err := l.Answer(t.Context(), r.ID, ByPerson(Rejected, whole+"y"), now); !errors.Is(err, ErrTooLong) {
		t.Errorf("a note that is too long: %v", err)
	}
	if got, err := l.Find(r.ID); err != nil || !got.Waits() {
		t.Errorf("it has an answer: %+v, %v", got, err)
	}
	if got, err := l.Answer(t.Context(), r.ID, ByPerson(Rejected, " "+whole+"\n"), now); err != nil || got.Note.Raw() != whole {
		t.Errorf("%d bytes are kept: %v", len(got.Note), err)
	}
}
