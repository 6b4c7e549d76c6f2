package handwired

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handwired/files"
	"heartbeat/hook/process"
	"heartbeat/internal/testbed"
)

// TestCrashesInTheHandWiredForm: there a panic fails open, and other crashes
// end with a signal.
func TestCrashesInTheHandWiredForm(t *testing.T) {
	t.Parallel()
	type crash struct{ stage, kind, deliver string }
	var all []crash
	for _, stage := range []string{"start", "alone", "locked", "offered", "delivering", "delivered"} {
		for _, kind := range []string{"panic", "goroutine", "overflow", "quit"} {
			for _, deliver := range []string{"json", "stderr"} {
				all = append(all, crash{stage, kind, deliver})
			}
		}
	}
	for _, c := range testbed.SampleOf(t, all, 3) {
		t.Run(c.stage+" "+c.kind+" "+c.deliver, func(t *testing.T) {
			t.Parallel()
			testbed.Played(t, testbed.Kills, 1)
			o := newOld(t, "one\n")
			o.env = append(o.env, "HEARTBEAT_CRASH="+c.stage+":"+c.kind)
			if r := o.stop("--deliver", c.deliver); r.status == 2 || r.status == 0 && c.kind != "panic" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestTheHandWiredFormNamesAFile, too: with a payload, and without one, where nobody
// knows the client.
func TestTheHandWiredFormNamesAFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", client.MostWhole+1)
	o := newOld(t, long+"\n")
	r := o.stop("--deliver", "stderr")
	if got := o.fileOf(r.stderr); r.status != 2 || got != long {
		t.Errorf("status %d, the file has %d bytes", r.status, len(got))
	}
}

// TestALongPromptWithoutItsFileIsTakenBack: it stays queued, as it was.
func TestALongPromptWithoutItsFileIsTakenBack(t *testing.T) {
	t.Parallel()
	o := newOld(t, strings.Repeat("x", client.MostWhole+1)+"\n")
	o.locked(func(held *files.Held) {
		w := &wired{options: options{inbox: filepath.Join(o.home, "gone", "inbox.jsonl")}, parent: os.Getppid()}
		if text, f, err := w.offer(held, wiredNext); err == nil || text != "" || f != nil {
			t.Errorf("it is handed over as %.100q: %+v, %v", text, f, err)
		}
	})
	o.queuedAfresh(strings.Repeat("x", client.MostWhole+1))
}

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

// TestAHandOverThatFailsIsTakenBack: what the client did not get is queued as before: it was
// offered for good, came with a warning of a repeat, and used up an attempt.
func TestAHandOverThatFailsIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, how := range []way{asStderr, asJSON} {
		for why, out := range broken(t) {
			t.Run(fmt.Sprintf("%s, %s", how, why), func(t *testing.T) {
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
		_, err := deliver(Call{Stdout: part{room}, Stderr: part{room}}, asJSON, text)
		if (err == nil) != (room >= len(block)-1) {
			t.Errorf("JSON, %d of %d bytes: %v", room, len(block), err)
		}
		status, err := deliver(Call{Stdout: part{room}, Stderr: part{room}}, asStderr, text)
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
			p := process.Of(c.Process.Pid)
			return p.Start != 0 && !process.Lives(p)
		})
	}
}

// TestAWaitingHookWhoseClientDiedTakesNothing: a hook that waits outlives a client that is killed.
// It took the next prompt, and gave it to nobody.
func TestAWaitingHookWhoseClientDiedTakesNothing(t *testing.T) {
	t.Parallel()
	for _, reaped := range []bool{true, false} {
		t.Run(fmt.Sprintf("reaped %t", reaped), func(t *testing.T) {
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
	for name, feed := range map[string]func(o *old) io.Reader{
		"missing": func(*old) io.Reader { return strings.NewReader("") },
		"garbage": func(*old) io.Reader { return strings.NewReader("garbage") },
		"cut off": func(o *old) io.Reader {
			whole := o.payload(client.Stop, fields{"stop_hook_active": true})
			return strings.NewReader(whole[:len(whole)-5])
		},
		"late": func(o *old) io.Reader {
			r, w, err := os.Pipe()
			if err != nil {
				o.t.Fatal(err)
			}
			timer := time.AfterFunc(payloadPatience+20*time.Second, func() { w.Close() })
			o.t.Cleanup(func() { timer.Stop(); w.Close(); r.Close() })
			return r
		},
		"of nobody": func(*old) io.Reader { return strings.NewReader(`{"hook_event_name":"Stop"}`) },
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

// TestAClockThatIsSetRepeatsNothing: the transcript's proof is told by its place.
func TestAClockThatIsSetRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, d := range clienttest.ClockSteps {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\nthree")
			o.transcript = filepath.Join(o.home, "t.jsonl")
			blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
			clienttest.SetClock(t, d, o.home, o.transcript)
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true})), "two")
			clienttest.Append(t, o.transcript, clienttest.UserLine(clienttest.Feedback+"two"))
			clienttest.SetClock(t, d, o.home, o.transcript)
			o.append("") // the last line's end
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"prompt_id": "P2"})), "three")
		})
	}
}

// TestAnEmptyAnswersReplyIsEmpty: the reply of an entry that the model answered with nothing was
// the one of the entry before, which the client names again.
func TestAnEmptyAnswersReplyIsEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range clienttest.SecondAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\nthree\n")
			o.transcript = filepath.Join(o.home, "t.jsonl")
			blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true, "last_assistant_message": "first"})), "two")
			c.Write(t, o.transcript)
			blocks(t, o.stopWith(o.payload(client.Stop, fields{"stop_hook_active": true, "last_assistant_message": c.Told})), "three")
			if got := o.replies(); !slices.Equal(got, []string{"first", c.Want}) {
				t.Errorf("replies %q, want %q second", got, c.Want)
			}
		})
	}
}
