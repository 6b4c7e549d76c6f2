package client

import (
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"heartbeat/hook/inbox"
)

const wholePayload = `{"session_id":"S\u00e9\ud83d\ude00\"","transcript_path":"/t.jsonl","hook_event_name":"Stop",` +
	`"stop_hook_active":true,"x":[1,{"y":"]}"}],"last_assistant_message":"done","background_tasks":[{"type":"shell","z":null},7],"session_crons":[]}`

// Wherever a payload ends too soon, it is known to be cut, and no field says
// anything else than in the whole.
func TestAPayloadThatIsCutOff(t *testing.T) {
	t.Parallel()
	whole, err := Claude.Hooks.Read(strings.NewReader(wholePayload))
	if err != nil || whole.Cut || whole.SessionID != "Sé😀\"" || len(whole.Tasks) != 1 {
		t.Fatalf("%+v, %v", whole, err)
	}
	for n := range wholePayload {
		p, err := Claude.Hooks.Read(strings.NewReader(wholePayload[:n]))
		if err != nil {
			continue
		}
		if !p.Cut {
			t.Errorf("%q counts as whole", wholePayload[:n])
		}
		a, b := reflect.ValueOf(*p), reflect.ValueOf(*whole)
		for i := range a.NumField() {
			f := a.Field(i)
			if name := a.Type().Field(i).Name; name != "Cut" && !f.IsZero() && !reflect.DeepEqual(f.Interface(), b.Field(i).Interface()) {
				t.Errorf("%q: %s is %v", wholePayload[:n], name, f)
			}
		}
	}
}

// A payload of 60 MB took 2.5 GB.
func TestALargePayloadTakesLittleMemory(t *testing.T) {
	large := func() io.Reader {
		file := func() io.Reader { return io.LimitReader(endless("a \\n\\\" line of a file "), 60<<20) }
		return io.MultiReader(
			strings.NewReader(`{"session_id":"S","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"x","content":"`), file(),
			strings.NewReader(`"},"last_assistant_message":"`), file(), strings.NewReader(`","prompt":"`), file(),
			strings.NewReader(`","background_tasks":[{"type":"shell","command":"`), file(), strings.NewReader(`","status":"running"}]}`))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := Claude.Hooks.Read(large())
	runtime.ReadMemStats(&after)
	if err != nil || p.Cut || p.Tool.Path != "x" || len(p.Tasks) != 1 || p.Tasks[0].Status != "running" {
		t.Fatalf("%.300v, %v", p, err)
	}
	if n := len(p.LastMessage); n <= inbox.MaxReply {
		t.Errorf("%d bytes of the last message: it does not look cut", n)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d MB were allocated", n>>20)
	}
}

// endless repeats a text.
type endless string

func (e endless) Read(p []byte) (n int, err error) {
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	if n == 0 {
		n = copy(p, e)
	}
	return n, nil
}
