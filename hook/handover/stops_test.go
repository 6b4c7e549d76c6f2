package handover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
)

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
			s := Stops{Path: clienttest.Transcript(t, clienttest.StopLine(tt.infos, tt.errors))}
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
	quiet, loud := clienttest.StopLine(`{"command":"a","durationMs":1}`, ""), clienttest.StopLine(`{"command":"a"}`, `"[a]: more"`)
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
			path := clienttest.Transcript(t, tt.lines...)
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
	clienttest.Append(t, path, "\n"+clienttest.StopLine(`{"command":"a","durationMs":1}`, "")+"\n")
	s := Stops{Path: path}
	if s.Stopped(path, "P1") || s.Stopped(path, "") {
		t.Error("the Stop of a prompt that is not known is the last one's")
	}
	clienttest.Append(t, path, `{"type":"user","promptId":"P2"}`+"\n"+clienttest.StopLine(`{"command":"a","durationMs":1}`, "")+"\n")
	if !s.Stopped(path, "P2") {
		t.Error("its Stop is not seen")
	}
	e := Ear{From: Stops{Path: path}}
	clienttest.Append(t, path, clienttest.UserLine(clienttest.Feedback+"[make test]: fails"))
	if !e.OthersSpoke() {
		t.Error("a hook that waits hears nothing")
	}
}

// TestAWaitingHookListensOnce to each line, however often it looks.
func TestAWaitingHookListensOnce(t *testing.T) {
	t.Parallel()
	const answer = `{"type":"assistant"}`
	path := clienttest.Transcript(t, answer, `{"type":"user","message":{"role":"user","content":"Stop hook feedback:\n[make test]: fails"}}`)
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
