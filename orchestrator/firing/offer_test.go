package firing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/sources"
	"heartbeat/sources/poll"
	"heartbeat/sources/watch"
)

// lab is a fleet of one agent whose inbox is a list.
type lab struct {
	t       *testing.T
	cfg     *config.Agent
	all     *Triggers
	letters []inbox.Letter
	events  []journal.Event
	failing []Failing
	down    string
	room    int // how many letters it takes; 0: as many as come
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, cfg: &config.Agent{Name: "a", Dir: t.TempDir()}}
	dir := t.TempDir()
	f := New(Options{
		StateDir: dir, Store: storetest.New(t, dir), Log: slog.New(slog.DiscardHandler),
		Note:        func(e journal.Event) { l.events = append(l.events, e) },
		Environment: func(a *config.Agent) ([]string, error) { return a.Environ(os.Environ()) },
		Go:          func(func()) {},
	})
	l.all = f.Of("a", memory.Identity{Key: "a"}, l)
	return l
}

func (l *lab) InTurn(time.Time) bool    { return false }
func (l *lab) Down() string             { return l.down }
func (l *lab) TriggersFail(f []Failing) { l.failing = f }
func (l *lab) RequestsRefused()         {}

func (l *lab) Holds(_ *config.Agent, prefix string) (bool, error) {
	return slices.ContainsFunc(l.letters, func(m inbox.Letter) bool { return strings.HasPrefix(m.ID, prefix) }), nil
}

// Append refuses what is over 1,000 bytes.
func (l *lab) Append(_ context.Context, _ *config.Agent, _ *config.Trigger, m inbox.Letter) (func(), error) {
	if len(m.Prompt) > 1000 {
		return nil, fmt.Errorf("%w: the limit is 1000", inbox.ErrTooLarge)
	}
	if slices.ContainsFunc(l.letters, func(o inbox.Letter) bool { return o.ID == m.ID }) {
		return nil, inbox.ErrDuplicate
	}
	if m.Most < 0 || l.room > 0 && len(l.letters) >= l.room {
		return nil, inbox.ErrFull
	}
	l.letters = append(l.letters, m)
	return func() {}, nil
}

func (l *lab) noted(k journal.Kind) (all []journal.Event) {
	for _, e := range l.events {
		if e.Kind == k {
			all = append(all, e)
		}
	}
	return all
}

// gated is a trigger with a gate: a shell script.
func (l *lab) gated(script string) trigger {
	l.cfg.Triggers = []config.Trigger{{Name: "nightly", Gate: []string{"sh", "-c", script}, Cron: &config.CronTrigger{Overlap: config.OverlapQueue}}}
	return l.all.declared(l.cfg, 0)
}

func TestGate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script, skipped, failure string
		queued                         int
	}{
		{name: "go", script: "exit 0", queued: 1},
		{name: "no", script: "exit 1", skipped: skippedGate},
		{name: "broken", script: "echo no such thing >&2; exit 127", failure: `cannot ask the gate of trigger "nightly": the command failed: exit status 127; it said: no such thing`},
		{name: "killed", script: "kill -9 $$", failure: "signal: killed"},
		// What it prints is not asked for: over 1 MiB of it failed the gate for ever.
		{name: "verbose", script: "head -c 3000000 /dev/zero", queued: 1},
		{name: "verbosely no", script: "head -c 3000000 /dev/zero; exit 1", skipped: skippedGate},
		{name: "later", script: "exit 75", failure: "tried again later"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			one := l.gated(tt.script)
			skipped, err := one.offer(t.Context(), sources.Prompt{Label: "one", Text: "x", At: time.Now()})
			if skipped != tt.skipped || (err == nil) != (tt.failure == "") || err != nil && !strings.Contains(err.Error(), tt.failure) {
				t.Errorf("offer = %q, %v", skipped, err)
			}
			if len(l.letters) != tt.queued {
				t.Errorf("queued %d", len(l.letters))
			}
			if e := l.noted(journal.Skipped); (len(e) == 1) != (tt.skipped != "") {
				t.Errorf("the journal: %+v", e)
			}
		})
	}
}

func TestGateKnowsWhatItDecidesAbout(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one := l.gated(`echo "$HEARTBEAT_AGENT $HEARTBEAT_TRIGGER $HEARTBEAT_LABEL $EXTRA" > asked`)
	l.cfg.Env = map[string]string{"EXTRA": "own"}
	if _, err := one.offer(t.Context(), sources.Prompt{Label: "2026-11-21T09:00", Text: "x"}); err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(filepath.Join(l.cfg.Dir, "asked"))
	if err != nil || string(asked) != "a nightly 2026-11-21T09:00 own\n" {
		t.Errorf("asked %q, %v", asked, err)
	}
}

// TestAPromptThatIsTooLargeHoldsUpNothing: it was offered to the inbox again
// and again, and its poll never ran any more.
func TestAPromptThatIsTooLargeHoldsUpNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one := l.gated("exit 0")
	var fired []string
	for i, text := range []string{strings.Repeat("x", 1001), "fits"} {
		skipped, err := one.offer(t.Context(), sources.Prompt{Label: fmt.Sprint(i), Text: text})
		if err != nil {
			t.Error(err)
		}
		fired = append(fired, skipped)
	}
	if want := []string{skippedTooLarge, ""}; !slices.Equal(fired, want) {
		t.Errorf("skipped because %q, want %q", fired, want)
	}
	lost := l.noted(journal.Skipped)
	if len(lost) != 1 || lost[0].Trigger != "a/nightly@0" || !strings.Contains(lost[0].Detail.String(), "the limit is 1000") {
		t.Errorf("the journal: %+v", lost)
	}
}

// TestFailuresAreToldUntilOneSucceeds: the owner hears of each change.
func TestFailuresAreToldUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	broken := l.gated("exit 3")
	for range 2 {
		if _, err := broken.offer(t.Context(), sources.Prompt{Label: "one", Text: "x"}); err == nil {
			t.Fatal("a broken gate is an error")
		} else {
			broken.failed(err, time.Minute)
		}
	}
	if len(l.failing) != 1 || l.failing[0].Times != 2 || l.failing[0].Retry.IsZero() {
		t.Errorf("failing: %+v", l.failing)
	}
	retry := l.failing[0].Retry
	broken.failedByHand(errors.New("asked for by a person"))
	if f := l.failing[0]; f.Times != 3 || !f.Retry.Equal(retry) || f.Stopped {
		t.Errorf("a fire by hand changed what it does by itself: %+v, want it tried again at %s", f, retry)
	}
	if told := l.noted(journal.TriggerFailed); !told[0].Until.Equal(retry) && !told[1].Until.Equal(retry) || !told[2].Until.IsZero() {
		t.Errorf("the journal: %+v", told)
	}
	if _, err := l.gated("exit 0").offer(t.Context(), sources.Prompt{Label: "one", Text: "x"}); err != nil || len(l.failing) != 0 {
		t.Errorf("after one that works: %+v, %v", l.failing, err)
	}
}

// TestAPollFindsWhatAWebhookMissed: what one of them has queued, the other does not.
func TestAPollFindsWhatAWebhookMissed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.cfg.Triggers = []config.Trigger{
		{Name: "issues", Webhook: &config.WebhookTrigger{Path: "/x", Prompt: "Issue {{.JSON.issue.number}}", Key: "{{.JSON.issue.number}}"}},
		{Name: "missed", Poll: &config.PollTrigger{
			Command: []string{"printf", `[{"number": 17}, {"number": "a b"}, {"number": 18}]`}, Split: sources.SplitJSON,
			Prompt: "Issue {{.JSON.number}}", Dedupe: true, Key: "{{.JSON.number}}", BacksUp: "issues", Overlap: config.OverlapQueue,
		}},
	}
	l.all.f.table, l.all.f.files = sources.NewTimetable(), watch.New()
	l.all.Set(t.Context(), l.cfg)
	hook := l.all.f.Webhook("/x")
	deliver := func(number string) Outcome {
		return hook.Deliver(t.Context(), nil, []byte(`{"issue": {"number": `+number+`}}`)).Outcome
	}
	if a, b := deliver("17"), deliver(`"a b"`); a != Queued || b != Queued {
		t.Fatalf("the webhook: %s, %s", a, b)
	}
	one := l.all.declared(l.cfg, 1)
	p, err := one.polled(func(ctx context.Context, p sources.Prompt) error {
		_, err := one.offer(ctx, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := poll.Once(t.Context(), p); n != 3 || err != nil {
		t.Fatalf("the poll: %d, %v", n, err)
	}
	if again := deliver("18"); again != Known || len(l.letters) != 3 {
		t.Errorf("what the poll has found is queued again: %s, %+v", again, l.letters)
	}
	if fired, err := l.all.Fire(t.Context(), l.cfg, "issues"); err != nil || fired[0].Problem == "" || len(l.letters) != 3 || len(l.failing) != 0 {
		t.Errorf("a webhook by hand: %+v, %v, failing %+v", fired, err, l.failing)
	}
}

// TestWhatIsFiredByHandIsNotFiredTwice: what a trigger tells apart by its key, its content or
// its file is queued by hand, also if it was before, and then not once more by the trigger
// itself.
func TestWhatIsFiredByHandIsNotFiredTwice(t *testing.T) {
	t.Parallel()
	for name, declared := range map[string]config.Trigger{
		"a key":     {Poll: &config.PollTrigger{Command: []string{"printf", `{"number": 17}`}, Split: sources.SplitJSON, Prompt: "{{.JSON.number}}", Dedupe: true, Key: "{{.JSON.number}}"}},
		"a content": {Poll: &config.PollTrigger{Command: []string{"printf", "17"}, Dedupe: true}},
		"a file":    {Watch: &config.WatchTrigger{Patterns: []string{"*.md"}, Prompt: "{{.Path}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			declared.Name = "t"
			l.cfg.Triggers = []config.Trigger{declared}
			if err := os.WriteFile(filepath.Join(l.cfg.Dir, "x.md"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			byItself := func() {
				one := l.all.declared(l.cfg, 0)
				emit := func(ctx context.Context, p sources.Prompt) error {
					_, err := one.offer(ctx, p)
					return err
				}
				var err error
				if one.Watch != nil {
					w, _ := one.watched(emit)
					_, err = watch.Scan(t.Context(), w)
				} else {
					p, _ := one.polled(emit)
					_, err = poll.Once(t.Context(), p)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3 {
				fired, err := l.all.Fire(t.Context(), l.cfg, "t")
				if err != nil || fired[0].Queued != 1 || fired[0].Skipped != "" || len(l.letters) != i+1 {
					t.Errorf("by hand: %+v, %v, %d entries", fired, err, len(l.letters))
				}
				byItself()
				if len(l.letters) != i+1 {
					t.Errorf("what was fired by hand is fired by itself, too: %+v", l.letters)
				}
			}
			if noted := l.noted(journal.Fired); len(noted) != 3 || noted[1].Trigger != l.letters[1].Source {
				t.Errorf("the journal: %+v", noted)
			}
		})
	}
}
