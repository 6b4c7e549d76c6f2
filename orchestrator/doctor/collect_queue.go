package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// queueLook bounds how many bytes of a queue are counted.
const queueLook = 8 << 20

// queueOf looks at an agent's queue without a lock, and changes nothing.
func queueOf(a *config.Agent, stateDir string, now time.Time) Queue {
	var q Queue
	beside := filepath.Dir(a.Inbox)
	if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
		return q // nothing was queued yet
	}
	q.contents(a)
	q.locks(a, beside, stateDir)
	for _, dir := range []string{a.Home, beside} {
		q.folder(a.Dir, dir, now)
		if a.Home == beside {
			break
		}
	}
	if _, err := os.Lstat(a.Home); err == nil {
		_, err = os.Lstat(filepath.Join(a.Home, ".gitignore"))
		q.NoGitignore = errors.Is(err, fs.ErrNotExist)
	}
	return q
}

func (q *Queue) contents(a *config.Agent) {
	queue, err := queue.Open(a)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		q.Err = err
		return
	}
	defer queue.Close()
	for _, path := range []string{a.Inbox, inbox.Urgent(a.Inbox)} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(q.Written) {
			q.Written = info.ModTime()
		}
	}
	q.Obstacles = queue.Obstacles()
	var errDepth, errPeek error
	q.Depth, errDepth = queue.Depth(queueLook)
	q.InFlight, errPeek = queue.Peek()
	q.Err = errDepth
	if q.Err == nil {
		q.Err = errPeek
	}
	if q.Depth.Disturbed != "" && q.Err == nil {
		q.Missing, q.Err = queue.Missing()
	}
	if q.NeedsOperator = errors.Is(q.Err, inbox.ErrNeedsOperator); q.NeedsOperator {
		q.Missing, _ = queue.Missing() // the question says it, too
	}
	if q.Depth.Aside > 0 {
		aside, err := queue.Waiting()
		q.Err = cmp.Or(q.Err, err)
		for _, f := range aside {
			q.Aside = append(q.Aside, f.DeliveryID)
		}
	}
	q.Cursor, q.CursorProblem = cursorProblems(a)
	q.ForeignUrgent = foreignUrgent(a)
	q.dead(queue)
}

// dead counts the dead letters.
func (q *Queue) dead(queue *inbox.Queue) {
	for d, err := range queue.DeadLetters() {
		switch {
		case err != nil:
			q.DeadBroken++
			continue
		case d.Reason == inbox.Torn:
			q.Torn++
		case d.Reason == inbox.Lost:
			q.Gone.Lost++
			if d.Raw() == nil {
				q.Gone.Textless++
			}
			q.Gone.LastLost = d
		}
		q.Dead++
		if q.OldestDead.IsZero() || d.At.Before(q.OldestDead) {
			q.OldestDead = d.At
		}
	}
}

// foreignUrgent is Queue.ForeignUrgent. In heartbeat's own folder a file of that name is
// no accident.
func foreignUrgent(a *config.Agent) string {
	if filepath.Dir(a.Inbox) == a.Home {
		return ""
	}
	beside, err := durable.OpenBelow(a.Dir, filepath.Dir(a.Inbox))
	if err != nil {
		return ""
	}
	defer beside.Close()
	for _, name := range []string{inbox.UrgentCursor, inbox.UrgentFlight} {
		if _, err := beside.Stat(name); err == nil {
			return ""
		}
	}
	f, err := beside.OpenFile(inbox.UrgentFile, os.O_RDONLY)
	if err != nil {
		return "" // what cannot be read is said by those who want to
	}
	defer f.Close()
	const envelope = `{"heartbeat":1,`
	var begin [len(envelope)]byte
	if n, _ := f.ReadAt(begin[:], 0); n == 0 || string(begin[:n]) == envelope {
		return ""
	}
	return inbox.Urgent(a.Inbox)
}

// cursorProblems says what is wrong with one of the cursors, and which, or "".
func cursorProblems(a *config.Agent) (path, problem string) {
	for _, of := range []struct{ cursor, lines string }{
		{inbox.CursorFile, filepath.Base(a.Inbox)}, {inbox.UrgentCursor, inbox.UrgentFile},
	} {
		if problem = cursorProblem(a, of.cursor, of.lines); problem != "" {
			return inbox.Beside(a.Inbox, of.cursor), problem
		}
	}
	return "", ""
}

// cursorProblem says what is wrong with the cursor of a file, or "".
func cursorProblem(a *config.Agent, cursor, of string) string {
	beside, err := durable.OpenBelow(a.Dir, filepath.Dir(a.Inbox))
	if err != nil {
		return err.Error()
	}
	defer beside.Close()
	data, err := beside.Read(cursor, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(data))
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil || at < 0 {
		return fmt.Sprintf("%.40q is not an offset", text)
	}
	f, err := beside.OpenFile(of, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if at > 0 {
			return fmt.Sprintf("it says that %d bytes of the inbox are done, and there is no inbox", at)
		}
		return ""
	}
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular() || at == 0:
		return ""
	case at > info.Size():
		return fmt.Sprintf("it says that %d bytes of the inbox are done, and the inbox has only %d", at, info.Size())
	case at == info.Size():
		return "" // heartbeat-rs acknowledges a last line without its newline
	}
	var before [1]byte
	if _, err := f.ReadAt(before[:], at-1); err == nil && before[0] != '\n' {
		return fmt.Sprintf("it says that %d bytes of the inbox are done, which is in the middle of a line", at)
	}
	return ""
}

func (q *Queue) locks(a *config.Agent, beside, stateDir string) {
	for _, name := range []string{inbox.HookLock, inbox.SessionLock} {
		info, err := os.Lstat(filepath.Join(beside, name))
		if err == nil && !info.Mode().IsRegular() {
			q.BadLocks = append(q.BadLocks, name)
		}
	}
	q.lookAtLocks(a, stateDir)
}

// tempForm are the names that hook/durable and hook give to temporary files.
var tempForm = regexp.MustCompile(`^\..+\.tmp(-[0-9a-f]{16})?$`)

// staleAfter is the age from which a temporary file is nobody's.
const staleAfter = time.Hour

// temps are the stale temporary files of a folder below one in which others may
// put links.
func temps(below, dir string, now time.Time) []string {
	var found []string
	eachFile(below, dir, func(name string, info fs.FileInfo) {
		if tempForm.MatchString(name) && now.Sub(info.ModTime()) > staleAfter {
			found = append(found, filepath.Join(dir, name))
		}
	})
	return found
}

// copyForm are the names of copies of the hook program that are under way.
var copyForm = regexp.MustCompile(`^\.copy-\d+$`)

// stateTemps are the temporary files of a state directory and its folders.
func stateTemps(dir string, now time.Time) []string {
	var found []string
	looked := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if looked++; looked > durable.MaxEntries {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() || !tempForm.MatchString(d.Name()) && !copyForm.MatchString(d.Name()) {
			return nil
		}
		if info, err := d.Info(); err == nil && now.Sub(info.ModTime()) > staleAfter {
			found = append(found, path)
		}
		return nil
	})
	return found
}

func eachFile(below, dir string, do func(name string, info fs.FileInfo)) {
	folder, err := durable.OpenBelow(below, dir)
	if err != nil {
		return
	}
	defer folder.Close()
	entries, _ := folder.Entries()
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			do(e.Name(), info)
		}
	}
}

// folder looks for what was left in a folder of the queue.
func (q *Queue) folder(agentDir, dir string, now time.Time) {
	q.Temps = append(q.Temps, temps(agentDir, dir, now)...)
	eachFile(agentDir, dir, func(name string, info fs.FileInfo) {
		if strings.Contains(name, ".corrupt-") {
			q.Corrupt = append(q.Corrupt, name)
		}
		if ahead := info.ModTime().Sub(now); ahead > q.FutureBy {
			q.Future, q.FutureBy = name, ahead
		}
	})
}

// lookAtLocks says who has the locks at this moment.
func (q *Queue) lookAtLocks(a *config.Agent, stateDir string) {
	beside := filepath.Dir(a.Inbox)
	q.HookLockHeld = flock.Held(filepath.Join(beside, inbox.HookLock))
	q.SessionHeld = flock.Held(filepath.Join(beside, inbox.SessionLock))
	q.Shim, q.ShimHalt = session.ShimOf(stateDir, a.Home), process.Halt{}
	if q.Shim.PID != 0 {
		q.ShimHalt = process.HaltOf(q.Shim.PID, process.StateOf(q.Shim.PID))
	}
}

// isBusy reports whether the locks may be another moment's: a tick holds the hook lock for
// milliseconds, and a session that starts has its lock before its note, one that ends the other
// way round.
func (q *Queue) isBusy() bool { return q.HookLockHeld || q.SessionHeld && q.Shim.PID == 0 }

// settle looks at busy locks again for a second, of however many agents.
func (c *collector) settle(agents []*Agent) {
	for range 20 {
		busy := false
		for _, a := range agents {
			if a.Queue.isBusy() {
				a.Queue.lookAtLocks(a.Config, c.StateDir)
				busy = busy || a.Queue.isBusy()
			}
		}
		if !busy {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
