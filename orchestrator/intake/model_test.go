package intake

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heartbeat/orchestrator/store"
	"heartbeat/queue/line"
)

// world is an inbox with its writers, and what they have written.
type world struct {
	*rig
	rt *rapid.T
	// held are writers that keep the file open; the lines of each have a name of their own.
	held map[string]*os.File
	next int
	// lines are all that were written, by writer; maybe are those that somebody cut before it is
	// known that they were seen.
	lines map[string][]string
	seen  map[string]int // of lines, when all was taken in last
	maybe map[string]bool
	fails bool // the commit of what is checked
}

// line is the next line of a writer.
func (w *world) line(writer string) string {
	w.next++
	l := fmt.Sprintf("%s %d.%s", writer, w.next, strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 5000}).Draw(w.rt, "long")))
	w.lines[writer] = append(w.lines[writer], l)
	return l
}

func (w *world) check(err error) {
	if err != nil {
		w.rt.Fatal(err)
	}
}

// someTake is a taking: nothing, one transaction, all, or one whose commit fails after the file
// was moved.
func (w *world) someTake() {
	switch rapid.IntRange(0, 3).Draw(w.rt, "take") {
	case 1:
		_, err := Take(w.Context(), w.Store, w.p, w.now())
		w.check(err)
	case 2:
		w.takeEach()
	case 3:
		w.fails = true
		_, err := Take(w.Context(), w.Store, w.p, w.now())
		w.fails = false
		if err != nil && !errors.Is(err, errKilled) {
			w.rt.Fatal(err)
		}
	}
}

var errKilled = errors.New("killed")

func (w *world) takeEach() {
	_, err := takeAll(w.Context(), w.Store, w.p, w.now())
	w.check(err)
}

// seeAll takes in all, while no writer is in the midst of a line.
func (w *world) seeAll() {
	w.takeEach()
	for writer, lines := range w.lines {
		w.seen[writer] = len(lines)
	}
}

// isEmpty takes in all, and reports whether the inbox is empty then.
func (w *world) isEmpty() bool {
	w.seeAll()
	info, err := os.Stat(w.p.Inbox)
	return err != nil || info.Size() == 0
}

// isHeld reports whether a writer has the file at the inbox's name open.
func (w *world) isHeld() bool {
	info, err := os.Stat(w.p.Inbox)
	for _, name := range w.names() {
		own, _ := w.held[name].Stat()
		if err == nil && os.SameFile(info, own) {
			return true
		}
	}
	return false
}

// names are those of the writers that keep the file open.
func (w *world) names() []string { return slices.Sorted(maps.Keys(w.held)) }

// acts are what may happen.
var acts = map[string]func(w *world){
	"echo": func(w *world) { w.echo(w.line("echo") + "\n") },
	"pieces": func(w *world) {
		l := w.line("pieces") + "\n"
		cut := rapid.IntRange(0, len(l)).Draw(w.rt, "cut")
		w.echo(l[:cut])
		w.someTake()
		w.echo(l[cut:])
	},
	"many": func(w *world) {
		var all strings.Builder
		for range 1200 {
			w.next++
			l := fmt.Sprintf("many %d", w.next)
			w.lines["many"] = append(w.lines["many"], l)
			all.WriteString(l + "\n")
		}
		w.echo(all.String())
	},
	"checked": func(w *world) {
		l := w.line("checked")
		sent, err := line.Encode(line.Envelope{ID: fmt.Sprint(w.p.Agent, w.next), Checked: true, Prompt: l})
		w.check(err)
		w.echo(string(sent))
		if rapid.Bool().Draw(w.rt, "twice") {
			w.someTake()
			w.echo(string(sent))
		}
	},
	"open": func(w *world) {
		if len(w.held) < 3 {
			w.held[fmt.Sprintf("held%d", w.next)] = w.open(os.O_APPEND)
			w.next++
		}
	},
	"open without O_APPEND": func(w *world) {
		if len(w.held) < 3 && w.isEmpty() && !w.isHeld() {
			name := fmt.Sprintf("own%d", w.next)
			f := w.open(0)
			_, err := f.WriteString(w.line(name) + "\n")
			w.check(err)
			w.takeEach()
			if info, err := os.Stat(w.p.Inbox); err == nil && info.Size() > 0 { // it stays at the name, where others append
				f.Close()
				return
			}
			w.held[name] = f
		}
	},
	"write": func(w *world) {
		for _, name := range w.names() {
			f := w.held[name]
			l := w.line(name) + "\n"
			cut := rapid.IntRange(0, len(l)).Draw(w.rt, "cut")
			_, err := f.WriteString(l[:cut])
			w.check(err)
			w.someTake()
			_, err = f.WriteString(l[cut:])
			w.check(err)
		}
	},
	"close": func(w *world) {
		if names := w.names(); len(names) > 0 {
			w.check(w.held[names[0]].Close())
			delete(w.held, names[0])
		}
	},
	"cut": func(w *world) {
		if rapid.Bool().Draw(w.rt, "seen") {
			w.seeAll()
		} else {
			for writer, lines := range w.lines {
				for _, l := range lines[w.seen[writer]:] {
					w.maybe[l] = true
				}
			}
		}
		w.put("")
	},
	"rotate": func(w *world) {
		w.seeAll()
		_ = os.Rename(w.p.Inbox, w.file("inbox.old"))
		for name, f := range w.held { // who has it open writes into what is nobody's any more
			f.Close()
			delete(w.held, name)
		}
	},
	"an obstacle": func(w *world) {
		_ = os.Remove(w.file(takenName)) // it may be empty, or not
		_ = os.Symlink("/nowhere", w.file(takenName))
	},
	"no obstacle": func(w *world) {
		if to, _ := os.Readlink(w.file(takenName)); to != "" {
			w.check(os.Remove(w.file(takenName)))
		}
	},
	"a moment":   func(w *world) { w.later(3 * time.Second) },
	"a long day": func(w *world) { w.later(30 * time.Hour) },
	"take":       (*world).someTake,
}

// Whatever writers, clocks, failures and takings do, each whole line comes in once, and those of
// each writer in its order.
func TestWhateverHappens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	names := slices.Sorted(maps.Keys(acts))
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		own := *r
		own.ahead = 0
		own.p.Agent, own.p.Dir = fmt.Sprint("agent-", n), filepath.Join(t.TempDir(), fmt.Sprint(n))
		own.p.Inbox = filepath.Join(own.p.Dir, ".heartbeat", "inbox.jsonl")
		w := &world{rig: &own, rt: rt, held: map[string]*os.File{}, lines: map[string][]string{}, seen: map[string]int{}, maybe: map[string]bool{}}
		own.p.HasCheck = func(*store.View, string) (bool, error) {
			if w.fails {
				return false, errKilled
			}
			return true, nil
		}
		w.check(os.MkdirAll(filepath.Dir(own.p.Inbox), 0o700))
		for range rapid.IntRange(1, 12).Draw(rt, "acts") {
			acts[rapid.SampledFrom(names).Draw(rt, "act")](w)
		}
		for _, f := range w.held {
			f.Close()
		}
		acts["no obstacle"](w)
		w.nothingLeft()
		w.judge()
	})
}

// judge compares what is in the store.
func (w *world) judge() {
	came := map[string][]string{}
	err := w.Read(w.Context(), func(v *store.View) error {
		return v.Each(`SELECT t.prompt, e.state, e.cause FROM entries e, texts t WHERE e.agent = $1 AND t.agent = e.agent AND t.seq = e.seq ORDER BY e.seq`, []any{w.p.Agent}, func(row store.Scan) error {
			var prompt, state, cause string
			err := row(&prompt, &state, &cause)
			writer, _, _ := strings.Cut(prompt, " ")
			if state != "queued" {
				return fmt.Errorf("%.200q is %s: %s", prompt, state, cause)
			}
			came[writer] = append(came[writer], prompt)
			return err
		})
	})
	w.check(err)
	for writer, lines := range w.lines {
		got := came[writer]
		delete(came, writer)
		for _, l := range lines {
			switch {
			case len(got) > 0 && got[0] == l:
				got = got[1:]
			case !w.maybe[l]:
				w.rt.Fatalf("%s: %.100q is not next in %.400q", writer, l, got)
			}
		}
		if len(got) > 0 {
			w.rt.Fatalf("%s: came more often: %.400q", writer, got)
		}
	}
	if len(came) > 0 {
		w.rt.Fatalf("nobody wrote %.400q", came)
	}
}
