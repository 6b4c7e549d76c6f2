package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// stopLine is what 2.1.329 writes of a Stop; errors and infos are JSON.
func stopLine(infos, errors string) string {
	return `{"isSidechain":false,"type":"system","subtype":"stop_hook_summary","hookInfos":[` + infos + `],"hookErrors":[` + errors +
		`],"failedHookErrorIndexes":[],"hookAdditionalContext":[],"preventedContinuation":false}`
}

func transcriptOf(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhoHadTheClientGoOn, by the record of a Stop.
func TestWhoHadTheClientGoOn(t *testing.T) {
	t.Parallel()
	const ours, theirs = `{"command":"/x/heartbeat-stop hook"}`, `{"command":"make test"}`
	const passed, player = `{"command":"make test","durationMs":7}`, `{"command":"play","durationMs":7}`
	const said, reason, given = `"[make test]: fails"`, `"fails"`, `"[/x/heartbeat-stop hook]: two\n"`
	for name, tt := range map[string]struct {
		infos, errors, mine string
		want                []string
		continued           bool
	}{
		"nobody":                     {infos: passed},
		"by exit 2":                  {infos: theirs, errors: said, want: []string{"make test"}, continued: true},
		"by a block":                 {infos: theirs, errors: reason, want: []string{"make test"}, continued: true},
		"by its context alone":       {infos: `{"command":"/x/heartbeat-stop hook","durationMs":1}` + "," + passed, errors: reason, want: []string{"make test"}, continued: true},
		"by a block, who is unknown": {infos: passed + "," + player, errors: reason, want: []string{client.UnknownHook}, continued: true},
		"we, at an earlier Stop":     {infos: ours + "," + passed, errors: given, continued: true},
		"we, by a block, then":       {infos: ours + "," + passed, errors: reason, continued: true},
		"both, then":                 {infos: ours + "," + theirs, errors: given + "," + said, want: []string{"make test"}, continued: true},
		"we alone":                   {infos: ours + "," + passed, errors: given, mine: "two", continued: true},
		"we alone, in other words":   {infos: ours + "," + passed, errors: given, mine: "too", continued: true},
		"both":                       {infos: ours + "," + theirs, errors: given + "," + said, mine: "two", want: []string{"make test"}, continued: true},
		"both, they by a block":      {infos: ours + "," + theirs, errors: reason + "," + given, mine: "two", want: []string{"make test"}, continued: true},
		"both, ours in other words":  {infos: ours + "," + theirs, errors: given + "," + said, mine: "too", want: []string{"make test"}, continued: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Stops{Path: transcriptOf(t, stopLine(tt.infos, tt.errors))}
			st, found := s.next(tt.mine)
			if !found || st.Continued != tt.continued || !slices.Equal(st.Others, tt.want) {
				t.Errorf("%v %+v, want %q", found, st, tt.want)
			}
		})
	}
}

// TestTheLastTurnIsOver only by the record of its own Stop.
func TestTheLastTurnIsOver(t *testing.T) {
	t.Parallel()
	const first, second = `{"type":"user","promptId":"P1"}`, `{"type":"user","promptId":"P2"}`
	quiet, loud := stopLine(`{"command":"a","durationMs":1}`, ""), stopLine(`{"command":"a"}`, `"[a]: more"`)
	for name, tt := range map[string]struct {
		lines []string
		want  bool
	}{
		"no record":              {lines: []string{second}},
		"it goes on":             {lines: []string{second, loud}},
		"it went on and is over": {lines: []string{second, loud, quiet}, want: true},
		"another one is over":    {lines: []string{first, quiet, second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := transcriptOf(t, tt.lines...)
			if got := new(Stops).Stopped(&Record{Transcript: path, PromptID: "P2"}); got != tt.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestALargeTranscriptIsLookedAt from its last part on: of one that had grown over
// what is looked at before the first look, each look failed, and an entry that was
// done was never acknowledged.
func TestALargeTranscriptIsLookedAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(`{"type":"user","promptId":"P1"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 3*maxTranscript); err != nil {
		t.Fatal(err)
	}
	appendFile(t, path, "\n"+stopLine(`{"command":"a","durationMs":1}`, "")+"\n")
	s := Stops{Path: path}
	if s.Stopped(&Record{Transcript: path, PromptID: "P1"}) || s.Stopped(&Record{Transcript: path}) {
		t.Error("the Stop of a prompt that is not known is the last one's")
	}
	appendFile(t, path, `{"type":"user","promptId":"P2"}`+"\n"+stopLine(`{"command":"a","durationMs":1}`, "")+"\n")
	if !s.Stopped(&Record{Transcript: path, PromptID: "P2"}) {
		t.Error("its Stop is not seen")
	}
	e := ear{from: Stops{Path: path}}
	appendFile(t, path, userLine(feedbackLine+"[make test]: fails"))
	if !e.othersSpoke() {
		t.Error("a hook that waits hears nothing")
	}
}

// TestWhenAnEntryIsNotDoneYet: other Stop hooks may have the client go on.
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
			r := &Record{Policy: tt.policy}
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
	l.quietly(client.UserPromptSubmit, fields{"prompt": KickoffPrompt(flight.Prompt())})
	l.quietly(client.Stop, fields{"last_assistant_message": "did one"})
	if r := l.record(); r.Phase != Settling || r.Ruling != nil {
		t.Errorf("%s, ruled %+v", r.Phase, r.Ruling)
	}
}

// TestAWaitingHookListensOnce to each line, however often it looks.
func TestAWaitingHookListensOnce(t *testing.T) {
	t.Parallel()
	const answer = `{"type":"assistant"}`
	path := transcriptOf(t, answer, `{"type":"user","message":{"role":"user","content":"Stop hook feedback:\n[make test]: fails"}}`)
	e := ear{from: Stops{Path: path}}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !e.othersSpoke() || e.from.Offset != info.Size() {
			t.Fatalf("%+v of %d bytes", e, info.Size())
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(answer + "\n"); err != nil {
		t.Fatal(err)
	}
	if f.Close() != nil || e.othersSpoke() {
		t.Errorf("what was said before the answer counts for its Stop: %+v", e)
	}
}

// TestAHookThatStopsTheClient where ours hands over ("continue": false): the
// client keeps the prompt and stands idle.
func TestAHookThatStopsTheClient(t *testing.T) {
	t.Parallel()
	const asked, given = `{"type":"user","promptId":"P"}`, `"[/x/heartbeat-stop hook]: two"`
	const infos = `{"command":"/x/heartbeat-stop hook"},{"command":"enough","durationMs":3}`
	prevented := func(errors string) string {
		return strings.Replace(stopLine(infos, errors), `"preventedContinuation":false`, `"preventedContinuation":true`, 1)
	}
	for name, tt := range map[string]struct {
		line   string
		change func(*Record)
		want   string
	}{
		"where we handed over":   {line: prevented(given), want: "enough"},
		"where nobody spoke":     {line: prevented("")},
		"the client goes on":     {line: stopLine(infos, given)},
		"before the last turn":   {line: prevented(given), change: func(r *Record) { r.PromptID = "P2" }},
		"the session waits":      {line: prevented(given), change: func(r *Record) { r.Phase = Waiting }},
		"we had said nothing":    {line: prevented(given), change: func(r *Record) { r.Spoke = false }},
		"no other hook is known": {line: prevented(given), change: func(r *Record) { r.Policy.ForeignStopHooks = false }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Record{Phase: Turn, Spoke: true, PromptID: "P", Policy: Policy{ForeignStopHooks: true}, Transcript: transcriptOf(t, asked, tt.line)}
			if tt.change != nil {
				tt.change(r)
			}
			s := Stops{}
			if got := s.CutShort(r); got != tt.want {
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
	alone := stopLine(theirs, `"[make test]: fails"`)
	both := stopLine(ours+","+theirs, `"[make test]: fails"`)
	over := stopLine(ours+","+theirs, "")
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
		r := &Record{Phase: tt.phase, Transcript: transcriptOf(t, tt.lines...), Continuations: 1, Policy: Policy{MaxContinuations: 4}}
		if got := new(Stops).PassedOver(r); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
