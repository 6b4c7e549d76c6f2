package inbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
	"heartbeat/internal/testbed"
)

// disk is what a power cut leaves of a folder: what was synced, and any first
// part of the changes of names since (a journal keeps their order), each with
// its content or without.
type disk struct {
	dir   string            // the folder as the kernel sees it
	kept  map[string]string // :: name → content that is certainly on disk
	names []change          // changes of names that no folder sync has followed
	temp  map[string]string // :: name → content of the file that will replace it
	whole map[string]bool   // :: name → temp is synced
	dirty map[string]bool   // :: name of an extended file → not synced
}

// change is a name that got a file, or lost it.
type change struct {
	name, content string
	synced, gone  bool
}

func extended(name string) bool {
	return slices.Contains([]string{"inbox.jsonl", UrgentFile, outboxFile, DeadFile, idsFile}, name)
}

// observe follows the steps of a folder.
func (d *disk) observe(s durable.Step) {
	switch {
	case s.Verb == durable.SyncFolder:
		d.apply(d.kept, len(d.names), false)
		d.names = nil
	case s.Verb == durable.Remove:
		d.names = append(d.names, change{name: s.Name, gone: true})
	case s.Verb == durable.Create && s.Name == respondedFile:
		d.names = append(d.names, change{name: s.Name, synced: true})
	case extended(s.Name):
		d.extend(s)
	case s.Verb == durable.Create:
		d.temp[s.Name], d.whole[s.Name] = "", false
	case s.Verb == durable.Write:
		d.temp[s.Name] += string(s.Data)
	case s.Verb == durable.Sync:
		d.whole[s.Name] = true
	case s.Verb == durable.Rename:
		d.names = append(d.names, change{name: s.Name, content: d.temp[s.Name], synced: d.whole[s.Name]})
	}
}

func (d *disk) extend(s durable.Step) {
	switch s.Verb {
	case durable.Create:
		d.names = append(d.names, change{name: s.Name, synced: true})
	case durable.Write:
		d.dirty[s.Name] = true
	case durable.Sync:
		delete(d.dirty, s.Name)
		data, _ := os.ReadFile(filepath.Join(d.dir, s.Name))
		if _, ok := d.kept[s.Name]; ok {
			d.kept[s.Name] = string(data)
		}
		for i := range d.names {
			if d.names[i].name == s.Name {
				d.names[i].content = string(data)
			}
		}
	}
}

// apply brings the first n changes to a folder; with hollow, content that was
// not synced is missing.
func (d *disk) apply(to map[string]string, n int, hollow bool) {
	for _, c := range d.names[:n] {
		switch {
		case c.gone:
			delete(to, c.name)
		case hollow && !c.synced:
			to[c.name] = ""
		default:
			to[c.name] = c.content
		}
	}
}

// cuts returns the folders that a power cut may leave now.
func (d *disk) cuts() []map[string]string {
	var all []map[string]string
	for n := range len(d.names) + 1 {
		for _, hollow := range []bool{false, true} {
			left := maps.Clone(d.kept)
			d.apply(left, n, hollow)
			all = append(all, left)
			for name := range d.dirty { // or its last bytes came through, or some
				data, _ := os.ReadFile(filepath.Join(d.dir, name))
				for _, size := range []int{len(data), (len(left[name]) + len(data)) / 2} {
					more := maps.Clone(left)
					more[name] = string(data[:size])
					all = append(all, more)
				}
			}
		}
	}
	return all
}

// story is what has been promised when the power goes.
type story struct {
	synced       bool // an offer has synced the inbox
	started, ack []string
	cancelled    []string        // for good
	seen, gone   map[string]bool // :: prompt → a session may have got it; a person took it away
	hurried      bool            // the urgent entry four was accepted
	halted       string          // what the service has interrupted, until a session goes on with it
	claimed      string          // what is being checked
	due          string          // what has to be handed over again, because its check has not passed
}

// protocols are what happens to the entries one, two and three until the power
// goes: every step of an entry's life, forward and back.
var protocols = map[string]string{
	"done":                   "offer take start ack offer take start ack offer",
	"interrupted":            "offer recover offer take recover offer take start ack offer",
	"again and again":        "offer take ack offer take recover offer take recover offer take recover offer",
	"did not arrive":         "offer reoffer reoffer take ack offer reoffer recover offer",
	"by the service":         "offer take start fail recover rebind goon ack offer take fail recover rebind fail recover rebind goon start ack offer",
	"by the service, killed": "offer take fail rebind goon recover offer take start fail recover rebind recover goon recover offer",
	"taken back":             "offer withdraw offer take recover offer withdraw offer take ack",
	"other inode":            "offer take recover move look move offer take ack move offer recover move look offer",
	"other inode, later":     "offer take ack offer take ack offer take recover move look look move offer take recover offer",
	"other inode, in flight": "offer take move take start recover move offer move ack move look offer",
	"edited":                 "offer take ack offer take recover edit look look offer take recover look offer",
	"cancelled":              "offer take start cancel recover offer cancel recover offer take start ack",
	"cancelled, killed":      "offer take start cancel ack offer take fail cancel recover offer take recover offer",
	"cancelled, once more":   "offer take start again recover offer take start ack offer again recover offer",
	"checked":                "offerc take start claim unproven reoffer take start claim proven offerc take start claim void claim recover unproven recover reoffer recover",
	"checked, given up":      "offerc take start recover unproven recover offerc take start claim giveup offerc take claim proven",
	"urgent":                 "offer take hurry ack offer take recover offer start ack offer",
	"truncated":              "offer take truncate recover look offer take recover look look offer take ack",
}

// The power goes at any step, and any of the states that the disk may be in
// then comes back: nothing that was promised is lost, nothing done is done
// again, under deadletter nothing that was started, and a repeat is known for
// one. A third of the states, by the sample, and all of them with -full.
func TestAPowerCutAtAnyStep(t *testing.T) {
	t.Parallel()
	for name, steps := range protocols {
		for _, policy := range []OrphanPolicy{DeadLetter, Retry} {
			t.Run(name+", "+string(policy), func(t *testing.T) {
				t.Parallel()
				if name == "urgent" && policy != Retry {
					t.Skip("what a lane does is done in the same way in the other")
				}
				if testbed.Raced && policy != Retry {
					t.Skip("each is one goroutine; half of them are for the run without the race detector alone")
				}
				n := cutEverywhere(t, policy, strings.Fields(steps))
				testbed.Played(t, testbed.PowerCuts, n)
				if n < 60/testbed.Stride(thin) {
					t.Errorf("only %d states were looked at", n)
				}
			})
		}
	}
}

// thin is how many states there are for one that is looked at, as testbed.Stride has it.
const thin = 12

// cutEverywhere tells the story and cuts the power before each change of the
// disk. It returns how many states were looked at.
func cutEverywhere(t *testing.T, policy OrphanPolicy, steps []string) (points int) {
	r := &rig{t: t, dir: scratch(t)}
	r.reopen()
	t.Cleanup(func() { r.Queue.Close() })
	for _, p := range []string{"one", "two", "three"} {
		line, err := form.Encode(form.Envelope{ID: "id-" + p, Source: "send", Prompt: p})
		if err != nil {
			t.Fatal(err)
		}
		r.echo(string(line))
	}
	d := &disk{
		dir: r.dir, kept: map[string]string{"inbox.jsonl": ""}, dirty: map[string]bool{"inbox.jsonl": true},
		temp: map[string]string{}, whole: map[string]bool{},
	}
	now := story{seen: map[string]bool{}, gone: map[string]bool{}}
	checked := map[string]bool{} // :: state and promises
	first := testbed.Turn(t, thin)
	r.Queue.dir.Guard = func(s durable.Step, run func() error) error {
		for _, left := range d.cuts() {
			key := fmt.Sprint(left, now)
			if checked[key] {
				continue
			}
			if checked[key] = true; (len(checked)+first)%testbed.Stride(thin) != 0 {
				continue
			}
			for _, remounted := range []bool{false, true} {
				points++
				check(t, policy, now, left, remounted, fmt.Sprintf("before %s %s", s.Verb, s.Name))
			}
		}
		if s.Verb == durable.Sync || s.Verb == durable.SyncFolder {
			run = func() error { return nil } // observed, not needed
		}
		err := run()
		d.observe(s)
		return err
	}
	for _, step := range steps {
		now.tell(r, d, policy, step)
	}
	if n := r.asides(metaFile) + r.asides(FlightFile) + r.asides(CursorFile); n > 0 {
		t.Errorf("%d files were set aside", n)
	}
	return points
}

// limits reports whether a failure is the one of these stories.
func limits(kind string) bool { return kind == "limit" }

// tell is one step of a story.
func (now *story) tell(r *rig, d *disk, policy OrphanPolicy, step string) {
	r.t.Helper()
	prompt := func() string {
		f, err := r.InFlight()
		if err != nil || f == nil {
			r.t.Fatalf("%s: in flight %+v, %v", step, f, err)
		}
		return f.Prompt()
	}
	switch step {
	case "offer":
		f := r.offer()
		now.synced, now.seen[f.Prompt()] = true, true
	case "offerc":
		f := r.offerChecked()
		now.synced, now.seen[f.Prompt()] = true, true
	case "claim":
		now.claimed, now.due = "", "" // from here on either may be so
		p := r.claims("done").Prompt()
		now.claimed = p
	case "void":
		now.claimed = ""
		if _, err := r.Void(); err != nil {
			r.t.Fatal(err)
		}
	case "unproven", "proven", "giveup":
		f, err := r.InFlight()
		if err != nil || f == nil || f.State != Checking {
			r.t.Fatalf("%s: in flight %+v, %v", step, f, err)
		}
		now.claimed, now.started = "", slices.DeleteFunc(now.started, func(p string) bool { return p == f.Prompt() })
		v := Verdict{Delivery: f.DeliveryID, Check: f.Check, Passed: step == "proven", Output: "it fails"}
		if step == "giveup" {
			v.GiveUp = MaxTime
		}
		r.verdict(v)
		if step == "proven" {
			now.ack = append(now.ack, f.Prompt())
		} else if step == "unproven" && f.Interrupted == "" {
			now.due = f.Prompt()
		}
	case "reoffer":
		now.due = ""
		if _, _, err := r.Reoffer(Offering{Via: ViaStop, Session: "s1"}); err != nil {
			r.t.Fatal(err)
		}
	case "withdraw":
		p, before := prompt(), now.seen
		if err := r.Withdraw(); err != nil {
			r.t.Fatal(err)
		}
		if before[p] && r.attempts() == 0 {
			delete(now.seen, p)
		}
	case "take":
		r.advance(Taken)
	case "start":
		r.advance(Started)
		now.started = append(now.started, prompt())
	case "fail":
		p := prompt()
		if _, err := r.Fail("limit"); err != nil {
			r.t.Fatal(err)
		}
		now.halted = p
	case "rebind":
		f, err := r.InFlight()
		if err == nil {
			_, err = r.Rebind(f.DeliveryID, Offering{Session: "s2"})
		}
		if err != nil {
			r.t.Fatal(err)
		}
	case "goon":
		now.halted = ""
		if _, err := r.GoesOn("P"); err != nil {
			r.t.Fatal(err)
		}
	case "cancel", "again":
		f, err := r.InFlight()
		now.halted = ""      // from here on either may be so
		if step == "again" { // what comes after that is a new entry
			delete(now.seen, prompt())
			now.started = slices.DeleteFunc(now.started, func(p string) bool { return p == prompt() })
		}
		if err == nil {
			_, err = r.Cancel(Cancellation{Delivery: f.DeliveryID, Again: step == "again"})
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if step == "cancel" {
			now.cancelled = append(now.cancelled, prompt())
		}
	case "ack":
		p := prompt()
		r.ack()
		now.ack = append(now.ack, p)
	case "recover":
		r.recover(Interruption{Policy: policy, Counts: true, MaxAttempts: 100, Passes: limits})
	case "look":
		r.next()
	case "move": // a mount that gives files other inodes
		r.put("copy", r.get("inbox.jsonl"))
		r.rename("copy", "inbox.jsonl")
	case "edit": // a person tidies up what is done
		_, rest, _ := strings.Cut(r.get("inbox.jsonl"), "\n")
		r.put("copy", "a first line\n"+r.get("inbox.jsonl")[:len(r.get("inbox.jsonl"))-len(rest)]+rest)
		r.rename("copy", "inbox.jsonl")
		d.kept["inbox.jsonl"] = r.get("inbox.jsonl")
	case "hurry":
		r.append(Letter{ID: "id-four", Source: "send", Prompt: "four", Urgent: true})
		now.hurried = true
	case "truncate":
		r.put("inbox.jsonl", "")
		d.kept["inbox.jsonl"] = ""
		now.gone["two"], now.gone["three"] = true, true
	default:
		r.t.Fatalf("unknown step %q", step)
	}
}

// attempts is how often the entry at the cursor counts as handed over.
func (r *rig) attempts() int {
	r.t.Helper()
	m, _, err := r.inbox().readMeta()
	if err != nil || m == nil || m.Requeued == nil {
		return 0
	}
	return m.Requeued.Attempt
}

// check starts a queue on what the power cut left.
func check(t *testing.T, policy OrphanPolicy, now story, left map[string]string, remounted bool, at string) {
	t.Helper()
	r := (&rig{t: t, dir: scratch(t)}).unsyncedLater()
	for name, content := range left {
		r.put(name, content)
	}
	r.reopen()
	defer r.Queue.Close()
	for _, l := range r.lanes() {
		m := parseMeta([]byte(left[l.meta]))
		if m == nil || remounted {
			continue
		}
		s, err := l.openSource(os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		m.Ino = s.ino
		if err := l.writeMeta(*m); err != nil {
			t.Fatal(err)
		}
	}
	kept := ""
	outcome := r.recover(Interruption{Policy: policy, Counts: true, MaxAttempts: 100, Passes: limits})
	if outcome == Kept || outcome == LeftChecking || outcome == LeftUnproven {
		f, err := r.InFlight()
		if err != nil {
			t.Fatal(err)
		}
		kept = f.Prompt()
		r.goesOn(f) // a session goes on with it
	}
	if p := now.claimed; p != "" && outcome != LeftChecking || now.due != "" && outcome != LeftUnproven {
		t.Errorf("%s, %s: %s, while %q is checked and %q is due: left %q", policy, at, outcome, p, now.due, left)
	}
	if now.halted != "" && kept != now.halted {
		t.Errorf("%s, %s: %q does not go on: left %q", policy, at, now.halted, left)
	}
	r.append(Letter{Prompt: "new"})
	given := r.attemptsOfAll()
	var dead []string
	for _, d := range r.dead() {
		dead = append(dead, form.Decode([]byte(d.RawLine), false).Prompt)
	}
	state := fmt.Sprintf("%s, %s, other inodes %t: left %q, drained %v, dead letters %q", policy, at, remounted, left, given, dead)
	if given["new"] == 0 {
		t.Errorf("swallowed: %s", state)
	}
	for _, p := range []string{"one", "two", "three", "four"} {
		done := slices.Contains(now.ack, p)
		if p == kept && !done && given[p] == 0 && !slices.Contains(dead, p) {
			continue
		}
		promised := now.synced
		if p == "four" {
			promised = now.hurried
		}
		if promised && !done && !now.gone[p] && given[p] == 0 && !slices.Contains(dead, p) && !strings.Contains(left[outboxFile], `"id-`+p+`"`) {
			t.Errorf("lost %q: %s", p, state)
		}
		if done && (given[p] > 0 || slices.Contains(dead, p)) {
			t.Errorf("done again %q: %s", p, state)
		}
		if policy == DeadLetter && slices.Contains(now.started, p) && given[p] > 0 {
			t.Errorf("given again %q: %s", p, state)
		}
		if slices.Contains(now.cancelled, p) && given[p] > 0 {
			t.Errorf("given again although it was cancelled %q: %s", p, state)
		}
		if now.seen[p] && given[p] == 1 {
			t.Errorf("a repeat of %q came as the first attempt: %s", p, state)
		}
	}
	for p := range given {
		if !slices.Contains([]string{"one", "two", "three", "four", "new", "a first line"}, p) && now.synced {
			t.Errorf("garbled %q: %s", p, state)
		}
	}
}

// goesOn does what is left in flight.
func (r *rig) goesOn(f *InFlight) {
	r.t.Helper()
	if !f.Checked {
		r.ack()
		return
	}
	if f.State == Unproven && f.Interrupted == "" {
		if _, _, err := r.Reoffer(Offering{}); err != nil {
			r.t.Fatal(err)
		}
	}
	f = r.claims("done")
	if r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Passed: true}) == nil {
		r.t.Errorf("not done: %+v", f)
	}
}

// attemptsOfAll drains the queue: prompt → the attempt as which it was given.
func (r *rig) attemptsOfAll() map[string]int {
	r.t.Helper()
	given := map[string]int{}
	for r.next() != "" {
		f := r.offer()
		given[f.Prompt()] = f.Attempt
		r.advance(Taken)
		r.ack()
	}
	return given
}
