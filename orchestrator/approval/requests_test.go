package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

var noRules config.Approvals

// register is that of a fleet with a store of its own.
type register struct {
	*testing.T
	store *store.Store
}

func newRegister(t *testing.T) register { return register{t, storetest.New(t, t.TempDir())} }

func (l register) ask(r Request, rules config.Approvals, now time.Time) (asked Request, err error) {
	err = l.store.Write(l.Context(), func(c *store.Change) (err error) {
		asked, _, err = Ask(c, r, rules, now)
		return err
	})
	return asked, err
}

func (l register) give(id string, a Answer, now time.Time) (r Request, err error) {
	err = l.store.Write(context.Background(), func(c *store.Change) (err error) {
		r, err = Give(c, id, a, now)
		return err
	})
	return r, err
}

func (l register) find(id string) (Request, error) {
	return store.Get(l.Context(), l.store.Reader, func(v *store.View) (Request, error) { return Find(v, id) })
}

func (l register) list(list func(*store.View) ([]Request, error)) []Request {
	l.Helper()
	all, err := store.Get(l.Context(), l.store.Reader, list)
	if err != nil {
		l.Error(err)
	}
	return all
}

func (l register) waiting() []Request { l.Helper(); return l.list(Waiting) }

func (l register) settle(gone func(Request) string, now time.Time) (ended []Request, err error) {
	ends := Ends(l.waiting(), l.list(Owed), gone, now)
	err = l.store.Write(l.Context(), func(c *store.Change) (err error) {
		ended, err = Settle(c, ends, now)
		return err
	})
	return ended, err
}

// asked is ask for a request of which not all matters.
func (l register) asked(r Request, now time.Time) Request {
	l.Helper()
	if r.Agent == "" {
		r.Agent, r.Key = "a", "a"
	}
	if r.Question == "" {
		r.Question = "Deploy?"
	}
	r, err := l.ask(r, noRules, now)
	if err != nil {
		l.Fatal(err)
	}
	return r
}

// clock is now, as the store keeps it.
func clock() time.Time { return time.Now().Truncate(time.Millisecond) }

func yes(note string) Answer { return ByPerson(Approved, note) }

func TestARequestGetsOneAnswer(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	if all := l.waiting(); len(all) != 0 {
		t.Errorf("nobody has asked: %+v", all)
	}
	r := l.asked(Request{Payload: "x"}, now)
	if !r.Waits() || r.Yes() || !r.Until.Equal(now.Add(Lasts)) {
		t.Errorf("asked: %+v", r)
	}
	if got, err := l.find(r.ID); err != nil || got.Payload != "x" {
		t.Errorf("found %+v, %v", got, err)
	}
	for _, id := range []string{"", "00000000", "../" + r.ID, "done"} {
		if _, err := l.give(id, yes(""), now); !errors.Is(err, ErrNone) {
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
			_, said[i] = l.give(r.ID, ByPerson(s, fmt.Sprint(i)), now)
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
	got, err := l.find(r.ID)
	if err != nil || got.Note.Raw() != fmt.Sprint(taken) || got.Yes() != (taken%2 == 1) || !got.Owes() || !got.Person {
		t.Errorf("answer %d counts: %+v, %v", taken, got, err)
	}
	if err := l.store.Write(t.Context(), func(c *store.Change) error { return Tell(c, r.ID) }); err != nil {
		t.Error(err)
	}
	if got, _ := l.find(r.ID); got.Owes() {
		t.Error("it is told again")
	}
	if waiting := l.waiting(); len(waiting) != 0 {
		t.Errorf("still waits: %+v", waiting)
	}
}

// TestNoAnswerIsANo, and so is what is not needed any more.
func TestNoAnswerIsANo(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	old, gone, young := l.asked(Request{}, now.Add(-Lasts)), l.asked(Request{Entry: "e"}, now), l.asked(Request{}, now)
	ended, err := l.settle(func(r Request) string {
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
	if waiting := l.waiting(); len(waiting) != 1 || waiting[0].ID != young.ID {
		t.Errorf("waiting: %+v", waiting)
	}
}

// TestAFloodIsBounded: an agent that asks without end, or much at once, fills no disk
// and hides nobody's requests.
func TestAFloodIsBounded(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	l.asked(Request{}, now)
	if _, err := l.ask(Request{Agent: "a", Key: "a", Question: " \n"}, noRules, now); err == nil {
		t.Error("an empty question is one")
	}
	if _, err := l.ask(Request{Agent: "a", Key: "a", Question: "x", Category: "anything"}, noRules, now); err == nil {
		t.Error("any word is a category")
	}
	big := strings.Repeat("ü\xff", MaxPayload)
	cut, err := Request{Question: foreign.Text(big), Payload: foreign.Text(big), Note: foreign.Text(big), Name: big}.cleaned()
	if err != nil || !cut.Cut || len(cut.Payload) > MaxPayload || len(cut.Question) > MaxQuestion || len(cut.Note) > MaxNote || len(cut.Name) > maxName || !utf8.ValidString(cut.Payload.Raw()) {
		t.Errorf("not bounded: %d, %d, %v", len(cut.Payload), len(cut.Question), err)
	}
	for i := 1; ; i++ {
		_, err := l.ask(Request{Agent: "a", Key: "a", Question: "q"}, noRules, now)
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
		if _, err = l.ask(Request{Agent: "c", Key: "c", Question: "q", Category: "read"}, rules, now); err != nil {
			break
		}
	}
	if n != MostInHour || !errors.Is(err, ErrTooMany) {
		t.Errorf("%d requests in an hour: %v", n, err)
	}
	if _, err := l.ask(Request{Agent: "c", Key: "c", Question: "q", Category: "read"}, rules, now.Add(2*time.Hour)); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	if got := l.asked(Request{Agent: "other", Key: "other"}, now); !got.Waits() {
		t.Errorf("another agent: %+v", got)
	}
}

// TestAnAnswerCountsForWhatWasShown: what is needed for an entry is asked once, however
// often it is needed; what is shown anew is asked anew, and so is what was withdrawn.
func TestAnAnswerCountsForWhatWasShown(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	want := Request{Agent: "a", Key: "k", Name: "release", Entry: "e", Iteration: 1, About: "first"}
	r := l.asked(want, now)
	if again := l.asked(want, now); again.ID != r.ID {
		t.Errorf("asked twice: %s, %s", r.ID, again.ID)
	}
	stands := func(about string) (ids []string) {
		t.Helper()
		for _, r := range l.list(func(v *store.View) ([]Request, error) { return For(v, "k", "e", about) }) {
			ids = append(ids, r.ID+" "+string(r.State))
		}
		return ids
	}
	if got := stands("first"); !slices.Equal(got, []string{r.ID + " asked"}) {
		t.Errorf("%q", got)
	}
	if _, err := l.give(r.ID, ByPerson(Rejected, "no tests"), now); err != nil {
		t.Fatal(err)
	}
	if again := l.asked(want, now); again.State != Rejected || again.Note != "no tests" || again.Owes() {
		t.Errorf("asked again: %+v", again)
	}
	want.About = "second" // the same iteration, after the check was voided
	next := l.asked(want, now)
	if next.ID == r.ID || !next.Waits() {
		t.Errorf("what is shown anew: %+v", next)
	}
	if _, err := l.give(next.ID, Answer{State: Withdrawn, Note: "gone"}, now); err != nil {
		t.Fatal(err)
	}
	if got := stands("second"); len(got) > 0 {
		t.Errorf("withdrawn, and stands: %q", got)
	}
	if again := l.asked(want, now); again.ID == next.ID || !again.Waits() {
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
	l, now := newRegister(t), clock()
	first := l.asked(Request{Agent: "a", Key: "a", Name: "legal", Entry: "e", About: "x"}, now)
	alone := l.asked(Request{Agent: "a", Key: "a", Name: "legal", Entry: "other", About: "x"}, now)
	last := l.asked(Request{Agent: "a", Key: "a", Name: "release", Entry: "e", About: "x"}, now)
	for _, r := range []Request{first, alone} {
		if _, err := l.give(r.ID, yes(""), now); err != nil {
			t.Fatal(err)
		}
	}
	err := l.store.Write(t.Context(), func(c *store.Change) error {
		for i := range mostDone {
			r := Request{ID: fmt.Sprintf("%08x", i), Agent: "b", Key: "b", Question: "q", State: Approved, Told: true, AnsweredAt: now.Add(time.Minute)}
			if err := Put(c, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	other := l.asked(Request{Agent: "c", Key: "c"}, now)
	if _, err := l.give(other.ID, yes(""), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.find(first.ID); err != nil {
		t.Errorf("a yes is forgotten while %s waits: %v", last.ID, err)
	}
	if _, err := l.find(alone.ID); !errors.Is(err, ErrNone) {
		t.Errorf("the oldest that nothing needs is kept: %v", err)
	}
}

// TestAPersonsNoteIsTakenWhole, or refused: its end was lost, and nobody was told.
func TestAPersonsNoteIsTakenWhole(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	r, err := l.ask(Request{Agent: "a", Key: "a", Question: "q"}, noRules, now)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Repeat("x", MaxNote)
	if _, err := l.give(r.ID, ByPerson(Rejected, whole+"y"), now); !errors.Is(err, ErrTooLong) {
		t.Errorf("a note that is too long: %v", err)
	}
	if got, err := l.find(r.ID); err != nil || !got.Waits() {
		t.Errorf("it has an answer: %+v, %v", got, err)
	}
	if got, err := l.give(r.ID, ByPerson(Rejected, " "+whole+"\n"), now); err != nil || got.Note.Raw() != whole {
		t.Errorf("%d bytes are kept: %v", len(got.Note), err)
	}
}
