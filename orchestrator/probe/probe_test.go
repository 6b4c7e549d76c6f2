package probe

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// standIn is the stand-in with some faults.
func standIn(t *testing.T, faults ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{self, "simulate", "--api"}
	for _, f := range faults {
		argv = append(argv, "--broken", f)
	}
	return argv
}

func probe(t *testing.T, p Prober, argv []string, path string) Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.Self = self
	return p.Probe(t.Context(), argv, path)
}

// probeUntil probes with little patience, and with more where the result is not what is
// wanted: a busy machine is slow, too.
func probeUntil(t *testing.T, argv []string, path string, wanted func(Result) bool) (r Result) {
	t.Helper()
	for patience := 1500 * time.Millisecond; patience <= 12*time.Second; patience *= 2 {
		if r = probe(t, Prober{Patience: patience}, argv, path); wanted(r) {
			break
		}
	}
	return r
}

// TestAGoodClient keeps all promises, whoever looks.
func TestAGoodClient(t *testing.T) {
	t.Parallel()
	var steps []string
	r := probe(t, Prober{Step: func(played, of int, now string) { steps = append(steps, fmt.Sprintf("%d/%d %s", played, of, now)) }}, standIn(t), os.Getenv("PATH"))
	if r.Verdict() != Good || len(r.Kept) != len(Promises()) || !strings.HasPrefix(r.Version, "2.") {
		t.Errorf("%+v", r)
	}
	if len(steps) != 1+len(rest) || !strings.HasPrefix(steps[0], "0/7 ") {
		t.Errorf("steps: %q", steps)
	}
	t.Logf("took %v, isolated %v %s", time.Duration(r.DurationMS)*time.Millisecond, r.Isolated, r.Open)
}

// TestBrokenClientsAreNamed: each way in which a client does not keep a promise is told
// as that promise, and as no other.
func TestBrokenClientsAreNamed(t *testing.T) {
	t.Parallel()
	broken := map[string][]Promise{
		"no-flag=--permission-mode":      {Starts},
		"no-flag=--resume":               {Resume},
		"no-flag=--setting-sources":      {SettingsFlag},
		"no-hook":                        {HooksRun},
		"no-hook=SessionStart":           {HooksRun},
		"no-hook=UserPromptSubmit":       {HooksRun},
		"no-hook=PreToolUse":             {HooksRun},
		"no-hook=Stop":                   {HooksRun},
		"no-hook=SessionEnd":             {HooksRun},
		"no-hook=StopFailure":            {Failures},
		"no-hook=PermissionRequest":      {Answer},
		"no-field=session_id":            {HookFields, StatusLine},
		"no-field=transcript_path":       {HookFields},
		"no-field=prompt_id":             {HookFields},
		"no-field=tool_input":            {HookFields},
		"no-field=stop_hook_active":      {Continued},
		"no-field=background_tasks":      {Background},
		"no-field=error":                 {Failures},
		"no-field=cost":                  {StatusLine},
		"no-variable=CLAUDE_PID":         {HookEnvironment, StatusLine},
		"no-variable=HEARTBEAT_SESSION":  {HookEnvironment, StatusLine},
		"prompt-altered":                 {KickOff},
		"prompt-twice":                   {KickOff},
		"exit-2-altered":                 {HandOver, Transcript},
		"exit-2-twice":                   {HandOver},
		"exit-2-ignored":                 {HandOver},
		"cap-fixed":                      {BlockCap},
		"no-transcript":                  {Transcript, Resume},
		"no-usage":                       {Bill},
		"no-status-line":                 {StatusLine},
		"status-line-only-between-turns": {StatusLine},
		"settings-ignored":               {StatusLine, SettingsFlag},
		"sources-ignored":                {SettingsFlag, Refuses},
		"dont-ask-allows":                {Refuses},
		"deny-ignored":                   {Answer},
		"deny-rules-ignored":             {Beside},
		"no-wake":                        {Background},
		"other-failures":                 {Failures},
		"resume-anew":                    {Resume},
		"term-ignored":                   {Signals},
		"term-only-if-idle":              {Signals},
	}
	of := 12
	if testbed.Raced { // the stand-in is raced as well, and is started some eight times for each
		of = 18
	}
	for _, fault := range testbed.SampleOf(t, slices.Sorted(maps.Keys(broken)), of) {
		want := broken[fault]
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			promises := func(r Result) (all []Promise) {
				for _, b := range r.Broken {
					all = append(all, b.Promise)
				}
				return all
			}
			r := probeUntil(t, standIn(t, fault), os.Getenv("PATH"), func(r Result) bool { return slices.Equal(promises(r), want) })
			for _, b := range r.Broken {
				if b.Does == "" || b.Otherwise == "" || b.Seen == "" {
					t.Errorf("a breach without words: %+v", b)
				}
			}
			if name, ok := strings.CutPrefix(fault, "no-variable="); ok && len(r.Broken) > 0 && !strings.Contains(string(r.Broken[0].Seen), name+" of a hook is \"\"") {
				t.Errorf("what was seen: %s", r.Broken[0].Seen)
			}
			if got := promises(r); r.Verdict() != Bad || !slices.Equal(got, want) {
				t.Errorf("%s, broken: %q, want %q\n%+v", r.Verdict(), got, want, r.Broken)
			}
		})
	}
}
