package handover

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/client"
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
			if got := new(Stops).Stopped(path, "P2"); got != tt.want {
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
	if err := os.Truncate(path, 3*MaxLook); err != nil {
		t.Fatal(err)
	}
	appendFile(t, path, "\n"+stopLine(`{"command":"a","durationMs":1}`, "")+"\n")
	s := Stops{Path: path}
	if s.Stopped(path, "P1") || s.Stopped(path, "") {
		t.Error("the Stop of a prompt that is not known is the last one's")
	}
	appendFile(t, path, `{"type":"user","promptId":"P2"}`+"\n"+stopLine(`{"command":"a","durationMs":1}`, "")+"\n")
	if !s.Stopped(path, "P2") {
		t.Error("its Stop is not seen")
	}
	e := Ear{From: Stops{Path: path}}
	appendFile(t, path, userLine(feedbackLine+"[make test]: fails"))
	if !e.OthersSpoke() {
		t.Error("a hook that waits hears nothing")
	}
}

// TestAWaitingHookListensOnce to each line, however often it looks.
func TestAWaitingHookListensOnce(t *testing.T) {
	t.Parallel()
	const answer = `{"type":"assistant"}`
	path := transcriptOf(t, answer, `{"type":"user","message":{"role":"user","content":"Stop hook feedback:\n[make test]: fails"}}`)
	e := Ear{From: Stops{Path: path}}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !e.OthersSpoke() || e.From.Offset != info.Size() {
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
	if f.Close() != nil || e.OthersSpoke() {
		t.Errorf("what was said before the answer counts for its Stop: %+v", e)
	}
}

func appendFile(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString(text); errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
}
