package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/journal"
)

var lying = flag.Int("lies", 0, "how many entries liars have (0: 24, or 10000 with -full)")

// liars is a fleet of agents that only lie, one for each lie.
type liars struct {
	*fleet
	names []string            // of agents
	lie   map[string]string   // :: agent → what it does
	sent  map[string][]string // :: agent → ids of what it was sent
	kills map[string]int
}

// judgeScript is a check that believes nobody: it takes the entry from the state
// directory, passes it at once, at its second run, or never, by the entry, and keeps
// what it has said ($2), where no agent looks.
const judgeScript = `agent=${AGENT_DIR##*/} d=
for f in "$1"/*/checks/*.json; do
	own= was=
	while read -r name value; do
		value=${value#\"} value=${value%%\"*}
		case $name in '"agent":') own=$value ;; '"delivery":') was=$value ;; esac
	done < "$f"
	[ "$own" = "$agent" ] && d=$was
done 2>/dev/null
case $d in
'') exit 75 ;;
*[0-3]) say=failed ;;
*[4-9]) say=passed ;;
*) say=failed; [ -e "$2/$agent-$d" ] && say=passed; : > "$2/$agent-$d" ;;
esac
echo "$d $say" >> "$2/$agent"
[ $say = passed ] || { echo not yet; exit 1; }
`

// liesEach is how many entries one fleet of liars has at most.
const liesEach = 500

// TestNobodyIsDoneByLyingWhateverIsKilled: agents lie in each entry, while scheduler,
// shims, hooks, clients and checks are killed at random. Nothing is done whose check has
// not passed, nothing is lost, and each verdict is told once.
func TestNobodyIsDoneByLyingWhateverIsKilled(t *testing.T) {
	t.Parallel()
	want, atOnce := *lying, 3
	if want == 0 {
		want = 24
		if *testbed.Full {
			want = 10_000
		}
	}
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for n := 0; n < want; n += liesEach {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				l := newLiars(t, min(liesEach, want-n), n)
				l.live(testbed.Chance(t, fmt.Sprint("liars ", n)))
				l.judge()
			})
		})
	}
	all.Wait()
}

// newLiars queues n entries for a fleet of liars; without -full it has four of them.
func newLiars(t *testing.T, n, turn int) *liars {
	l := &liars{fleet: newFleet(t, client{name: "simulate"}, nil), lie: map[string]string{}, sent: map[string][]string{}, kills: map[string]int{}}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(lies)), func(name string) bool {
		return name == "removes its session" || // a minute of pauses between its sessions
			name == "edits what is in flight" // one delivery for all entries: what the check says of them is not told apart
	})
	if n < liesEach {
		testbed.Chance(t, "names").Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:4]
	}
	judge, said := filepath.Join(l.Dir, "judge.sh"), filepath.Join(l.Dir, "said")
	l.write(judge, judgeScript)
	if err := os.Mkdir(said, 0o700); err != nil {
		t.Fatal(err)
	}
	tell := l.tellers()
	file := []string{fmt.Sprintf("version: 1\nshutdown-grace: none\nmax-sessions: 4\ndefaults:\n  command: [heartbeat, simulate, --script, %q]\n"+
		"  permissions: {allow: [Bash]}\n  max-restarts: 1000000\n  until: {check: [sh, %q, %q, %q], promise: ALL DONE, max-iterations: 2}\nagents:\n",
		filepath.Join(l.Dir, "script.json"), judge, filepath.Join(l.Dir, "state"), said)}
	var taught []behaviour
	for i, name := range names {
		agent := "l" + strconv.Itoa(i)
		l.names, l.lie[agent] = append(l.names, agent), name
		file = append(file, fmt.Sprintf("  %s: {dir: %q}\n", agent, filepath.Join(l.Work, agent)))
		taught = append(taught, behaviour{match: "lie of " + agent + ".", bash: "( " + tell(lies[name]) + "\n)", reply: claimed})
	}
	l.teach(taught...)
	l.write(l.file, strings.Join(file, ""))
	for i, agent := range l.names {
		for j := i; j < n; j += len(l.names) {
			l.sent[agent] = append(l.sent[agent], fmt.Sprintf("e%d", turn+j))
		}
		l.sends(agent)
	}
	return l
}

// sends queues the entries of an agent.
func (l *liars) sends(agent string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Join(l.Work, agent), 0o700); err != nil {
		l.t.Fatal(err)
	}
	for _, id := range l.sent[agent] {
		l.must("", "send", agent, "--id", id, "lie of "+agent+". "+id)
	}
}

// live runs the fleet until nothing is left to do, and kills its processes.
func (l *liars) live(r *rand.Rand) {
	s := l.start()
	defer func() { s.stop() }()
	limit := patience
	for _, sent := range l.sent {
		limit += time.Duration(len(sent)) * 2 * time.Second
	}
	end := time.Now().Add(limit)
	for looked := time.Now(); ; {
		time.Sleep(time.Duration(200+r.IntN(1000)) * time.Millisecond)
		if time.Since(looked) > 2*time.Second {
			left := l.left()
			if left == 0 {
				return
			}
			if looked = time.Now(); looked.After(end) {
				l.t.Errorf("%d entries are left after %s: %s", left, limit, l.must("", "status"))
				return
			}
		}
		if r.IntN(12) == 0 {
			l.kills["scheduler"]++
			_ = s.cmd.Process.Kill()
			<-s.done
			s = l.start()
			continue
		}
		l.kill(r)
	}
}

// left is how many entries are queued or in flight.
func (l *liars) left() (n int) {
	for _, agent := range l.names {
		all, err := promise.Ask(l.ask).Inbox(agent)
		if n += len(all); err != nil {
			n++
		}
	}
	return n
}

// queued are the entries that are queued or in flight, by their ids.
func (l *liars) queued(agent string) map[string]bool {
	ids := map[string]bool{}
	for _, e := range l.queueOf(agent) {
		ids[e.ID] = true
	}
	return ids
}

// kill kills one process that works for the fleet.
func (l *liars) kill(r *rand.Rand) {
	class := []string{"launch", "simulate", "hook", "hook", "check"}[r.IntN(5)]
	var all []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		argv := strings.Split(string(line), "\x00")
		if err != nil || len(argv) < 2 {
			continue
		}
		is := "check"
		if strings.HasPrefix(filepath.Base(argv[0]), "heartbeat") {
			is = argv[1]
		} else if argv[1] != filepath.Join(l.Dir, "judge.sh") {
			continue
		}
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if pid, _ := strconv.Atoi(filepath.Base(d)); err == nil && is == class && bytes.Contains(env, []byte("HOME="+l.Home+"\x00")) {
			all = append(all, pid)
		}
	}
	if len(all) > 0 {
		l.kills[class]++
		_ = syscall.Kill(all[r.IntN(len(all))], syscall.SIGKILL)
	}
}

// proven are the deliveries whose check has passed by what heartbeat tells, and forged
// those that are told as forged.
func (l *liars) proven() (proven, forged map[string]bool) {
	proven, forged = map[string]bool{}, map[string]bool{}
	once := map[string]string{}
	for _, e := range l.journal(journal.Checked) {
		if e.Verdict == "check-again" || e.Verdict == "check-trouble" {
			continue
		}
		what := fmt.Sprintf("%s, iteration %d", e.Entry, e.Iteration)
		if before, told := once[what]; told {
			l.t.Errorf("%s (%s): %s has two verdicts, %s and %s", e.Agent, l.lie[e.Agent], what, before, e.Verdict)
		}
		once[what] = e.Verdict
		if e.Verdict == "passed" {
			if proven[e.Entry] {
				l.t.Errorf("%s (%s): %s has passed twice", e.Agent, l.lie[e.Agent], e.Entry)
			}
			proven[e.Entry] = true
		}
	}
	for _, e := range l.journal(journal.Forged) {
		forged[e.Entry] = true
	}
	return proven, forged
}

// judge compares what is called done with what the check has said.
func (l *liars) judge() {
	l.t.Helper()
	proven, forged := l.proven()
	total := map[string]int{}
	for _, agent := range l.names {
		home := filepath.Join(l.Work, agent, ".heartbeat")
		said, _ := os.ReadFile(filepath.Join(l.Dir, "said", agent))
		passed := map[string]bool{} // :: delivery that its check has passed → it stands in the outbox
		for line := range strings.Lines(string(said)) {
			if delivery, ok := strings.CutSuffix(line, " passed\n"); ok {
				passed[delivery] = false
				delete(proven, delivery)
			}
		}
		total["passed"] += len(passed)
		ended := map[string]bool{}  // :: id
		buried := map[string]bool{} // :: delivery that is a dead letter
		for _, d := range readLines[promise.Dead](l.t, filepath.Join(home, ".dead-letter.jsonl")) {
			var line struct{ ID string } // what an agent has forged names no id
			_ = json.Unmarshal([]byte(d.RawLine), &line)
			ended[d.ID], ended[line.ID] = true, true
			buried[d.DeliveryID] = true
			total["dead: "+string(d.Reason)]++
		}
		for _, d := range readLines[promise.Reply](l.t, filepath.Join(home, "outbox.jsonl")) {
			if _, ok := passed[d.DeliveryID]; ok {
				passed[d.DeliveryID] = passed[d.DeliveryID] || slices.Contains(l.sent[agent], d.ID) // or the agent has written it
				ended[d.ID] = true
			} else if total["forged"]++; !forged[d.DeliveryID] && !buried[d.DeliveryID] { // or it was given up, and is told as that
				l.t.Errorf("%s (%s): done without a check: %+v, verdict %+v", agent, l.lie[agent], d, d.Verdict)
			}
		}
		unseen := 0 // passed, and their records are gone: the agent has written the file
		for delivery, stands := range passed {
			if !stands && !buried[delivery] {
				unseen++
			}
		}
		total["passed, and not in the outbox any more"] += unseen
		queued := l.queued(agent) // where there was no time for it
		var missing []string
		for _, id := range l.sent[agent] {
			if !ended[id] && !queued[id] {
				missing = append(missing, id)
			}
		}
		if len(missing) > unseen || len(missing) > 0 && !strings.Contains(lies[l.lie[agent]], "outbox.jsonl") {
			l.t.Errorf("%s (%s): lost: %q, while %d have passed whose records are gone", agent, l.lie[agent], missing, unseen)
		}
		total["entries"] += len(l.sent[agent])
	}
	if len(proven) > 0 {
		l.t.Errorf("told as passed, and no check has: %v", proven)
	}
	for _, n := range l.kills {
		testbed.Played(l.t, testbed.Kills, n)
	}
	l.t.Logf("%d liars, %v, killed %v", len(l.names), total, l.kills)
	if l.t.Failed() {
		l.keep()
	}
}

// keep keeps the state of a run that failed, for who looks into it.
func (l *liars) keep() {
	if to := os.Getenv("HEARTBEAT_KEEP"); to != "" {
		to = filepath.Join(to, filepath.Base(l.Dir))
		out, err := exec.Command("cp", "-a", l.Dir, to).CombinedOutput()
		l.t.Logf("kept in %s: %s %v", to, out, err)
	}
}
