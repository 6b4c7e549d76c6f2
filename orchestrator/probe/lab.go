package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/settings"
	"heartbeat/internal/fakeapi"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/screen"
)

// apiKey is made up.
const apiKey = "sk-ant-api03-made-up-for-a-probe-0123456789abcdefghij"

// token is what our sessions have in HEARTBEAT_SESSION.
const token = "of-a-probe"

// lab is a place to run a client in: a home, a workspace, an API, hooks that write
// down what they are told. The client sees nothing of the user's own.
type lab struct {
	dir, home, work string
	api             *fakeapi.Server
	// variables are beside those of env.
	variables []string
	client    []string // its command line
	path      string   // PATH
	patience  time.Duration
}

// hookScript is the hook: "hook EVENT" writes its call down as calls/EVENT.N, and does
// what replies/EVENT.N.* say.
const hookScript = `dir=${0%/*} n=1
while ! mkdir "$dir/calls/$1.$n" 2>/dev/null; do
  n=$((n + 1))
  [ $n -lt 1000 ] || exit 1
done
at=$dir/calls/$1.$n reply=$dir/replies/$1.$n
printf '%s\n%s\n' "$CLAUDE_PID" "$HEARTBEAT_SESSION" >"$at/who"
cat >"$at/part"
mv "$at/part" "$at/payload"
if [ -e "$reply.waits" ]; then sleep 300; fi
if [ -e "$reply.out" ]; then cat "$reply.out"; fi
if [ -e "$reply.err" ]; then cat "$reply.err" >&2; exit 2; fi
`

func newLab(dir string, o order, model []fakeapi.Rule) (*lab, error) {
	l := &lab{
		dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"),
		client: o.Client, path: o.Path, patience: o.Patience,
	}
	for _, d := range []string{l.home, filepath.Join(l.work, client.Claude.Settings.Folder), l.in("tmp"), l.in("calls"), l.in("replies")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	err := os.WriteFile(l.in("hook"), []byte(hookScript), 0o600)
	if err == nil {
		// The client asks a person nothing, and trusts the workspace.
		err = l.write("home/.claude.json", map[string]any{
			"hasCompletedOnboarding": true, "theme": "dark",
			"customApiKeyResponses": map[string]any{"approved": []string{apiKey[len(apiKey)-20:]}, "rejected": []string{}},
			"projects":              map[string]any{l.work: map[string]any{"hasTrustDialogAccepted": true}},
		})
	}
	if err == nil {
		l.api, err = fakeapi.Start(append(model, asked("", says("ok")))...)
	}
	return l, err
}

// in is a path in the lab; one from elsewhere stays as it is.
func (l *lab) in(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// write writes a file of JSON.
func (l *lab) write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(l.in(name), data, 0o600)
}

// read returns a file, or nil where there is none.
func (l *lab) read(name string) []byte {
	data, err := os.ReadFile(l.in(name))
	if err != nil {
		return nil
	}
	return data
}

// env is the client's whole environment.
func (l *lab) env() []string {
	v := client.Claude.Variables
	env := []string{
		"PATH=" + l.path, "HOME=" + l.home, "TMPDIR=" + l.in("tmp"), "CLAUDE_CODE_TMPDIR=" + l.in("tmp"),
		"TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh",
		v.Base + "=" + l.api.URL(), v.Key + "=" + apiKey,
		"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL=1",
		"HEARTBEAT_SESSION=" + token,
		"GORACE=atexit_sleep_ms=0", // of a stand-in
	}
	return slices.Concat(env, v.Quiet, v.Session, l.variables)
}

// command is how a hook is called.
func (l *lab) command(event string) string {
	return "/bin/sh " + settings.Quote(l.in("hook")) + " " + event
}

// hooks are the settings of our hooks, by events.
func (l *lab) hooks(events ...string) map[string]any {
	all := map[string]any{}
	for _, event := range events {
		all[event] = []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": l.command(event), "timeout": 600}}}}
	}
	return all
}

// reply has the nth call of a hook do something: "err" is what it says with exit status
// 2, "out" what it prints, "waits" has it wait.
func (l *lab) reply(event string, n int, how, text string) error {
	return os.WriteFile(l.in(fmt.Sprintf("replies/%s.%d.%s", event, n, how)), []byte(text), 0o600)
}

// call is one call of a hook.
type call struct {
	n          int
	payload    []byte
	event      *client.Event // nil where the payload is none
	pid, token string
}

// calls are those of an event so far, in order.
func (l *lab) calls(event string) []call {
	names, _ := filepath.Glob(filepath.Join(l.in("calls"), event+".*", "payload"))
	var all []call
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(filepath.Dir(name)), "."))
		if err != nil {
			continue
		}
		at := fmt.Sprintf("calls/%s.%d/", event, n)
		c := call{n: n, payload: l.read(at + "payload")}
		c.pid, c.token, _ = strings.Cut(strings.TrimSuffix(string(l.read(at+"who")), "\n"), "\n")
		c.event, _ = client.Claude.Hooks.Read(bytes.NewReader(c.payload)) // nil: it is no payload
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b call) int { return a.n - b.n })
	return all
}

// run is a client that runs.
type run struct {
	child *ptyrun.Child
	shown *shown
}

// shown is the last that a terminal has shown.
type shown struct {
	mu   sync.Mutex
	data []byte
}

// maxShown limits it.
const maxShown = 256 << 10

// Write implements io.Writer.
func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = append(s.data, p...)
	if len(s.data) > maxShown {
		s.data = slices.Clone(s.data[len(s.data)-maxShown/2:])
	}
	return len(p), nil
}

// lines are the last lines on the screen, on one line.
func (s *shown) lines(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, line := range screen.Text(ptyrun.DefaultRows, ptyrun.DefaultCols, s.data) {
		if line = strings.Join(strings.Fields(line), " "); strings.Trim(line, " ─│╭╮╰╯━") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// grace is how long a client has after SIGTERM: what sessions give it.
func (l *lab) grace() time.Duration { return min(ptyrun.DefaultGrace, l.patience) }

// start starts the client.
func (l *lab) start(ctx context.Context, args ...string) (*run, error) {
	s := &shown{}
	child, err := ptyrun.Start(ctx, ptyrun.Config{
		Argv: slices.Concat(l.client, args), Dir: l.work, Env: l.env(), Output: s, Grace: l.grace(),
	})
	return &run{child, s}, err
}

// ended reports whether the client has ended by itself.
func (r *run) ended() bool {
	select {
	case <-r.child.Done():
		return true
	default:
		return false
	}
}

// touch makes an empty file in the workspace.
func (l *lab) touch(name string) error { return os.WriteFile(filepath.Join(l.work, name), nil, 0o600) }

// has reports whether there is a file in the workspace.
func (l *lab) has(name string) bool {
	_, err := os.Lstat(filepath.Join(l.work, name))
	return !errors.Is(err, fs.ErrNotExist)
}
