package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/journal"
)

// forger writes what it likes into the files of an agent's own directory.
type forger struct {
	t       *testing.T
	home    string
	strings []string
	chance  *rand.Rand

	far, neighbour string
}

// forgedTypes are the JSON files that an agent can write, and what is read from
// them: a field that is added is forged as well. Those without a type are forged
// by what stands in them.
var forgedTypes = map[string]reflect.Type{
	"session.json":       reflect.TypeFor[hook.Record](),
	".in-flight":         reflect.TypeFor[inbox.InFlight](),
	".inbox-meta":        nil,
	"fleet.json":         nil,
	"outbox.jsonl":       reflect.TypeFor[inbox.Delivery](),
	".dead-letter.jsonl": reflect.TypeFor[inbox.DeadEntry](),
}

// forgedText are those that are no JSON.
var forgedText = []string{".inbox-offset", ".responded", ".ids", ".inbox.jsonl.kept", "hook.log", "inbox.jsonl", ".gitignore", ".hook-lock", ".session-lock"}

// fields returns the ways to the fields of a type, by their JSON names.
func jsonFields(t reflect.Type) (ways [][]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return nil
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			ways = append(ways, jsonFields(f.Type)...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		ways = append(ways, []string{name})
		for _, way := range jsonFields(f.Type) {
			ways = append(ways, append([]string{name}, way...))
		}
	}
	return ways
}

// present returns the ways to what stands in a document.
func present(doc map[string]any) (ways [][]string) {
	for name, v := range doc {
		ways = append(ways, []string{name})
		if below, ok := v.(map[string]any); ok {
			for _, way := range present(below) {
				ways = append(ways, append([]string{name}, way...))
			}
		}
	}
	return ways
}

func (f *forger) values() []any {
	all := []any{
		nil, true, false, 0, -1, 1, 1 << 40, -1 << 63, 1e300,
		[]any{},
		map[string]any{},
		[]any{"x"},
		map[string]any{"why": "api-failure", "detail": "rate_limit"},
		map[string]any{"why": "api-failure", "detail": "authentication_failed", "final": true, "at": "2099-01-01T00:00:00Z"},
		map[string]any{"why": "shutdown", "final": true},
		map[string]any{"delivery_id": "d", "attempt": 1, "since": "2099-01-01T00:00:00Z"},
		map[string]any{"pid": os.Getpid(), "start": 1},
	}
	for _, s := range f.strings {
		all = append(all, s)
	}
	return all
}

// with returns a document with one field changed.
func with(doc map[string]any, way []string, v any) map[string]any {
	doc = maps.Clone(doc)
	if doc == nil {
		doc = map[string]any{}
	}
	if len(way) == 1 {
		doc[way[0]] = v
		return doc
	}
	below, _ := doc[way[0]].(map[string]any)
	doc[way[0]] = with(below, way[1:], v)
	return doc
}

// write puts a text in place of a file, or into it. Where something else goes
// on with the folder at that moment, it does not.
func (f *forger) write(name string, data []byte) {
	path := filepath.Join(f.home, name)
	if f.chance.IntN(2) == 0 {
		_ = os.WriteFile(path, data, 0o600)
		return
	}
	temp := filepath.Join(f.home, ".forged")
	if os.WriteFile(temp, data, 0o600) == nil {
		_ = os.Rename(temp, path)
	}
}

// last is the last line of a file of JSON.
func (f *forger) last(name string) map[string]any {
	data, _ := os.ReadFile(filepath.Join(f.home, name))
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var doc map[string]any
	_ = json.Unmarshal(lines[len(lines)-1], &doc)
	return doc
}

// field forges one field of a file.
func (f *forger) field(name string, way []string, v any) {
	doc := f.last(name)
	if doc == nil {
		return
	}
	data, err := json.Marshal(with(doc, way, v))
	if err != nil {
		f.t.Error(err)
		return
	}
	if old, _ := os.ReadFile(filepath.Join(f.home, name)); strings.HasSuffix(name, ".jsonl") {
		data = append(old, data...)
		data = data[max(0, len(data)-1<<20):]
	}
	f.write(name, append(data, '\n'))
}

// file forges each field of a file with each value, the first time it is there.
// It counts the fields.
func (f *forger) file(name string, pause func()) int {
	typ := forgedTypes[name]
	ways := map[string][]string{}
	note := func(all [][]string) {
		for _, way := range all {
			ways[strings.Join(way, ".")] = way
		}
	}
	if typ != nil {
		note(jsonFields(typ))
	}
	for end := time.Now().Add(5 * time.Second); f.last(name) == nil && time.Now().Before(end); {
		pause()
	}
	if f.last(name) == nil { // there is none, so we make one
		f.write(name, []byte("{\"id\":\"x\"}\n"))
	}
	note(present(f.last(name)))
	for _, key := range slices.Sorted(maps.Keys(ways)) {
		values := f.values()
		f.chance.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		for _, v := range values[:max(2, 10/testbed.Stride(4))] {
			f.field(name, ways[key], v)
			pause()
		}
	}
	return len(ways)
}

// keep forges fields of the session's record all the time, until enough has
// happened or it took long.
func (f *forger) keep(long time.Duration, enough func(began time.Time) bool, forged func() map[string]any) {
	began := time.Now()
	for looked := began; time.Since(began) < long; time.Sleep(10 * time.Millisecond) {
		if time.Since(looked) > 500*time.Millisecond {
			if looked = time.Now(); enough(began) {
				return
			}
		}
		doc := f.last("session.json")
		if doc == nil {
			continue
		}
		for way, v := range forged() {
			doc = with(doc, strings.Split(way, "."), v)
		}
		if data, err := json.Marshal(doc); err == nil {
			f.write("session.json", data)
		}
	}
}

// most is by how much a session may outlive its limit on a busy machine.
const most = 12

// TestWhatAnAgentForges: each field of each file of one agent's directory, and
// the files as a whole, are written by somebody else while a fleet of three runs.
// It parked the fleet, took a neighbour's prompt, switched off all limits of its
// own session, and had logs print any file.
func TestWhatAnAgentForges(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	s := &siege{world: newWorld(t), t: t}
	s.victim = filepath.Join(s.dir, "victim")
	secret := `{"type":"user","message":{"role":"user","content":"precious"}}` + "\n"
	s.put("victim/precious", "precious")
	s.put("home/.claude/projects/-elsewhere/private.jsonl", secret)
	s.put("victim.jsonl", secret)
	s.put("script.json", `{"rules": [{"match": "for long", "steps": [{"delay": "90s"}]}]}`)
	s.put("heartbeat.yaml", "version: 1\nname: fleet\nmax-sessions: 2\nslot-time: 5m\nshutdown-grace: none\ndefaults:\n  end-grace: 1s\n"+
		"  command: [heartbeat, simulate, --script, "+filepath.Join(s.dir, "script.json")+"]\n"+
		"agents:\n  bad:\n    dir: agents/bad\n    timeout: "+timeout.String()+"\n    session-timeout: 10m\n    max-restarts: 1000\n    max-attempts: 1000\n    on-orphan: retry\n"+
		"  good:\n    dir: agents/good\n  other:\n    dir: agents/other\n")
	for _, name := range []string{"bad", "good", "other"} {
		s.put("agents/"+name+"/README", "")
	}
	s.ok("apply")
	s.ok("send", "bad", "hello")
	s.ok("send", "bad", "work for long")
	r := s.background()
	home := filepath.Join(s.dir, "agents/bad/.heartbeat")
	f := &forger{t: t, home: home, chance: rand.New(rand.NewPCG(1, 2)), far: "2099-01-01T00:00:00Z"}
	f.neighbour = filepath.Join(s.dir, "agents/good/.heartbeat/inbox.jsonl")
	f.strings = []string{
		"", "x", "ended", "waiting", "turn", "ending", f.far, "1970-01-01T00:00:00Z", "a\n\x1b]52;c;eA==\x07",
		f.neighbour, filepath.Join(s.victim, "precious"), filepath.Join(s.dir, "victim.jsonl"),
		filepath.Join(s.dir, "home/.claude/projects/-elsewhere/private.jsonl"), "../../good/.heartbeat/inbox.jsonl", strings.Repeat("y", 100_000),
	}

	var work sync.WaitGroup
	stop := make(chan struct{})
	done := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	work.Go(func() {
		defer close(stop)
		pause := func() { time.Sleep(2 * time.Millisecond) }
		for _, name := range slices.Sorted(maps.Keys(forgedTypes)) {
			if n := f.file(name, pause); n < 2 {
				t.Errorf("%s: only %d fields were forged", name, n)
			}
		}
		for _, name := range forgedText {
			for _, text := range append(slices.Clone(f.strings), "9223372036854775807", "-1", "99999999999999999999", "null") {
				f.write(name, []byte(text+"\n"))
				pause()
			}
		}
		// At last what is worth most, for longer.
		never := func(time.Time) bool { return false }
		f.keep(5*time.Second, never, func() map[string]any { // a neighbour's prompts
			return map[string]any{"inbox": f.neighbour}
		})
		outlived := func(began time.Time) bool { // one that was forged all its life long
			for _, e := range s.ended("bad") {
				if e.Started.After(began) && e.At.Sub(e.Started) >= timeout {
					return true
				}
			}
			return false
		}
		f.keep(timeout+(most+8)*time.Second, outlived, func() map[string]any { // time without end
			return map[string]any{
				"ruling": nil, "yield": false, "since": f.far, "work.since": f.far, "work.delivery_id": fmt.Sprint(f.chance.Uint64()),
				"events": f.chance.IntN(1 << 30), "acknowledged": f.chance.IntN(1 << 30),
			}
		})
		f.keep(5*time.Second, never, func() map[string]any { // the neighbours' account
			return map[string]any{"ruling": map[string]any{"why": "api-failure", "detail": "rate_limit"}}
		})
	})

	served := map[string]int{}
	for i := 0; !done(); i++ {
		time.Sleep(2 * time.Second) // as persons look
		s.within("send", "bad", fmt.Sprintf("hello %d", i))
		for _, name := range []string{"good", "other"} {
			prompt := fmt.Sprintf("%s %d", name, i)
			if o := s.within("send", name, "--wait", "--timeout", "50s", prompt); o.status != 0 || o.stdout != "done: "+prompt+"\n" {
				t.Errorf("the neighbour %s: status %d, %q\n%s", name, o.status, o.stdout, o.stderr)
			}
			served[name]++
		}
		for _, args := range [][]string{{"status"}, {"logs", "bad"}, {"logs", "bad", "--raw"}, {"inbox", "bad"}, {"dead-letter", "bad"}} {
			if o := s.within(args...); strings.Contains(o.stdout, "precious") {
				t.Errorf("heartbeat %q prints what is not the agent's:\n%s", args, o.stdout)
			}
		}
	}
	work.Wait()
	if served["good"] < 3 {
		t.Errorf("the neighbours did %v entries", served)
	}
	s.ends(r)
	for _, path := range f.strings {
		f.field("session.json", []string{"transcript"}, path)
		if o := s.within("logs", "bad"); strings.Contains(o.stdout, "precious") {
			t.Errorf("logs prints %q:\n%s", path, o.stdout)
		}
	}
	s.checkForged(served, timeout)
}

// checkForged looks at what is left of a fleet in which one agent's files were
// forged.
func (s *siege) checkForged(served map[string]int, timeout time.Duration) {
	s.t.Helper()
	names, err := os.ReadDir(s.victim)
	if data := s.get("victim/precious"); err != nil || len(names) != 1 || data != "precious" {
		s.t.Errorf("the victim holds %v (%v), and %q", names, err, data)
	}
	for name, n := range served {
		text := s.get("agents/" + name + "/.heartbeat/outbox.jsonl")
		if lines := strings.Count(text, "\n"); lines != n || strings.Count(text, `"reply":"done: `+name+" ") != n {
			s.t.Errorf("%s did %d entries of %d:\n%s", name, lines, n, text)
		}
		if strings.Contains(s.get("agents/"+name+"/.heartbeat/inbox.jsonl"), "for long") {
			s.t.Errorf("%s has what was the forger's", name)
		}
	}
	for _, e := range s.journal() {
		if e.Agent != "bad" && e.Kind == journal.StateChanged && (e.State == "parked" || e.State == "held" || e.State == "backing-off") {
			s.t.Errorf("a neighbour: %+v", e)
		}
	}
	ended := s.ended("bad")
	for _, e := range ended {
		if e.At.Sub(e.Started) > timeout+most*time.Second {
			s.t.Errorf("a session of the forger's lived for %v: %+v", e.At.Sub(e.Started), e)
		}
	}
	if len(ended) == 0 {
		s.t.Error("no session of the forger's ended")
	}
}

// journal is what the fleet's says by now.
func (s *siege) journal() (all []journal.Event) {
	s.t.Helper()
	for e, err := range journal.Read(filepath.Join(s.dir, "state/fleet")) {
		if err != nil {
			s.t.Error(err)
		}
		all = append(all, e)
	}
	return all
}

// ended are the ends of an agent's sessions.
func (s *siege) ended(agent string) []journal.Event {
	s.t.Helper()
	return slices.DeleteFunc(s.journal(), func(e journal.Event) bool { return e.Agent != agent || e.Kind != journal.Ended })
}
