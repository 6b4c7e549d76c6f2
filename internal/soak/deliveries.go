package main

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/internal/simulate"
)

// delivery is one text that the model of a session was given.
type delivery struct {
	at      time.Time
	session string
	agent   string // whose directory the client was in
	key     string // "" for a text that is no prompt of ours
	text    string // as it was sent
	attempt int    // as it says of itself
}

var (
	keys   = regexp.MustCompile(`\bka[0-9]+[abt]-[0-9]+\b|^cron a[0-9]+ \S+`)
	footer = regexp.MustCompile(`(?s)^(.*)\n\n\[heartbeat: attempt ([0-9]+) of this entry;[^\]]*\]$`)
)

func keyIn(text string) string { return keys.FindString(text) }

// deliveries reads the stand-in's record, oldest first.
func (f *fleet) deliveries() ([]delivery, error) {
	requests, err := readLines[simulate.Request](f.Dir, "model.jsonl")
	if err != nil {
		return nil, err
	}
	var all []delivery
	for _, r := range requests {
		for i, p := range r.Prompts {
			if i < len(r.Prompts)-1 {
				p = strings.TrimSuffix(p, "\n")
			}
			d := delivery{at: r.At, session: r.SessionID, text: unframe(p), attempt: 1}
			d.agent, _, _ = strings.Cut(strings.TrimPrefix(r.Dir, f.path("agents")+"/"), "/")
			if m := footer.FindStringSubmatch(d.text); m != nil {
				d.text = m[1]
				d.attempt, _ = strconv.Atoi(m[2])
			}
			d.key = keyIn(d.text)
			if d.key != "" || !ofTheClient(d.text) {
				all = append(all, d)
			}
		}
	}
	return all, nil
}

// unframe takes off what kick-off and client put before an entry.
func unframe(p string) string {
	if rest, ok := strings.CutPrefix(p, handover.KickoffPrompt("")); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(p, "Stop hook feedback:\n["); ok {
		if _, text, ok := strings.Cut(rest, "]: "); ok {
			return text
		}
	}
	return p
}

// ofTheClient reports whether a text is no entry: how a session starts that
// gets its first entry later, or goes on with one, an idle tick, a task's end.
func ofTheClient(text string) bool {
	for _, start := range []string{"Read CLAUDE.md", "Your tasks come one after another", "--- IDLE TICK ---", handover.GoOnPrompt, "<task-notification>", gateText, "Killed\n" + gateText} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// toolUse is a line of tools.log: a tool ran.
type toolUse struct {
	at      time.Time
	session string
}

func (f *fleet) toolUses() ([]toolUse, error) {
	file, err := os.Open(f.path("tools.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []toolUse
	for in := bufio.NewScanner(file); in.Scan(); {
		session, at, _ := strings.Cut(in.Text(), " ")
		sec, nsec, _ := strings.Cut(at, ".")
		s, err1 := strconv.ParseInt(sec, 10, 64)
		n, err2 := strconv.ParseInt(nsec, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		all = append(all, toolUse{time.Unix(s, n), session})
	}
	return all, nil
}

func (f *fleet) eachDead(m *member, do func(inbox.DeadEntry)) error {
	q, err := f.queueOf(m)
	if err != nil {
		return err
	}
	defer q.Close()
	for d, err := range q.DeadLetters() {
		if err != nil {
			return err
		}
		do(d)
	}
	return nil
}
