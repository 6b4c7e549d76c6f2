package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/promise"
)

// sender sends prompts to one agent, one after the other.
type sender struct {
	*lab
	m    *member
	name string
	r    *rand.Rand
	n    int
	ids  []identified // accepted, to be repeated
}

// identified is a prompt that was sent with an id.
type identified struct{ id, prompt string }

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

// errNotWritten is why a prompt is certainly not queued.
var errNotWritten = errors.New("nothing was written")

// note notes that a prompt is about to be sent; the returned function, what its
// sender knows then: that it is accepted, or with an error that it may be or not.
func (s *sender) note(h how, prompt, id string) func(err error) {
	f := promise.Fact{Agent: s.m.Name, Prompt: keyOf(s.m, s.name, s.n), What: string(h)}
	if h.ordered() {
		f.Sender = s.name
	}
	meant := f
	meant.At, meant.Kind, meant.Text, meant.Replies = time.Now(), promise.Meant, plain(prompt), s.replies(s.m, prompt)
	meant.SelfInterrupting = slices.ContainsFunc(mishaps, func(mark string) bool { return strings.Contains(prompt, mark) })
	s.record.add(meant)
	return func(err error) {
		f := f
		f.At, f.Kind = time.Now(), promise.Accepted
		if err != nil {
			f.Kind, f.Note = promise.Unknown, err.Error()
		}
		if errors.Is(err, errNotWritten) {
			f.Kind = promise.Refused
		}
		s.record.add(f)
		if err == nil && h == byID {
			s.ids = append(s.ids, identified{id, prompt})
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
	err := s.try(prompt, id, slay)
	if err != nil && id != "" {
		done(err)
		err = s.try(prompt, id, 0)
	}
	done(err)
}

func (s *sender) try(prompt, id string, slay time.Duration) error {
	if !s.m.Disk { // there it is to be tried while the disk is full
		lines := s.lines[s.m.Name]
		lines.RLock()
		defer lines.RUnlock()
	}
	args := []string{"send", s.m.Name, "-"}
	if id != "" {
		args = append(args, "--id", id)
	}
	if o := s.heartbeat([]byte(prompt), slay, args...); o.status != 0 {
		// "An error that is neither … leaves open whether the entry was queued."
		return fmt.Errorf("status %d: %s", o.status, o.errOut)
	}
	return nil
}

// repeat sends an accepted prompt again under its id: nothing comes of it.
func (s *sender) repeat(x identified) {
	o := s.heartbeat([]byte(x.prompt), 0, "send", s.m.Name, "-", "--id", x.id, "-o", "json")
	var said struct {
		Data struct{ Duplicate bool }
	}
	if o.status == 0 && (json.Unmarshal([]byte(o.out), &said) != nil || !said.Data.Duplicate) {
		s.surprise("a repeated --id %s was queued again: %s", x.id, o.out)
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
	done(err)
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
		done(fmt.Errorf("%w: %w", errNotWritten, err))
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
	done(errors.Join(err, err2, f.Close()))
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
		// At once, with its content: a watch would fire for the empty file, too.
		path := filepath.Join(s.dirOf(s.m), name)
		err := os.WriteFile(path+".new", []byte(key), 0o600)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		done(err)
	case "poll":
		done := s.note(byTicket, "ticket "+key, "")
		f, err := os.OpenFile(filepath.Join(s.dirOf(s.m), "tickets"), os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "ticket %s\n", key)
			err = errors.Join(err, f.Close())
		}
		done(err)
	}
}
