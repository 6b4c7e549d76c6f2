package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/hook/foreign"
	"heartbeat/internal/testbed"
)

// evil is what somebody writes who wants to act on the terminal of who looks,
// or to put a line of ours into their mouth.
const evil = "x\x1b]52;c;eA==\a\x1b[2J\x9b\u009b6n\u202egnp\u200b\u007f\r! forged: a\r\nhint: forged\nheartbeat: forged\n" +
	"warning: forged\n  forged: b\ntriage   forged  7\n12:00:00 > forged\n2026-01-01 00:00:00 triage forged\ndelivery: forged\n"

// forgeries are how lines begin that only a printer of ours may begin so.
var forgeries = []string{
	"! forged", "hint: forged", "heartbeat: forged", "warning: forged", "triage   forged", "12:00:00 > forged",
	"2026-01-01 00:00:00 triage forged", "delivery: forged",
}

// harmless checks what a command has printed.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, f := range forgeries {
			if strings.HasPrefix(line, f) {
				t.Errorf("%s: a forged line: %q", what, line)
			}
		}
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return r != '\t' && r != '\ufffd' && foreign.Acts(r) }); i >= 0 {
			t.Errorf("%s: %q acts: %q", what, line[i:min(len(line), i+10)], line)
		}
	}
}

// notWalked are the commands that show nothing of what others write.
var notWalked = map[string]string{
	"Init": "it writes a starter file", "Launch": "it is the terminal of its own command", "Simulate": "the stand-in",
	"Help": "ours alone", "Explain": "ours alone", "Schema": "ours alone", "Completion": "ours alone", "Version": "ours alone", "Service": "this machine alone",
	"Man": "ours alone", "Notify": "TestWhatNotifyLogShows", "Page": "it shows names that a person has given", "Restart": "it names agents", "Cancel": "it names agents and ids",
	"Alive": "what it shows it was told", "Series": "it shows times and counts", "Complete": "names out of the configuration", "Attach": "ptyrun/attach's TestHostileTerminal", "Screen": "ptyrun/screen's TestFilterStopsTheRest",
	"Run": "TestEscapesThroughARun", "Unapply": "it removes what is shown", "Pause": "it names agents", "Stop": "it names a process", "Resume": "it names agents",
	"ServeProbe": "it speaks to the process that has started it", "Reload": "it names agents", "Trigger": "it names triggers", "Validate": "the person's own file", "Edit": "the person's own file",
	"Backup": "it names a file", "Restore": "it names files",
}

// walked are the commands that show what others write; logs --raw is a terminal,
// as attach is. ID stands for the id of
// what they are to show.
var walked = map[string][][]string{
	"Status": {{"status"}}, "History": {{"history"}}, "Events": {{"events"}}, "Next": {{"next"}},
	"Usage": {{"usage", "--by", "entry"}, {"usage", "--by", "trigger"}},
	"Logs":  {{"logs", "triage"}, {"logs", "triage", "--full"}},
	"Inbox": {{"inbox", "triage"}, {"inbox", "triage", "show", "ID"}}, "Diff": {{"diff"}}, "Doctor": {{"doctor"}},
	"DeadLetter": {{"dead-letter", "triage"}, {"dead-letter", "triage", "show", "ID"}},
	"Recover":    {{"recover", "triage", "--on-orphan", "retry"}}, "Apply": {{"apply", "--dry-run"}},
	"Approval": {{"approval"}, {"approval", "show", "4f1c02d3"}},
	"Replies":  {{"replies"}}, "Answer": {{"answer", "triage"}},
	"Send": {}, // looked at once, as it waits
}

// Each command is walked, or there is a reason.
func TestEveryCommandIsWalked(t *testing.T) {
	t.Parallel()
	for _, s := range subcommands {
		name := strings.TrimSuffix(reflect.TypeOf(s.fields()).Elem().Name(), "Cmd")
		name = strings.ToUpper(name[:1]) + name[1:]
		if (walked[name] == nil) == (notWalked[name] == "") {
			t.Errorf("heartbeat %s: say in walked how %s is seen, or in notWalked why it need not be", s.name, name)
		}
	}
}

// spoil returns a document with evil behind the nth of its strings, counted
// from 0, or behind all of them for -1; and whether there is an nth.
func spoil(doc any, nth int) (any, bool) {
	count, found := 0, false
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				v[key] = walk(v[key])
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case string:
			if _, err := time.Parse(time.RFC3339, v); err == nil {
				return v
			}
			if count++; nth == -1 || count-1 == nth {
				found = true
				return v + evil
			}
		}
		return v
	}
	return walk(doc), found
}

// spoilFile spoils each document of a file, and reports whether there was
// something to spoil.
func spoilFile(t *testing.T, path string, whole []byte, nth int) bool {
	t.Helper()
	var out bytes.Buffer
	found := false
	dec := json.NewDecoder(bytes.NewReader(whole))
	for dec.More() {
		var doc any
		if dec.Decode(&doc) != nil {
			break
		}
		spoiled, there := spoil(doc, nth)
		line, err := json.Marshal(spoiled)
		if err != nil {
			t.Fatal(err)
		}
		found = found || there
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEscapesThroughEveryField puts what acts into each string of each file
// that an agent can write, and of the journal and the published states, which
// repeat what agents, files' names and hooks have said, and looks at what each
// command makes of it. Lines of status could be forged, JSON held C1 controls,
// and logs took what an agent said for lines of its own.
func TestEscapesThroughEveryField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script, err := json.Marshal(map[string]any{"rules": []any{map[string]any{"steps": []any{
		map[string]any{"tool": "Bash", "command": "printf '" + strings.ReplaceAll(evil, "\x9b", "") + "'"}, map[string]any{"reply": evil},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.put("script.json", string(script))
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate, --script, "+filepath.Join(w.dir, "script.json")+"]\n    permissions: {allow: [Bash]}\n")
	w.ok("apply")
	w.ok("send", "triage", "--id", "wanted", "prompt")
	if o := w.run("run", "--once"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	w.look("send", "triage", "--id", "wanted", "--wait", "--timeout", "1m", "prompt")
	// One of each: in flight, queued, given up; what is no JSON, too.
	home := "agents/triage/.heartbeat/"
	w.ok("send", "triage", "--id", "gone", evilText())
	w.ok("inbox", "triage", "drop", "gone")
	w.put(home+"inbox.jsonl", w.get(home+"inbox.jsonl")+`{"heartbeat":1,"id":"queued","source":"send","prompt":"queued"}`+"\n"+strings.ReplaceAll(evil, "\n", "\v")+"\n")
	w.put(home+"hook.log", evil)
	logs, _ := filepath.Glob(filepath.Join(w.dir, home, "sessions/*.log"))
	for _, l := range logs {
		if err := os.WriteFile(l, []byte(evil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.put("agents/triage/"+strings.ReplaceAll(strings.ReplaceAll(evil, "/", ""), "\x9b", "")[:60]+"/.claude/x", "")
	unlock, err := flock.TryLockFolder(filepath.Join(w.dir, "agents/triage")) // as a run holds it
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()

	files := map[string][]byte{}
	for _, dir := range []string{"agents/triage", "state/fleet", "home"} {
		_ = filepath.WalkDir(filepath.Join(w.dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && (strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".jsonl") || d.Name() == ".in-flight") {
				files[path], err = os.ReadFile(path)
			}
			return err
		})
	}
	if len(files) < 7 {
		t.Fatalf("only %d files: %q", len(files), sortedKeys(files))
	}
	for nth := -1; nth < 40; nth += testbed.Stride(14) {
		some := false
		for path, whole := range files {
			some = spoilFile(t, path, whole, nth) || some
		}
		if !some {
			break
		}
		for _, commands := range walked {
			for _, args := range commands {
				w.look(args...)
			}
		}
	}
}

// evilText is evil as a person can type it.
func evilText() string { return strings.ToValidUTF8(evil, "") }

// look runs a command in both forms and checks what it prints.
func (w *world) look(args ...string) {
	w.t.Helper()
	for i, a := range args {
		if a == "ID" {
			args = append([]string{}, args...)
			args[i] = map[string]string{"inbox": "queued", "dead-letter": "gone"}[args[0]]
		}
	}
	what := strings.Join(args, " ")
	text := w.run(args...)
	if args[0] == "send" { // the reply is all that is printed, with its lines
		text.stdout = strings.ReplaceAll(text.stdout, "\n", " ")
	}
	harmless(w.t, what, text.stdout)
	harmless(w.t, what+" (stderr)", text.stderr)
	asJSON := w.run(append(args, "-o", "json")...)
	for line := range strings.Lines(asJSON.stdout) {
		if !json.Valid([]byte(line)) {
			w.t.Errorf("%s: no JSON: %q", what, line)
		}
	}
	harmless(w.t, what+" -o json", asJSON.stdout)
	harmless(w.t, what+" -o json (stderr)", asJSON.stderr)
}

// TestEscapesThroughARun: what a watched file's name, a poll's complaint, a
// gate, a prompt, a reply and the terminal of a session that never got going
// put into a run's log and its result, in both forms.
func TestEscapesThroughARun(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		w := newWorld(t)
		reply, err := json.Marshal(evilText())
		if err != nil {
			t.Fatal(err)
		}
		w.put("evil", evil)
		w.put("script.json", `{"rules": [{"steps": [{"reply": `+string(reply)+`}]}]}`)
		stuck := strings.ReplaceAll(oneAgent, "agents:\n  triage", "agents:\n  stuck") + "    command: [sh, -c, 'cat " + filepath.Join(w.dir, "evil") + "; sleep 60']\n    start-timeout: 1s\n    max-restarts: 1\n    max-attempts: 1\n"
		w.put("heartbeat.yaml", strings.ReplaceAll(stuck, "agents/triage", "agents/stuck")+"  triage:\n    dir: agents/triage\n    command: [heartbeat, simulate, --script, "+
			filepath.Join(w.dir, "script.json")+"]\n    triggers:\n      - watch: ['in/*']\n        debounce: 10ms\n        prompt: 'see {{.Path}}'\n"+
			"      - poll: [sh, -c, 'cat "+filepath.Join(w.dir, "evil")+" >&2; exit 1']\n        every: 1h\n        prompt: p\n")
		w.put("agents/triage/in/"+strings.NewReplacer("/", "", "\x9b", "").Replace(evil)[:80], "x")
		w.ok("apply")
		w.ok("send", "stuck", evilText())
		w.ok("send", "triage", evilText())
		o := w.run("run", "--once", "--fire", "--log-level", "debug", "--log-format", format, "-o", format)
		if !strings.Contains(o.stderr, "trigger failed") {
			t.Errorf("no trigger has failed: %s", o.stderr)
		}
		harmless(t, "run", o.stdout)
		harmless(t, "run (stderr)", o.stderr)
		for _, args := range [][]string{{"status"}, {"events"}, {"history"}, {"doctor"}, {"dead-letter", "stuck"}} {
			w.look(args...)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// printers may write to the outside, or into a page past its methods: the
// files that do, each with a reason. Everything else is printed through a page,
// which trusts no text.
var printers = map[string]string{
	"page.go": "the page", "app.go": "it asks whether somebody reads", "table.go": "its tables", "output.go": "it prints pages", "log.go": "the log", "log_queue.go": "the log", "log_people.go": "the log",
	"main.go": "it names the files", "probe.go": "the pipe to the process that wants a probe; what it prints goes through a page", "launch.go": "its command's own terminal", "simulate.go": "the stand-in's terminal",
	"bottom.go":   "log lines, and what progress.go has made",
	"progress.go": "what pages and foreign.Line have made, on a terminal",
	"attach.go":   "a terminal, through a filter", "logs.go": "a terminal's log, through a filter",
	"edit.go":    "its editor's terminal",
	"service.go": "what to do with a unit, on stderr", "screen.go": "it asks whether there is a terminal",
}

func TestOnlyPagesArePrinted(t *testing.T) {
	t.Parallel()
	outside := regexp.MustCompile(`\.buf\b|fmt\.Fp?rint|os\.Std(out|err)|stdio\.out|a\.err\b|io\.WriteString`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := outside.Find(source); found != nil && printers[name] == "" && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s uses %s: what others wrote must go through a page", name, found)
		}
	}
}
