package hook

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
)

// TestWhenAnEntryIsNotDoneYet: other Stop hooks may make the client continue.
func TestWhenAnEntryIsNotDoneYet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy Policy
		ruled  bool
		next   bool
		want   bool
	}{
		"alone":                        {policy: Policy{Mode: Drain}},
		"the last one":                 {policy: Policy{Mode: Drain, ForeignStopHooks: true}, want: true},
		"another one is queued":        {policy: Policy{Mode: Drain, ForeignStopHooks: true}, next: true},
		"it waits for more":            {policy: Policy{Mode: Persist, ForeignStopHooks: true}},
		"gated":                        {policy: Policy{Mode: Persist, ForeignStopHooks: true, Gated: true}, next: true, want: true},
		"told to finish":               {policy: Policy{Mode: Persist, ForeignStopHooks: true}, ruled: true, next: true, want: true},
		"one conversation each":        {policy: Policy{Mode: Drain, ForeignStopHooks: true, Context: ContextEntry}, next: true, want: true},
		"alone, one conversation each": {policy: Policy{Mode: Drain, Context: ContextEntry}, next: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Record{Terms: Terms{Policy: tt.policy}}
			if tt.ruled {
				r.Ruling = &Ruling{Why: EndFinished}
			}
			if got := settles(r, tt.next, time.Now()); got != tt.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestAFirstTurnIsNoRunaway, however few turns a hook may cause: with
// max-continuations 1 the prompt was a dead letter wherever another Stop hook was
// installed, whatever that did.
func TestAFirstTurnIsNoRunaway(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(r *Record) {
		r.Policy.ForeignStopHooks, r.Policy.Foreign, r.Policy.MaxContinuations = true, ForeignLearn, 1
		r.Continuations = 1 // as the shim counts the first turn
	})
	l.append("one")
	flight := l.offerFirst()
	l.quietly(client.SessionStart, fields{"source": "startup"})
	l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt)})
	l.quietly(client.Stop, fields{"last_assistant_message": "did one"})
	if r := l.record(); r.Phase != Settling || r.Ruling != nil {
		t.Errorf("%s, ruled %+v", r.Phase, r.Ruling)
	}
}

// TestAHookThatStopsTheClient where ours hands over ("continue": false): the
// client keeps the prompt and stands idle.
func TestAHookThatStopsTheClient(t *testing.T) {
	t.Parallel()
	const asked, given = `{"type":"user","promptId":"P"}`, `"[/x/heartbeat-stop hook]: two"`
	const infos = `{"command":"/x/heartbeat-stop hook"},{"command":"enough","durationMs":3}`
	prevented := func(errors string) string {
		return strings.Replace(clienttest.StopLine(infos, errors), `"preventedContinuation":false`, `"preventedContinuation":true`, 1)
	}
	for name, tt := range map[string]struct {
		line   string
		change func(*Record)
		want   string
	}{
		"where we handed over":   {line: prevented(given), want: "enough"},
		"where nobody spoke":     {line: prevented("")},
		"the client goes on":     {line: clienttest.StopLine(infos, given)},
		"before the last turn":   {line: prevented(given), change: func(r *Record) { r.PromptID = "P2" }},
		"the session waits":      {line: prevented(given), change: func(r *Record) { r.Phase = Waiting }},
		"we had said nothing":    {line: prevented(given), change: func(r *Record) { r.Spoke = false }},
		"no other hook is known": {line: prevented(given), change: func(r *Record) { r.Policy.ForeignStopHooks = false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Record{Phase: Turn, Others: Others{Spoke: true}, Bound: Bound{PromptID: "P", Transcript: clienttest.Transcript(t, asked, tt.line)}, Terms: Terms{Policy: Policy{ForeignStopHooks: true}}}
			if tt.change != nil {
				tt.change(r)
			}
			s := handover.Stops{}
			if got := r.CutShort(&s); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestLongHooksAreNamedShortly: the whole of a hook's script stood in each line
// of the log, history and status that named it.
func TestLongHooksAreNamedShortly(t *testing.T) {
	t.Parallel()
	long := "n=$(cat n || echo 0);\n" + strings.Repeat("echo $n > n; ", 20)
	for _, c := range []struct {
		commands []string
		want     string
	}{
		{nil, "another Stop hook"},
		{[]string{"./check.sh"}, "./check.sh"},
		{[]string{"./a", "./b"}, "./a; ./b"},
		{[]string{"./a", "./b", "./c", "./d"}, "./a; ./b; 2 more"},
		{[]string{long}, foreign.Line(long)[:60] + "…"},
	} {
		if got := NameHooks(c.commands); got != c.want {
			t.Errorf("NameHooks(%q) = %q, want %q", c.commands, got, c.want)
		}
	}
}

// An administrator's Stop hook that blocks keeps ours from being called: 173 paid
// turns in a minute, until the shim counted them itself.
func TestStopsThatPassOursOver(t *testing.T) {
	t.Parallel()
	const ours, theirs = `{"command":"/x/heartbeat-stop hook"}`, `{"command":"make test"}`
	alone := clienttest.StopLine(theirs, `"[make test]: fails"`)
	both := clienttest.StopLine(ours+","+theirs, `"[make test]: fails"`)
	over := clienttest.StopLine(ours+","+theirs, "")
	for name, tt := range map[string]struct {
		lines []string
		phase Phase
		want  []string
	}{
		"each time":            {[]string{alone, alone, alone}, Turn, []string{"make test"}},
		"not often enough":     {[]string{alone, alone}, Turn, nil},
		"ours was called then": {[]string{alone, alone, both}, Turn, nil},
		"and now again":        {[]string{alone, alone, over, alone}, Turn, nil},
		"no turn":              {[]string{alone, alone, alone}, Ending, nil},
	} {
		r := &Record{Phase: tt.phase, Bound: Bound{Transcript: clienttest.Transcript(t, tt.lines...)}, Progress: Progress{Continuations: 1}, Terms: Terms{Policy: Policy{MaxContinuations: 4}}}
		if got := r.PassedOver(new(handover.Stops)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
