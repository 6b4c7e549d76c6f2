package hook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// broken are outputs that take nothing.
func broken(t *testing.T) map[string]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); full.Close() })
	return map[string]*os.File{"nobody reads it": w, "it is full": full}
}

// queuedAfresh checks that an entry is first in the queue, as if it had never
// been handed over.
func (l *lab) queuedAfresh(prompt string) {
	l.t.Helper()
	l.locked(func(q *inbox.Held) {
		f, err := q.InFlight()
		if err != nil || f != nil {
			l.t.Fatalf("in flight %+v, %v\n%s", f, err, l.log())
		}
		e, err := q.Next()
		if err == nil {
			f, err = q.Offer(e, inbox.Offering{Via: inbox.ViaStop, Session: "S"})
		}
		if err != nil || f.Attempt != 1 || handover.PromptFor(f, e.Prompt) != prompt {
			l.t.Errorf("%+v, %v: want %q for the first time", f, err, prompt)
		}
	})
}

// What the client did not get is queued as before: it was offered for good,
// came with a warning of a repeat, and used up an attempt.
func TestAHandOverThatFailsIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, how := range []Deliver{DeliverStderr, DeliverJSON} {
		for why, out := range broken(t) {
			t.Run(fmt.Sprintf("%s, %s", how, why), func(t *testing.T) {
				t.Parallel()
				l := begin(t, []string{"one", "two"}, func(r *Record) { r.Policy.Deliver = how })
				cmd := l.command([]string{"hook"}, l.payload(client.Stop, nil))
				cmd.Stdout, cmd.Stderr = out, out
				_ = cmd.Run()
				if s := cmd.ProcessState.ExitCode(); s != 0 && s != 1 {
					t.Errorf("status %d", s)
				}
				if r := l.record(); r.Phase != Unattended || r.Work != nil || r.Acknowledged != 1 || r.Continuations != 0 {
					t.Errorf("record: %+v", r)
				}
				if !strings.Contains(l.log(), "cannot hand over") {
					t.Errorf("hook.log: %s", l.log())
				}
				l.queuedAfresh("two")
			})
			t.Run(fmt.Sprintf("hand-wired, %s, %s", how, why), func(t *testing.T) {
				t.Parallel()
				o := newOld(t, "one\ntwo\n")
				cmd := o.command([]string{"--inbox", o.inbox, "--deliver", string(how)}, o.payload(client.Stop, nil))
				cmd.Stdout, cmd.Stderr = out, out
				_ = cmd.Run()
				o.queuedAfresh("one")
			})
		}
	}
}

// part is an output that takes a part only.
type part struct{ room int }

func (p part) Write(data []byte) (int, error) {
	if p.room >= len(data) {
		return len(data), nil
	}
	return p.room, io.ErrShortWrite
}

// A JSON document that lacks its newline alone is one.
func TestAPartIsNoHandOver(t *testing.T) {
	t.Parallel()
	const text = "a text"
	block := `{"decision":"block","reason":"a text"}` + "\n"
	for room := range len(block) + 1 {
		_, err := deliver(Call{Stdout: part{room}, Stderr: part{room}}, DeliverJSON, text)
		if (err == nil) != (room >= len(block)-1) {
			t.Errorf("JSON, %d of %d bytes: %v", room, len(block), err)
		}
		status, err := deliver(Call{Stdout: part{room}, Stderr: part{room}}, DeliverStderr, text)
		if (err == nil) != (room >= len(text)) || (status == 2) != (err == nil) {
			t.Errorf("stderr, %d of %d bytes: status %d, %v", room, len(text), status, err)
		}
	}
}

// someClient is a process that stands for a client that can be killed.
func someClient(t *testing.T) (c *exec.Cmd, kill func(reaped bool)) {
	t.Helper()
	c = exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c, func(reaped bool) {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if reaped {
			_ = c.Wait()
			return
		}
		until(t, "the client to be a zombie", func() bool {
			start, err := startTime(c.Process.Pid)
			return err == nil && !lives(Process{PID: c.Process.Pid, Start: start})
		})
	}
}

// A hook that waits outlives a client that is killed. It took the next prompt,
// and gave it to nobody.
func TestAWaitingHookWhoseClientDiedTakesNothing(t *testing.T) {
	t.Parallel()
	for _, reaped := range []bool{true, false} {
		t.Run(fmt.Sprintf("reaped %t", reaped), func(t *testing.T) {
			t.Parallel()
			started, kill := someClient(t)
			l := newLab(t, persistent)
			l.env[3] = "CLAUDE_PID=" + strconv.Itoa(started.Process.Pid)
			l.quietly(client.SessionStart, fields{"source": "startup"})
			cmd := l.wait()
			kill(reaped)
			l.append("late")
			if r := ended(t, cmd); r.status != 0 || r.stdout+r.stderr != "" {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(l.log(), "the client has ended") {
				t.Errorf("hook.log: %s", l.log())
			}
			l.queuedAfresh("late")
		})
		t.Run(fmt.Sprintf("hand-wired, reaped %t", reaped), func(t *testing.T) {
			t.Parallel()
			started, kill := someClient(t)
			o := newOld(t, "")
			o.env = append(o.env, "CLAUDE_PID="+strconv.Itoa(started.Process.Pid))
			cmd := o.command([]string{"--inbox", o.inbox, "--mode", "persist", "--idle-interval", "60"}, o.payload(client.Stop, nil))
			var stdout strings.Builder
			stderr, err := cmd.StderrPipe()
			cmd.Stdout = &stdout
			if err = errors.Join(err, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			if _, err := stderr.Read(make([]byte, 100)); err != nil { // it waits
				t.Fatal(err)
			}
			kill(reaped)
			o.append("late")
			if _, err := io.Copy(io.Discard, stderr); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil || stdout.String() != "" {
				t.Errorf("%v, stdout %q", err, stdout.String())
			}
			o.queuedAfresh("late")
		})
	}
}

// Without a payload that can be read, nothing tells whether the session that
// an entry names had it: it was acknowledged.
func TestAnEntryOfASessionIsNotAcknowledgedUnread(t *testing.T) {
	t.Parallel()
	for name, feed := range map[string]func(o old) io.Reader{
		"missing": func(old) io.Reader { return strings.NewReader("") },
		"garbage": func(old) io.Reader { return strings.NewReader("garbage") },
		"cut off": func(o old) io.Reader {
			whole := o.payload(client.Stop, fields{"stop_hook_active": true})
			return strings.NewReader(whole[:len(whole)-5])
		},
		"late": func(o old) io.Reader {
			r, w, err := os.Pipe()
			if err != nil {
				o.t.Fatal(err)
			}
			timer := time.AfterFunc(payloadPatience+20*time.Second, func() { w.Close() })
			o.t.Cleanup(func() { timer.Stop(); w.Close(); r.Close() })
			return r
		},
		"of nobody": func(old) io.Reader { return strings.NewReader(`{"hook_event_name":"Stop"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\n")
			blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
			cmd := o.command([]string{"--inbox", o.inbox}, "")
			if name == "late" {
				cmd.Env = append(cmd.Env, "HEARTBEAT_PAYLOAD=200ms")
			}
			cmd.Stdin = feed(o)
			r := o.run(cmd)
			approves(t, r)
			if f := o.flight(); f == nil || f.RawLine != "one" || o.read("outbox.jsonl") != "" {
				t.Errorf("in flight %+v, outbox %q", f, o.read("outbox.jsonl"))
			}
			if r.stderr == "" {
				t.Error("nothing is said")
			}
			// The session's next Stop that can be read goes on.
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true})), "two")
		})
	}
}

// A Stop whose payload ends in its middle comes from a client that has ended.
func TestAStopThatIsCutOffAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	whole := l.payload(client.Stop, fields{"zzz": strings.Repeat("x", 1000)})
	if r := l.run(l.command([]string{"hook"}, whole[:len(whole)-100])); r.status != 0 || r.stdout+r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if s, p := l.state(), l.record().Phase; s != inbox.Taken || p != Unattended {
		t.Errorf("state %q, phase %s\n%s", s, p, l.log())
	}
}
