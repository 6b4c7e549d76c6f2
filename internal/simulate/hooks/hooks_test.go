package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/internal/testbed"
)

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(`{
		"hooks": {"Stop": [{"hooks": [
			{"type": "command", "command": "a"},
			{"type": "command", "command": "a", "timeout": 5},
			{"type": "command", "command": "b", "args": ["c d"], "timeout": 0.5, "asyncRewake": true},
			{"type": "command", "command": "long", "timeout": 1e300}]}],
		  "PreToolUse": [
			{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "m"}]},
			{"matcher": "*", "hooks": [{"type": "command", "command": "all"}]}]},
		"env": {"N": 1, "S": "x"}, "permissions": {"allow": ["Bash"], "defaultMode": "dontAsk"},
		"anything": {"else": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Hook{
		{Command: "a"},
		{Command: "b", Args: []string{"c d"}, Timeout: 500 * time.Millisecond, Async: true, Rewake: true},
		{Command: "long", Timeout: 1 << 62},
	}
	if diff := cmp.Diff(want, s.For("Stop", "")); diff != "" {
		t.Errorf("Stop hooks (-want +got)\n%s", diff)
	}
	for tool, want := range map[string]int{"Bash": 2, "Edit": 2, "BashOutput": 1, "Read": 1} {
		if got := len(s.For("PreToolUse", tool)); got != want {
			t.Errorf("%s: %d hooks, want %d", tool, got, want)
		}
	}
	if diff := cmp.Diff(map[string]string{"N": "1", "S": "x"}, s.Env); diff != "" {
		t.Error(diff)
	}
	s.DisableAll = true
	if got := s.For("Stop", ""); got != nil {
		t.Errorf("hooks although all are off: %v", got)
	}
}

// A bad entry costs itself; the rest holds.
func TestParseWarnings(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"type":"command","command":"x","timeout":0}`, `{"type":"command","command":"x","timeout":-5}`,
		`{"type":"command","command":"x","timeout":"30"}`, `{"type":"command"}`, `{"type":"prompt","command":"x"}`, `7`,
	} {
		s, err := Parse([]byte(`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"good"},` + bad + `]}]}}`))
		if err != nil || len(s.Warnings) != 1 || len(s.For("Stop", "")) != 1 {
			t.Errorf("%s: %v, warnings %q, hooks %v", bad, err, s.Warnings, s.For("Stop", ""))
		}
	}
	for _, bad := range []string{`{"hooks":{"Stopp":[]}}`, `{"hooks":{"Stop":{}}}`} {
		if s, err := Parse([]byte(bad)); err != nil || len(s.Warnings) != 1 {
			t.Errorf("%s: %v, warnings %q", bad, err, s.Warnings)
		}
	}
	if _, err := Parse([]byte(`{"hooks": {`)); err == nil {
		t.Error("broken JSON parsed")
	}
}

// A process's exit, its output and who holds it decide what it said.
func TestRunAndJudge(t *testing.T) {
	t.Parallel()
	const block = `echo '{"decision":"block","reason":"x"}'; `
	tests := map[string]struct {
		sh   string
		want Verdict
	}{
		"nothing":             {`:`, Verdict{}},
		"stdin":               {`cat`, Verdict{Plain: "payload"}},
		"block":               {block, Verdict{Block: true, Reason: "x"}},
		"pretty, BOM":         {`printf '\357\273\277\n {"decision": "block",\n "reason": "a\\u0000b", "unknown": 1}\n'`, Verdict{Block: true, Reason: "a\x00b"}},
		"no reason":           {`echo '{"decision":"block"}'`, Verdict{Block: true, Reason: "Blocked by hook"}},
		"JSON before exit 2":  {block + `echo y >&2; exit 2`, Verdict{Block: true, Reason: "x"}},
		"exit 2":              {`printf ' \n/clear\n' >&2; exit 2`, Verdict{Block: true, ByExit: true, Reason: " \n/clear\n"}},
		"exit 2, bad JSON":    {`echo '{"decision":'; echo y >&2; exit 2`, Verdict{Block: true, ByExit: true, Reason: "y\n"}},
		"exit 2, silent":      {`exit 2`, Verdict{Block: true, ByExit: true, Reason: "No stderr output"}},
		"stop":                {`echo '{"continue":false,"stopReason":"why"}'`, Verdict{Stop: true, StopWhy: "why"}},
		"async":               {`echo '{"async":true,"decision":"block"}'`, Verdict{}},
		"array":               {`echo '[]'`, Verdict{Plain: "[]\n"}},
		"no terminal":         {`exec 2>/dev/null; (: </dev/tty) && echo one || echo none`, Verdict{Plain: "none\n"}},
		"sockets":             {`exec 2>/dev/null; (: >/dev/stdout) && echo opened || echo refused >&1`, Verdict{Plain: "refused\n"}},
		"own session":         {`[ "$(cut -d' ' -f6 /proc/$$/stat)" = $$ ] && echo leader`, Verdict{Plain: "leader\n"}},
		"large, unread stdin": {`exec <&-; head -c 1000000 /dev/zero | tr '\0' x >&2; exit 2`, Verdict{Block: true, ByExit: true, Reason: strings.Repeat("x", 1_000_000)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Runner{}.Run(t.Context(), Hook{Command: test.sh}, Call{Payload: []byte("payload"), Env: os.Environ()})
			if diff := cmp.Diff(test.want, Judge(r)); diff != "" {
				t.Errorf("(-want +got)\n%.2000s", diff)
			}
		})
	}
	t.Run("held", func(t *testing.T) {
		t.Parallel()
		r := Runner{HeldDelay: 50 * time.Millisecond}.Run(t.Context(), Hook{Command: `sleep 3 >/dev/null & ` + block}, Call{})
		if v := Judge(r); v.Block || !strings.Contains(v.Problem, "refusing to honor") {
			t.Errorf("verdict %+v", v)
		}
	})
	t.Run("not there", func(t *testing.T) {
		t.Parallel()
		r := Runner{}.Run(t.Context(), Hook{Command: "/nonexistent", Args: []string{}}, Call{})
		if v := Judge(r); v.Problem == "" || v.Block {
			t.Errorf("verdict %+v", v)
		}
	})
}

// At its time a hook's group gets SIGTERM, then SIGKILL, and its words are
// dropped; a grandchild in a session of its own survives.
func TestTimeout(t *testing.T) {
	t.Parallel()
	r := Runner{KillDelay: 300 * time.Millisecond}
	for timeout := 500 * time.Millisecond; ; timeout *= 2 {
		dir := t.TempDir()
		exists := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
		started := time.Now()
		result := r.Run(t.Context(), Hook{
			Command: `trap 'touch termed' TERM; touch trapped
				setsid sh -c 'touch all; for i in $(seq 6000); do if [ -e over ]; then touch survived; exit; fi; sleep 0.02; done' &
				echo '{"decision":"block","reason":"x"}'; while :; do sleep 0.05; done`,
			Timeout: timeout,
		}, Call{Dir: dir})
		took := time.Since(started)
		if v := Judge(result); !result.Cut || v != (Verdict{}) {
			t.Errorf("result %+v, verdict %+v", result, v)
		}
		if took < timeout+200*time.Millisecond && exists("trapped") || took > testbed.Patience {
			t.Errorf("it took %v", took)
		}
		if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if !exists("all") && timeout < testbed.Patience/2 {
			continue // a busy machine: it had not begun
		}
		if !exists("termed") {
			t.Error("no SIGTERM")
		}
		if !testbed.Await(testbed.Patience, func() bool { return exists("survived") }) {
			t.Fatal("the grandchild did not survive")
		}
		return
	}
}

// A child that ignores SIGTERM goes by SIGKILL although the leader is gone;
// the hook's end does not wait for it.
func TestStubbornChild(t *testing.T) {
	t.Parallel()
	// a busy machine may keep us for longer than the delay
	for delay := 250 * time.Millisecond; !stubborn(t, delay); delay *= 2 {
		if delay > 10*time.Second {
			t.Fatal("the hook's end waited for its child")
		}
	}
}

// stubborn reports whether the hook's end came before its child's, which is a delay after
// it was told to end.
func stubborn(t *testing.T, delay time.Duration) bool {
	t.Helper()
	dir := t.TempDir()
	var rest sync.WaitGroup
	r := Runner{KillDelay: delay, Rest: &rest}
	ctx, cancel := context.WithCancel(t.Context())
	child, told := 0, time.Time{}
	go func() {
		defer cancel()
		defer func() { told = time.Now() }()
		testbed.Await(testbed.Patience, func() bool {
			text, _ := os.ReadFile(filepath.Join(dir, "child"))
			child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			return child > 0
		})
	}()
	result := r.Run(ctx, Hook{Command: `(trap '' TERM; exec sh -c 'echo $$ >child; exec sleep 600') & sleep 600`}, Call{Dir: dir})
	first := !ended(child) && time.Since(told) < delay
	if !result.Cut {
		t.Errorf("the hook: %+v", result)
	}
	rest.Wait()
	if !testbed.Await(testbed.Patience, func() bool { return ended(child) }) {
		t.Error("the child survived")
	}
	return first
}

// ended reports whether a process is gone, or would be if its parent had looked.
func ended(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ")
}

// Cancelling ends every hook; what each said is dropped.
func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	ended := 0
	(Runner{}).RunAll(ctx, []Hook{{Command: "echo x >&2; sleep 30; exit 2"}, {Command: "sleep 30"}}, Call{}, func(r Result) {
		if ended++; !r.Cut {
			t.Errorf("%+v", r)
		}
	})
	if ended != 2 {
		t.Errorf("%d hooks ended", ended)
	}
}
