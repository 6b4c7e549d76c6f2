package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// spoken is a run of a command with -o json, whose shape testdata/json/NAME holds.
type spoken struct {
	name   string
	args   []string
	before func()
}

// unspoken are the commands without a result of their own.
var unspoken = map[string]string{
	"simulate":   "its output is the client's",
	"__probe":    "is for doctor --probe",
	"__complete": "is for the scripts of shells",
	"edit":       "is for people; TestEdit",
	"attach":     "needs a terminal; TestAttach",
	"alive":      "needs a session; TestASessionMaySayThatItLives of internal/e2e",
}

// asks has agent triage have made a request that waits for its answer.
func (f *fleet) asks(id string) {
	f.t.Helper()
	r := approval.Request{
		ID: id, Agent: "triage", Key: f.key("triage"), At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Until: time.Date(2046, 1, 9, 3, 4, 5, 0, time.UTC),
		Category: "destroy", Question: "Deploy?", Payload: "x", Session: "s", Entry: "e", State: approval.Asked,
	}
	storetest.Write(f.t, f.dir+"/state/fleet", func(c *store.Change) error { return approval.Put(c, r) })
}

// key is what heartbeat knows an agent by.
func (f *fleet) key(agent string) string {
	f.t.Helper()
	fleet, err := config.Load(filepath.Join(f.dir, "heartbeat.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	all, err := memory.ReadIn(filepath.Join(f.dir, "state/fleet"))
	if err != nil {
		f.t.Fatal(err)
	}
	return all.Follow(fleet.Agents, time.Now()).Declared()[agent].Key
}

// TestTheVocabularyOfJSON: each command says the same things in the same words, and
// says them tomorrow as it does today. The golden files hold each key with its type and, of
// what programs compare (states, reasons, kinds, truth, small counts), the values that it
// may have here. They were recorded from commit 8e3db45; added since, on purpose, are
// data.scheduler.program (status) and data.program (stop). A key never changes what it
// means: what is new gets a new one.
//
// After a wanted change: UPDATE_GOLDEN=1 go test ./cmd/heartbeat -run
// TestTheVocabularyOfJSON. It adds values to those that are there, as what a run says
// depends on how fast the machine is.
func TestTheVocabularyOfJSON(t *testing.T) {
	t.Parallel()
	f := &fleet{world: newWorld(t)}
	f.put("heartbeat.yaml", simulated+"    mode: persist\n  quiet:\n    dir: agents/quiet\n    command: [heartbeat, simulate]\n")
	f.put("agents/triage/README", "")
	live := func(r *hook.Record) bool { return r.Phase == hook.Waiting }
	var commands []spoken
	add := func(name string, before func(), args ...string) {
		commands = append(commands, spoken{name, args, before})
	}
	do := func(args ...string) func() { return func() { f.world.done(args...) } }
	add("version", nil, "version")
	add("schema", nil, "schema")
	add("completion", nil, "completion", "bash")
	add("man", nil, "man")
	add("help", nil, "help")
	add("help-topic", nil, "help", "triggers")
	add("explain", nil, "explain")
	add("explain-word", nil, "explain", "held")
	add("wrong-usage", nil, "nothing")
	add("init", nil, "init", "-f", "new.yaml")
	add("validate", nil, "validate")
	add("validate-problems", func() {
		f.put("bad.yaml", "version: 1\ninclude: [none/*.yaml]\nagents: {a: {directory: a}}\n")
	}, "validate", "-f", "bad.yaml")
	add("validate-warnings", func() {
		f.put("odd.yaml", "version: 1\ninclude: [none/*.yaml]\nagents: {a: {dir: a, command: [heartbeat, simulate]}}\n")
	}, "validate", "-f", "odd.yaml")
	add("diff", nil, "diff")
	add("doctor", nil, "doctor", "triage")
	add("doctor-probe", nil, "doctor", "--probe", "--client", "none")
	add("apply", nil, "apply")
	add("diff-nothing", nil, "diff")
	add("status-stopped", nil, "status")
	add("next", nil, "next", "-n", "2")
	add("send-later", nil, "send", "triage", "--in", "90m", "--id", "later", "hello")
	add("next-due", do("send", "triage", "--in", "1ms", "--id", "due", "hello"), "next")
	add("send-cancel", nil, "send", "triage", "--cancel", "due")
	add("inbox-empty", nil, "inbox")
	add("dead-letter-none", nil, "dead-letter")
	add("history-none", nil, "history")
	add("events-none", nil, "events")
	add("replies-none", nil, "replies")
	add("logs-none", nil, "logs")
	add("send", nil, "send", "triage", "--id", "one", "hello")
	add("send-again", nil, "send", "triage", "--id", "one", "hello")
	add("inbox", nil, "inbox")
	add("inbox-agent", nil, "inbox", "triage")
	add("inbox-show", nil, "inbox", "triage", "show", "one")
	add("inbox-drop", do("send", "triage", "--id", "two", "hello"), "inbox", "drop", "two")
	add("dead-letter", nil, "dead-letter")
	add("dead-letter-agent", nil, "dead-letter", "triage")
	add("dead-letter-show", nil, "dead-letter", "triage", "show", "two")
	add("dead-letter-retry", nil, "dead-letter", "triage", "retry", "two")
	add("dead-letter-purge", do("inbox", "drop", "two"), "dead-letter", "purge", "--all")
	add("recover", nil, "recover", "triage")
	add("answer", func() {
		if err := os.Remove(filepath.Join(f.dir, "agents/triage/.heartbeat/.inbox-meta")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		f.put("agents/triage/.heartbeat/.inbox-offset", "rubbish")
	}, "answer", "triage")
	add("answer-given", nil, "answer", "triage", "start")
	notes := simulated + "notify: {desk: {command: [tee, told.txt]}, dead: {command: ['false']}}\n"
	add("approval", func() {
		f.asks("4f1c02d3")
	}, "approval")
	add("approval-show", nil, "approval", "show", "4f1c02d3")
	add("approval-approve", nil, "approval", "approve", "4f1c02d3", "--note", "but slowly")
	add("approval-reject", func() {
		f.asks("4f1c02d4")
	}, "approval", "reject", "4f1c02d4", "--note", "not today")
	add("approval-all", nil, "approval", "list", "--all")
	add("notify-log-none", func() { f.put("told.yaml", strings.Replace(notes, "name: fleet", "name: told", 1)) }, "notify", "log", "-f", "told.yaml")
	add("notify-test", nil, "notify", "test", "-f", "told.yaml")
	add("notify-test-desk", nil, "notify", "test", "desk", "-f", "told.yaml")
	add("notify-log", func() { f.world.toldSomething("told") }, "notify", "log", "-f", "told.yaml")
	add("page-link", func() {
		f.put("page.yaml", strings.Replace(simulated, "name: fleet", "name: paged", 1)+"listen: [{address: \":18399\", serve: [page]}]\n")
	}, "page", "link", "--role", "act", "--name", "phone", "-f", "page.yaml")
	add("page-tokens", nil, "page", "tokens", "-f", "page.yaml")
	add("page-revoke", nil, "page", "revoke", "phone", "-f", "page.yaml")
	add("service-print", nil, "service", "print", "systemd")
	add("service-install", nil, "service", "install", "systemd", "--dry-run")
	add("service-status", nil, "service", "status", "systemd")
	add("launch", nil, "launch", "--", "true")
	add("not-running", nil, "trigger", "triage")
	add("pause-stopped", nil, "pause", "quiet")
	add("resume-stopped", nil, "resume", "quiet")
	add("run-once", nil, "run", "--once", "--fire", "--once-timeout", "1m")
	add("history", nil, "history")
	add("history-stops", nil, "history", "--stops")
	add("events-verify", nil, "events", "--verify")
	add("replies", nil, "replies")
	add("logs", nil, "logs", "triage")
	add("events", nil, "events")
	add("usage", nil, "usage")
	add("series", nil, "series")
	add("status", func() {
		f.start()
		f.t.Cleanup(f.stop)
		f.world.done("send", "triage", "look")
		f.is("a session waits", live)
		until(t, "the whole of its bill is known", func() bool {
			_, bill, _ := strings.Cut(f.world.done("status", "-o", "json"), `"spent":{`)
			bill, _, _ = strings.Cut(bill, "}")
			return strings.Contains(bill, `"cost":`) && strings.Contains(bill, `"calls":`) && strings.Contains(bill, `"turns":`)
		})
	}, "status")
	add("screen", nil, "screen", "triage")
	add("pause", nil, "pause", "quiet")
	add("resume", nil, "resume", "quiet")
	add("pause-trigger", nil, "pause", "triage", "--trigger", "cron-1", "--for", "1h")
	add("resume-trigger", nil, "resume", "triage", "--trigger", "cron-1")
	add("trigger", nil, "trigger", "triage")
	add("reload", nil, "reload")
	add("send-wait", func() {
		until(t, "nothing is in the way", func() bool { return !strings.Contains(f.world.done("status"), "! ") && live(f.record()) })
	}, "send", "triage", "--wait", "and this?")
	add("cancel", nil, "cancel", "quiet")
	add("restart", nil, "restart", "quiet")
	add("backup", nil, "backup", "backup.db")
	add("backup-as-files", nil, "backup", "--as-files", "as-files")
	add("stop", nil, "stop")
	add("restore", nil, "restore", "backup.db")
	add("unapply", nil, "unapply")

	missing := map[string]bool{}
	parser, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range leaves(parser.Model.Node) {
		missing[leaf.Name] = unspoken[leaf.Name] == ""
	}
	for _, c := range commands {
		delete(missing, c.args[0])
		if c.before != nil {
			c.before()
		}
		o := f.run(append([]string{"-o", "json", "--heartbeat-ms", "0"}, c.args...)...)
		envelopeOf(t, o)
		holdsShape(t, c.name, o.stdout)
	}
	for name, is := range missing {
		if is {
			t.Errorf("the JSON of the command %s is held by no golden file: add it here", name)
		}
	}
}

// leaves are all commands.
func leaves(n *kong.Node) []*kong.Node {
	if len(n.Children) == 0 {
		return []*kong.Node{n}
	}
	var all []*kong.Node
	for _, c := range n.Children {
		all = append(all, leaves(c)...)
	}
	return all
}

// holdsShape compares the shape of lines of JSON with the golden file of a command.
func holdsShape(t *testing.T, name, out string) {
	t.Helper()
	all := slices.Collect(strings.Lines(out))
	line, envelope := map[string][]string{}, map[string][]string{}
	for i, text := range all {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%s: %v: %s", name, err, text)
		}
		if name == "schema" {
			v.(map[string]any)["data"] = map[string]any{} // a document in words of its own
		}
		shapeOf(t, name, map[bool]map[string][]string{true: envelope, false: line}[i == len(all)-1], "", v)
	}
	got := listed("a line\n", line) + listed("the last line\n", envelope)
	path := filepath.Join("testdata", "json", name)
	want, err := os.ReadFile(path)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		want, err = []byte(merged(got, string(want))), os.WriteFile(path, []byte(merged(got, string(want))), 0o644)
	}
	if err != nil || merged(string(want), got) != string(want) || keysOf(got) != keysOf(string(want)) {
		t.Errorf("%s has another shape, or says other values, than %s (%v):\n%s\nit is\n%s%s", name, path, err, want, out, got)
	}
}

// merged is a golden file with the values that another one has for the same keys, too.
func merged(golden, more string) string {
	values := map[string][]string{}
	title := ""
	each := func(text string, do func(line, key string, said []string)) {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if !strings.HasPrefix(line, " ") {
				title = line
			}
			key, said, _ := strings.Cut(line, " = ")
			do(line, title+key, strings.Fields(said))
		}
	}
	each(more, func(_, key string, said []string) { values[key] = said })
	var all strings.Builder
	each(golden, func(line, key string, said []string) {
		said = slices.Concat(said, values[key])
		slices.Sort(said)
		line, _, _ = strings.Cut(line, " = ")
		if said = slices.Compact(said); len(said) > 0 {
			line += " = " + strings.Join(said, " ")
		}
		all.WriteString(line + "\n")
	})
	return all.String()
}

// keysOf is a golden file without values.
func keysOf(golden string) string { return anyValues.ReplaceAllString(golden, "") }

var anyValues = regexp.MustCompile(`(?m) = .*$`)

func listed(title string, shape map[string][]string) string {
	if len(shape) == 0 {
		return ""
	}
	for _, path := range slices.Sorted(maps.Keys(shape)) {
		values := slices.DeleteFunc(slices.Clone(shape[path]), func(kind string) bool { return kind[0] != '=' })
		kinds := slices.DeleteFunc(slices.Clone(shape[path]), func(kind string) bool { return kind[0] == '=' })
		title += "  " + path + ": " + strings.Join(kinds, " or ")
		for i, v := range values {
			title += map[bool]string{true: " =", false: ""}[i == 0] + " " + v[1:]
		}
		title += "\n"
	}
	return title
}

var anyTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)

// shapeOf adds the paths of a value with their types, and holds the rules that all
// share.
func shapeOf(t *testing.T, name string, shape map[string][]string, path string, v any) {
	t.Helper()
	add := func(kind string) {
		if !slices.Contains(shape[path], kind) {
			shape[path] = append(shape[path], kind)
			slices.Sort(shape[path])
		}
	}
	key := path[strings.LastIndex(path, ".")+1:]
	for _, wrong := range []string{"_ns", "_s", "took", "took_ms", "elapsed"} {
		if strings.HasSuffix(key, wrong) && wrong[0] == '_' || key == wrong {
			t.Errorf("%s: %s: a duration is called duration_ms", name, path)
		}
	}
	if strings.ToLower(key) != key || strings.Contains(key, "-") {
		t.Errorf("%s: %s is not written like_this", name, path)
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			add("object")
		}
		for k, of := range v {
			shapeOf(t, name, shape, strings.TrimPrefix(path+"."+k, "."), of)
		}
	case []any:
		path += "[]"
		if len(v) == 0 {
			add("none")
		}
		for _, of := range v {
			shapeOf(t, name, shape, path, of)
		}
	case string:
		if !anyTime.MatchString(v) {
			add("string")
			if asWord.MatchString(v) && !madeUpID.MatchString(v) && wordKeys[key] {
				add("=" + v)
			}
			return
		}
		at, err := time.Parse(time.RFC3339, v)
		if err != nil || !strings.HasSuffix(v, "Z") || at.IsZero() {
			t.Errorf("%s: %s is %s, which is no time in UTC", name, path, v)
		}
		add("time")
	case nil:
		add("null")
	case bool:
		add("bool")
		add(fmt.Sprint("=", v))
	default:
		add("number")
		if countKeys[key] {
			add(fmt.Sprint("=", v))
		}
	}
}

// asWord is what a word or a name looks like, madeUpID an id; wordKeys are the keys whose words programs
// compare, countKeys those whose numbers do not depend on the machine.
var (
	madeUpID = regexp.MustCompile(`^[0-9a-f-]{6,}$`)
	asWord   = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_:+.]*$`)
	wordKeys = setOf("state agent source kind why reason from phase outcome done answer code id delivery name role category trigger mode policy " +
		"result verdict form change severity level status what by")
	countKeys = setOf("attempt attempts entries acknowledged dead_letters dead_lettered count iteration iterations")
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// A list is never null, wherever it is, and what is printed is left as it was.
func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	type Inner struct{ List []string }
	type base struct{ Embedded []int }
	v := struct {
		base
		*Inner
		Of      []Inner
		By      map[string]Inner
		To      *Inner
		None    *Inner
		Any     any
		At      time.Time
		Raw     json.RawMessage
		private []int
	}{Inner: &Inner{}, Of: []Inner{{}}, By: map[string]Inner{"a": {}}, To: &Inner{}, Any: Inner{}, At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("x", 3600))}
	line, err := jsonLine(v)
	const want = `{"Embedded":[],"List":[],"Of":[{"List":[]}],"By":{"a":{"List":[]}},"To":{"List":[]},"None":null,"Any":{"List":[]},"At":"2026-03-01T11:00:00Z","Raw":null}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("%v: %s", err, line)
	}
	if v.Of[0].List != nil || v.To.List != nil || v.At.Hour() != 12 || v.private != nil {
		t.Errorf("the value itself has changed: %+v", v)
	}
}
