package script

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(`{"think": "1ms", "idle-after": "2s", "rules": [
		{"match": "a", "steps": [{"delay": "1s"}, {"reply": ""}]},
		{"regexp": "^b+$", "steps": [{"tool": "Bash", "command": "ls"}]},
		{"steps": []}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(s.IdleAfter); got != 2*time.Second {
		t.Errorf("idle-after %v", got)
	}
	m := NewModel(s)
	for request, want := range map[string]int{"xax": 2, "bbb": 1, "bc": 0} {
		if steps, err := m.Answer(request); err != nil || len(steps) != want {
			t.Errorf("%s: %d steps, %v", request, len(steps), err)
		}
	}
	if got := m.ThinkTime(); got != time.Millisecond {
		t.Errorf("think %v", got)
	}
	for bad, says := range map[string]string{
		`{"rules": [{"steps": [{}]}]}`:                            "step 1 says 0 things to do",
		`{"rules": [{"steps": [{"reply": "x", "hang": true}]}]}`:  "step 1 says 2 things to do",
		`{"rules": [{"steps": [{"await": "x", "delay": "1s"}]}]}`: "step 1 says 2 things to do",
		`{"rules": [{"steps": []}, {"regexp": "("}]}`:             "rule 2: ",
		`{"rulez": []}`:    `unknown field "rulez"`,
		`{"think": "5"}`:   "missing unit",
		`{"think": "-5s"}`: "negative",
		`{"rules": [{"steps": [{"command": "ls"}]}]}`: "0 things",
	} {
		if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", bad, err, says)
		}
	}
}

// A rule's uses are counted: in the process, or over processes by files.
func TestTimes(t *testing.T) {
	t.Parallel()
	answers := func(m *Model) (out string) {
		for range 3 {
			steps, err := m.Answer("x")
			if err != nil {
				t.Fatal(err)
			}
			out += []string{"no ", "yes "}[min(1, len(steps))]
		}
		return out
	}
	model := func(rule string) *Model {
		s, err := Parse([]byte(`{"rules": [{` + rule + `, "steps": [{"fail": "server_error"}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return NewModel(s)
	}
	if got := answers(model(`"times": 2`)); got != "yes yes no " {
		t.Error(got)
	}
	file := filepath.Join(t.TempDir(), "tried")
	twice := `"times": 2, "once-file": "` + file + `"`
	if got := answers(model(twice)); got != "yes yes no " {
		t.Error(got)
	}
	if got := answers(model(twice)); got != "no no no " {
		t.Errorf("another process: %s", got)
	}
	if got := answers(model(`"once-file": "` + file + `-2"`)); got != "yes no no " {
		t.Error(got)
	}
	if _, err := model(`"once-file": "` + file + `/x"`).Answer("x"); err == nil {
		t.Error("no error where uses cannot be counted")
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"do it":                                 "do it",
		"\n\n  Task from the queue:\n\nhello\n": "hello",
		"Stop hook feedback:\n[/bin/hook stop]: say [x]: hi\nmore": "say [x]: hi",
		"Stop hook feedback:\nplain":                               "plain",
		"only:":                                                    "only:",
		"":                                                         "",
	} {
		if got := First(request); got != want {
			t.Errorf("%q: %q, want %q", request, got, want)
		}
	}
	if got := Fill("{first}, of {prompt}", "a:\nb"); got != "b, of a:\nb" {
		t.Error(got)
	}
}

// TestRulesMatchThePromptAlone: a rule for "crash" fitted each prompt that a Stop hook
// handed over, as the hook's own command has that word.
func TestRulesMatchThePromptAlone(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(`{"rules": [{"match": "crash", "steps": [{"crash": true}]}, {"match": "queue", "steps": [{"empty": true}]}, {"regexp": "^Review", "steps": [{"reply": "reviewed: {prompt}"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	m := NewModel(s)
	const hook = "Stop hook feedback:\n[r=0; trap 'exit $r' 0; /bin/crash/heartbeat-stop hook; test $? = 42 && r=2]: "
	for request, want := range map[string]int{
		hook + "hello": 0, hook + "crash now": 1, "Task from the queue:\n\nhello": 0, "Task from the queue:\n\nthe queue": 1,
		hook + "Review it": 1, "Task from the queue:\n\nReview it": 1, "typed before\n" + hook + "hello": 0,
	} {
		if steps, err := m.Answer(request); err != nil || len(steps) != want {
			t.Errorf("%q: %+v, %v", request, steps, err)
		}
	}
	if got := Fill("{prompt}", hook+"hello"); got != "hello" {
		t.Errorf("{prompt}: %q", got)
	}
}
