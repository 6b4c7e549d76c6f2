package remote

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var words = []string{
	"", " ", "status", "two words", "it's", `"double"`, "a\nb\n", "\n", "$(touch x)", "`touch x`", "$HOME", "${IFS}", "a;b", "a&b", "|", ">x", "*", "?", "[a]",
	"~", "~/x", "=ls", "=", "-n", "--", "!", "!!", "#x", "\\", `a\\b`, "{a,b}", "(x)", "é", "你好", "\t", "'", "''", "a'b'c", "\x01\x1b[31m", "%s",
}

// shells are those that may be somebody's on the other machine.
func shells() (found []string) {
	for _, name := range []string{"sh", "bash", "zsh", "dash"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// heard is what a shell makes of a command line's arguments.
func heard(t *testing.T, shell string, args []string) []string {
	t.Helper()
	line := `heartbeat() { for a in "$@"; do printf '%s\0' "$a"; done; }; ` + Call{Args: args}.Line()
	cmd := exec.CommandContext(t.Context(), shell, "-c", line)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %q", shell, err, line)
	}
	if left, _ := os.ReadDir(cmd.Dir); len(left) > 0 {
		t.Fatalf("%s has run something: %q left %s", shell, line, left[0].Name())
	}
	got := strings.Split(string(out), "\x00")
	return got[:len(got)-1]
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, shell := range shells() {
		if got := heard(t, shell, words); !slices.Equal(got, words) {
			t.Errorf("%s: %q", shell, got)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for i := range words {
		f.Add(words[i], words[(i+7)%len(words)])
	}
	all := shells()
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) {
			t.Skip("no argument has it")
		}
		for _, shell := range all {
			if got := heard(t, shell, []string{"x", a, b}); !slices.Equal(got, []string{"x", a, b}) {
				t.Errorf("%s: %q and %q became %q", shell, a, b, got)
			}
		}
	})
}

func TestTheProgramThere(t *testing.T) {
	for program, want := range map[string]string{
		"": "heartbeat status", "~/go/bin/heartbeat": "~/go/bin/heartbeat status", "/opt/my tools/hb": "'/opt/my tools/hb' status", "~/a b/hb": "~/'a b/hb' status",
	} {
		t.Setenv(EnvProgram, program)
		if got := (Call{Args: []string{"status"}}).Line(); got != want {
			t.Errorf("%s: %s", program, got)
		}
	}
}

// ssh puts a program of that name into PATH.
func ssh(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestAsk(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		out    string
		status int
		says   string
		hint   string
	}{
		"it answers":             {`echo "$*"`, "-T -n -o BatchMode=yes -- me@far env HEARTBEAT_VIA=me@far heartbeat status\n", 0, "", ""},
		"its status":             {"echo x; exit 78", "x\n", 78, "", ""},
		"ssh fails":              {"echo banner >&2; echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255", "", 255, `cannot run heartbeat on "me@far": ssh ended with exit status 255: ssh: connect to host far port 22: Connection refused`, "try: ssh me@far true"},
		"ssh is killed":          {"kill -9 $$", "", 255, "signal: killed", "try: ssh"},
		"there is no heartbeat":  {"echo 'sh: 1: heartbeat: not found' >&2; exit 127", "", 127, "there is no heartbeat in the PATH of its shell: sh: 1: heartbeat: not found", "HEARTBEAT_REMOTE=/path/to/heartbeat"},
		"a connection that hang": {"exec sleep 60", "", 255, "deadline", "try: ssh"},
	} {
		t.Run(name, func(t *testing.T) {
			ssh(t, tt.script)
			ctx := t.Context()
			if tt.script == "exec sleep 60" {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, 50*time.Millisecond)
				defer stop()
			}
			out, status, err := Call{Host: "me@far", Args: []string{"status"}}.Ask(ctx)
			if tt.says == "" {
				if err != nil || status != tt.status || string(out) != tt.out {
					t.Errorf("%q, %d, %v", out, status, err)
				}
				return
			}
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.ExitCode() != tt.status || !strings.Contains(err.Error(), tt.says) || !strings.Contains(failed.Hint(), tt.hint) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNamesThatAreNoHosts(t *testing.T) {
	t.Parallel()
	for host, is := range map[string]bool{
		"far": true, "me@far": true, "me@10.0.0.1": true, "me@fe80::1%eth0": true, "ssh://me@far:2222": true,
		"": false, "-oProxyCommand=x": false, "a b": false, "a\nb": false,
	} {
		if err := Check(host); (err == nil) != is {
			t.Errorf("%q: %v", host, err)
		}
	}
}
