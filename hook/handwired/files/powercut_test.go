package files

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
	"heartbeat/queue"
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
	return slices.Contains([]string{"inbox.jsonl", OutboxFile, DeadFile}, name)
}

// observe follows the steps of a folder.
func (d *disk) observe(s durable.Step) {
	switch {
	case s.Verb == durable.SyncFolder:
		d.apply(d.kept, len(d.names), false)
		d.names = nil
	case s.Verb == durable.Remove:
		d.names = append(d.names, change{name: s.Name, gone: true})
	case s.Verb == durable.Create && s.Name == Inbox.Flag:
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
	synced     bool // an offer has synced the inbox
	ack        []string
	seen, gone map[string]bool // :: prompt → a session may have got it; a person took it away
}

// protocols are what happens to the entries one, two and three until the power goes: every step
// of an entry's life, forward and back.
var protocols = map[string]string{
	"done":                   "offer ack offer ack offer",
	"interrupted":            "offer recover offer recover offer ack offer",
	"again and again":        "offer ack offer recover offer recover offer recover offer",
	"did not arrive":         "offer again again ack offer again recover offer",
	"taken back":             "offer back offer recover offer back offer ack",
	"other inode":            "offer recover move look move offer ack move offer recover move look offer",
	"other inode, later":     "offer ack offer ack offer recover move look look move offer recover offer",
	"other inode, in flight": "offer move recover move offer move ack move look offer",
	"edited":                 "offer ack offer recover edit look look offer recover look offer",
	"truncated":              "offer truncate recover look offer recover look look offer ack",
}

// The power goes at any step, and any of the states that the disk may be in
// then comes back: nothing that was promised is lost, nothing done is done
// again, and a repeat is known for one. A part of the states, by the sample, and all of them with
// -full.
func TestAPowerCutAtAnyStep(t *testing.T) {
	t.Parallel()
	for name, steps := range protocols {
		for _, policy := range []queue.OrphanPolicy{queue.DeadLetterOrphan, queue.RetryOrphan} {
			t.Run(name+", "+string(policy), func(t *testing.T) {
				t.Parallel()
				if testbed.Raced && policy != queue.RetryOrphan {
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
func cutEverywhere(t *testing.T, policy queue.OrphanPolicy, steps []string) (points int) {
	r := &rig{t: t, at: scratch(t)}
	r.reopen()
	t.Cleanup(func() { r.Close() })
	for _, p := range []string{"one", "two", "three"} {
		r.echo(envelope("id-"+p, p))
	}
	d := &disk{
		dir: r.at, kept: map[string]string{"inbox.jsonl": ""}, dirty: map[string]bool{"inbox.jsonl": true},
		temp: map[string]string{}, whole: map[string]bool{},
	}
	now := story{seen: map[string]bool{}, gone: map[string]bool{}}
	checked := map[string]bool{} // :: state and promises
	first := testbed.Turn(t, thin)
	r.dir.Guard = func(s durable.Step, run func() error) error {
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
	if n := r.asides(Inbox.Sidecar) + r.asides(Inbox.Record) + r.asides(Inbox.Cursor); n > 0 {
		t.Errorf("%d files were set aside", n)
	}
	return points
}

// tell is one step of a story.
func (now *story) tell(r *rig, d *disk, policy queue.OrphanPolicy, step string) {
	r.t.Helper()
	switch step {
	case "offer":
		f := r.offer()
		now.synced, now.seen[f.Prompt()] = true, true
	case "again":
		if _, err := r.OfferAgain(Offering{Via: queue.ViaStop, Session: "s1"}); err != nil {
			r.t.Fatal(err)
		}
	case "back":
		f := r.inFlight()
		if did, err := r.TakeBack(f); err != nil || !did {
			r.t.Fatal(did, err)
		}
		if now.seen[f.Prompt()] && r.attempts() == 0 {
			delete(now.seen, f.Prompt())
		}
	case "ack":
		p := r.inFlight().Prompt()
		r.ack()
		now.ack = append(now.ack, p)
	case "recover":
		r.recover(Interruption{Policy: policy, MaxAttempts: 100, Arrived: unseen})
	case "look":
		r.next()
	case "move": // a mount that gives files other inodes
		r.put("copy", r.get("inbox.jsonl"))
		r.rename("copy", "inbox.jsonl")
	case "edit": // a person tidies up what is done
		r.put("copy", "a first line\n"+r.get("inbox.jsonl"))
		r.rename("copy", "inbox.jsonl")
		d.kept["inbox.jsonl"] = r.get("inbox.jsonl")
	case "truncate":
		r.put("inbox.jsonl", "")
		d.kept["inbox.jsonl"] = ""
		now.gone["two"], now.gone["three"] = true, true
	default:
		r.t.Fatalf("unknown step %q", step)
	}
}

// unseen is a transcript that shows nothing of an entry.
func unseen(*queue.Given) queue.Arrival { return queue.Unseen }

// attempts is how often the entry at the cursor counts as handed over.
func (r *rig) attempts() int {
	r.t.Helper()
	m, _, err := r.readSidecar()
	if err != nil || m == nil || m.Requeued == nil {
		return 0
	}
	return m.Requeued.Attempt
}

// check starts a queue on what the power cut left.
func check(t *testing.T, policy queue.OrphanPolicy, now story, left map[string]string, remounted bool, at string) {
	t.Helper()
	r := (&rig{t: t, at: scratch(t)}).unsyncedLater()
	for name, content := range left {
		r.put(name, content)
	}
	r.reopen()
	defer r.Close()
	if m := parseSidecar([]byte(left[Inbox.Sidecar])); m != nil && !remounted {
		s, err := r.openSource(os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		m.Ino = s.ino
		if err := r.writeSidecar(*m); err != nil {
			t.Fatal(err)
		}
	}
	r.recover(Interruption{Policy: policy, MaxAttempts: 100, Arrived: unseen})
	if err := r.append([]byte("new")); err != nil {
		t.Fatal(err)
	}
	given := r.attemptsOfAll()
	var dead []string
	for _, d := range r.dead() {
		dead = append(dead, form.Decode(d.Line(), false).Prompt)
	}
	state := fmt.Sprintf("%s, %s, other inodes %t: left %q, drained %v, dead letters %q", policy, at, remounted, left, given, dead)
	if given["new"] == 0 {
		t.Errorf("swallowed: %s", state)
	}
	for _, p := range []string{"one", "two", "three"} {
		done := slices.Contains(now.ack, p)
		if now.synced && !done && !now.gone[p] && given[p] == 0 && !slices.Contains(dead, p) && !strings.Contains(left[OutboxFile], `"id-`+p+`"`) {
			t.Errorf("lost %q: %s", p, state)
		}
		if done && (given[p] > 0 || slices.Contains(dead, p)) {
			t.Errorf("done again %q: %s", p, state)
		}
		if now.seen[p] && given[p] == 1 {
			t.Errorf("a repeat of %q came as the first attempt: %s", p, state)
		}
	}
	for p := range given {
		if !slices.Contains([]string{"one", "two", "three", "new", "a first line"}, p) && now.synced {
			t.Errorf("garbled %q: %s", p, state)
		}
	}
}

// attemptsOfAll hands over all there is, and returns the attempt of each prompt.
func (r *rig) attemptsOfAll() map[string]int {
	r.t.Helper()
	attempts := map[string]int{}
	for r.next() != "" {
		f := r.offer()
		attempts[f.Prompt()] = f.Attempt
		r.ack()
	}
	return attempts
}
