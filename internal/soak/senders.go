package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sender sends prompts to one agent, one after the other.
type sender struct {
	*lab
	m    *member
	name string
	r    *rand.Rand
	n    int
	ids  []sending // accepted with an id, to be repeated
}

// run sends until ctx ends, on average every mean.
func (s *sender) run(ctx context.Context, mean time.Duration) {
	for pause(ctx, s.r, mean) {
		s.n++
		if s.name == "t" {
			s.feed()
			continue
		}
		switch d := s.r.IntN(12); {
		case d < 4:
			s.send("", bySend)
		case d < 6:
			s.send("id-"+keyOf(s.m, s.name, s.n), byID)
		case d < 7 && len(s.ids) > 0:
			s.repeat(pick(s.r, s.ids))
		case d < 9 && s.m.Trigger == "" && !s.m.Disk:
			s.slow()
		default:
			s.echo()
		}
	}
}

// pause waits a random time around mean; false when ctx ended.
func pause(ctx context.Context, r *rand.Rand, mean time.Duration) bool {
	t := time.NewTimer(mean/4 + time.Duration(r.Float64()*1.5*float64(mean)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note keeps a sending's first step; the returned function keeps the last.
func (s *sender) note(h how, prompt, id string) func(step, string) {
	x := sending{
		At: time.Now(), Step: intended, Agent: s.m.Name, Sender: s.name, N: s.n, Key: keyOf(s.m, s.name, s.n),
		How: h, Prompt: prompt, ID: id,
	}
	s.sent.add(x)
	return func(last step, note string) {
		x.At, x.Step, x.Note, x.Prompt = time.Now(), last, note, ""
		s.sent.add(x)
		if last == accepted && h == byID {
			x.Prompt = prompt
			s.ids = append(s.ids, x)
		}
	}
}

// send is `heartbeat send`; one in eight is killed on the way. A killed one
// with an id is sent again.
func (s *sender) send(id string, h how) {
	prompt := anyPrompt(s.r, keyOf(s.m, s.name, s.n))
	done := s.note(h, prompt, id)
	slay := time.Duration(0)
	if s.r.IntN(8) == 0 {
		slay = time.Millisecond + time.Duration(s.r.Int64N(int64(40*time.Millisecond)))
	}
	last, note := s.try(prompt, id, slay)
	if last == unknown && id != "" {
		last, note = s.try(prompt, id, 0)
		if last == refused {
			last = unknown // the first one may have queued it
		}
	}
	done(last, note)
}

func (s *sender) try(prompt, id string, slay time.Duration) (step, string) {
	if !s.m.Disk { // there it is to be tried while the disk is full
		lines := s.lines[s.m.Name]
		lines.RLock()
		defer lines.RUnlock()
	}
	args := []string{"send", s.m.Name, "-"}
	if id != "" {
		args = append(args, "--id", id)
	}
	switch o := s.heartbeat([]byte(prompt), slay, args...); o.status {
	case 0:
		return accepted, ""
	case -1:
		return unknown, ""
	default:
		// "An error that is neither … leaves open whether the entry was queued."
		return unknown, o.errOut
	}
}

// repeat sends an accepted prompt again under its id: nothing comes of it.
func (s *sender) repeat(x sending) {
	o := s.heartbeat([]byte(x.Prompt), 0, "send", s.m.Name, "-", "--id", x.ID, "-o", "json")
	var said struct {
		Data struct{ Duplicate bool }
	}
	if o.status == 0 && (json.Unmarshal([]byte(o.out), &said) != nil || !said.Data.Duplicate) {
		s.surprise("a repeated --id %s was queued again: %s", x.ID, o.out)
	}
}

// line is a prompt as somebody writes it by hand: as it is, or in quotes.
func (s *sender) line() (prompt, line string) {
	prompt = oneLine(s.r, keyOf(s.m, s.name, s.n))
	if s.r.IntN(3) > 0 {
		return prompt, prompt + "\n"
	}
	prompt = strings.Replace(prompt, " end", "\nsecond line\tend", 1)
	quoted, err := json.Marshal(prompt)
	if err != nil {
		panic(err) // a string is always encoded
	}
	return prompt, string(quoted) + "\n"
}

// echo is `echo >>`: one write. It waits for nobody; while the disk is full
// there is no use in it.
func (s *sender) echo() {
	lines := s.lines[s.m.Name]
	if !lines.TryRLock() {
		s.send("", bySend)
		return
	}
	defer lines.RUnlock()
	prompt, line := s.line()
	done := s.note(byEcho, prompt, "")
	f, err := os.OpenFile(s.inboxOf(s.m), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		done(unknown, err.Error())
		return
	}
	done(accepted, "")
}

// slow is a writer that writes its line in pieces while nobody else writes
// lines; now and then slower than the queue's patience with quiet writers.
func (s *sender) slow() {
	lines := s.lines[s.m.Name]
	lines.Lock()
	defer lines.Unlock()
	prompt, line := s.line()
	done := s.note(bySlow, prompt, "")
	f, err := os.OpenFile(s.inboxOf(s.m), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		done(refused, err.Error())
		return
	}
	rest := time.Duration(50+s.r.IntN(400)) * time.Millisecond
	if s.r.IntN(10) == 0 {
		rest = 7 * time.Second
	}
	cut := 1 + s.r.IntN(len(line)-1)
	_, err = f.WriteString(line[:cut])
	time.Sleep(rest)
	_, err2 := f.WriteString(line[cut:])
	if err := errors.Join(err, err2, f.Close()); err != nil {
		done(unknown, err.Error())
		return
	}
	done(accepted, "")
}

// feed gives a trigger something to fire for.
func (s *sender) feed() {
	key := keyOf(s.m, s.name, s.n)
	switch s.m.Trigger {
	case "watch":
		lines := s.lines[s.m.Name]
		if !lines.TryRLock() {
			return
		}
		defer lines.RUnlock()
		name := "in/" + key + ".md"
		done := s.note(byFile, "file "+name, "")
		if err := os.WriteFile(filepath.Join(s.dirOf(s.m), name), []byte(key), 0o600); err != nil {
			done(unknown, err.Error())
			return
		}
		done(accepted, "")
	case "poll":
		done := s.note(byTicket, "ticket "+key, "")
		f, err := os.OpenFile(filepath.Join(s.dirOf(s.m), "tickets"), os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "ticket %s\n", key)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			done(unknown, err.Error())
			return
		}
		done(accepted, "")
	}
}
