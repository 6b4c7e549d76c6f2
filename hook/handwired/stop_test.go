package handwired

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/flock"
	"heartbeat/hook/hooklog"
	"heartbeat/internal/testbed"
)

// stop calls the hand-wired hook without a payload, as heartbeat-rs's tests do.
func (o *old) stop(args ...string) result { return o.stopWith("", args...) }

func (o *old) stopWith(stdin string, args ...string) result {
	o.t.Helper()
	cmd := o.command(append([]string{"--inbox", o.inbox}, args...), stdin)
	cmd.Dir = o.home
	return o.run(cmd)
}

func (o *old) recover(args ...string) result {
	o.t.Helper()
	return o.run(o.command(append([]string{"recover", "--inbox", o.inbox}, args...), ""))
}

func (o *old) offset() string { return strings.TrimSpace(o.read(".inbox-offset")) }

func (o *old) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(o.home, name))
	return err == nil
}

// blocks checks for exactly one block decision with text.
func blocks(t *testing.T, r result, text string) {
	t.Helper()
	var b struct{ Decision, Reason string }
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil || dec.More() || r.status != 0 || b.Decision != "block" || b.Reason != text {
		t.Fatalf("%+v, want a block with %q", r, text)
	}
}

func approves(t *testing.T, r result) {
	t.Helper()
	if r.status != 0 || r.stdout != "" {
		t.Fatalf("%+v, want the stop approved", r)
	}
}

func TestWiredInboxIsRequired(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--mode", "drain"}, {"recover"}} {
		r := (&old{t: t, home: t.TempDir()}).run(exec.Command(program(t), args...))
		if r.status != 1 || !strings.Contains(r.stderr, "--inbox is required") || r.stdout != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestWiredWrongFlagsAreUsageErrors(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	for _, args := range [][]string{
		{"--mode", "foo"},
		{"--nonsense"},
		{"--idle-interval", "soon"},
		{"--idle-interval", "-1s"},
		{"--idle-interval", "99999999999999999"},
		{"--deliver", "mail"},
		{"more"},
		{"--mode"},
	} {
		if r := o.stop(args...); r.status != 1 || r.stderr == "" || r.stdout != "" {
			t.Errorf("%q: %+v, want status 1", args, r)
		}
	}
	if r := o.recover("--on-orphan", "foo"); r.status != 1 || r.stderr == "" {
		t.Errorf("recover: %+v", r)
	}
	if o.exists(".in-flight") {
		t.Error("a wrong call handed something over")
	}
}

func TestHelpGoesToStdout(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"-h"}, {"recover", "--help"}, {"hook", "--help"}} {
		r := (&old{t: t, home: t.TempDir()}).run(exec.Command(program(t), args...))
		if r.status != 0 || !strings.Contains(r.stdout, "--idle-interval") || r.stderr != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestWiredBlockDecision(t *testing.T) {
	t.Parallel()
	o := newOld(t, "a <b> & \"c\"\u2028é\n")
	if r := o.stop(); r.status != 0 || r.stderr != "" || r.stdout != `{"decision":"block","reason":"a <b> & \"c\"\u2028é"}`+"\n" {
		t.Errorf("%+v", r)
	}
}

func TestWiredDrainOfNothing(t *testing.T) {
	t.Parallel()
	if r := newOld(t, "\n").stop(); r != (result{0, "", "", r.took}) {
		t.Errorf("%+v", r)
	}
}

func TestWiredIdleTick(t *testing.T) {
	t.Parallel()
	o := newOld(t, "")
	r := o.stop("--mode", "persist", "--idle-interval", "300ms")
	blocks(t, r, "--- IDLE TICK ---")
	if r.took < 300*time.Millisecond || r.stderr != "idle sleep 0.3s - ensure hook timeout > 0.3s\n" {
		t.Errorf("%+v", r)
	}
	r = o.stop("--mode", "persist", "--idle-interval", "0")
	blocks(t, r, "--- IDLE TICK ---")
	r = o.stop("--mode=persist", "--idle-interval=1")
	blocks(t, r, "--- IDLE TICK ---")
	if r.took < time.Second || r.stderr != "idle sleep 1s - ensure hook timeout > 1s\n" {
		t.Errorf("%+v", r)
	}
}

func TestWiredFirstLookIsImmediate(t *testing.T) {
	t.Parallel()
	r := newOld(t, "one\n").stop("--mode", "persist", "--idle-interval", "3600")
	blocks(t, r, "one")
	if r.stderr != "" {
		t.Errorf("stderr %q", r.stderr)
	}
}

func TestWiredErrorsFailOpen(t *testing.T) {
	t.Parallel()
	o := newOld(t, "")
	if err := os.Mkdir(o.inbox, 0o700); err != nil {
		t.Fatal(err)
	}
	r := o.stop()
	approves(t, r)
	if r.stderr == "" {
		t.Error("nothing was said")
	}
}

func TestWiredStdoutThatFails(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := o.command([]string{"--inbox", o.inbox}, "")
	cmd.Stdout = w
	if err := cmd.Run(); err != nil {
		t.Errorf("broken pipe: %v, want status 0", err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: a full disk is not tried")
	}
	defer full.Close()
	o = newOld(t, "one\n")
	cmd = o.command([]string{"--inbox", o.inbox}, "")
	cmd.Stdout = full
	if cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("full disk: status %d, want 1", cmd.ProcessState.ExitCode())
	}
}

func TestWiredLines(t *testing.T) {
	t.Parallel()
	o := newOld(t, "  plain  \n\n   \n\"a\\nb\"\n🎈 é\n{\"x\":1}\n")
	for _, want := range []string{"plain", "a\nb", "🎈 é", `{"x":1}`} {
		blocks(t, o.stop(), want)
	}
	approves(t, o.stop())
	if info, err := os.Stat(o.inbox); err != nil || o.offset() != itoa(info.Size()) {
		t.Errorf("cursor %s, %v", o.offset(), err)
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

func TestWiredMissingInboxIsEmpty(t *testing.T) {
	t.Parallel()
	r := newOld(t, "").stop()
	approves(t, r)
	if r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

// It differs from heartbeat-rs on purpose: half a line is not an entry.
func TestWiredUnterminatedLineWaits(t *testing.T) {
	t.Parallel()
	o := newOld(t, "DEPLOY to staging")
	approves(t, o.stop())
	o.append(" only, never prod")
	blocks(t, o.stop(), "DEPLOY to staging only, never prod")
}

func TestWiredInFlight(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	blocks(t, o.stop(), "one")
	var f map[string]any
	if err := json.Unmarshal([]byte(o.read(".in-flight")), &f); err != nil {
		t.Fatal(err)
	}
	if f["entry_id"] != "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed" ||
		f["start_offset"] != 0.0 || f["end_offset"] != 4.0 || f["raw_line"] != "one" {
		t.Errorf(".in-flight: %v", f)
	}
	if at, err := time.Parse(time.RFC3339Nano, f["delivered_at"].(string)); err != nil || time.Since(at) > time.Minute {
		t.Errorf("delivered_at: %v, %v", at, err)
	}
	if !o.exists(".responded") || o.offset() != "" && o.offset() != "0" {
		t.Errorf(".responded %v, cursor %q", o.exists(".responded"), o.offset())
	}
}

func TestWiredNextCallAcknowledges(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\ntwo\n")
	blocks(t, o.stop(), "one")
	blocks(t, o.stop(), "two")
	if o.offset() != "4" {
		t.Errorf("cursor %q after the acknowledgement", o.offset())
	}
	approves(t, o.stop())
	if o.offset() != "8" || o.exists(".in-flight") || o.exists(".responded") {
		t.Errorf("cursor %q; left: %s", o.offset(), o.files())
	}
}

// It differs from heartbeat-rs on purpose: the flag is no evidence, so one that
// was left over is no error.
func TestWiredRespondedIsNoEvidence(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	if err := os.WriteFile(filepath.Join(o.home, ".responded"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blocks(t, o.stop(), "one")
}

func TestWiredSignalFileOnApproveOnly(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	signal := filepath.Join(o.home, "signal")
	blocks(t, o.stop("--signal-file", signal), "one")
	if o.exists("signal") {
		t.Fatal("touched with a block")
	}
	approves(t, o.stop("--signal-file", "signal"))
	if !o.exists("signal") {
		t.Error("not touched")
	}
}

// waits starts a hook with persist and returns once it waits.
func (o *old) waits() (*exec.Cmd, *bytes.Buffer) {
	o.t.Helper()
	cmd := o.command([]string{"--inbox", o.inbox, "--mode", "persist", "--idle-interval", "600"}, "")
	stdout := &bytes.Buffer{}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	cmd.Stdout = stdout
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	if _, err := stderr.Read(make([]byte, 100)); err != nil {
		o.t.Fatal(err)
	}
	return cmd, stdout
}

// It differs from heartbeat-rs on purpose: what arrives while the hook waits is
// handed over at once.
func TestWiredWakesOnAnAppend(t *testing.T) {
	t.Parallel()
	o := newOld(t, "")
	cmd, stdout := o.waits()
	begin := time.Now()
	o.append("late")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	blocks(t, result{stdout: stdout.String()}, "late")
	if took := time.Since(begin); took > testbed.Patience {
		t.Errorf("after %s", took)
	}
}

func TestWaitingHookEndsOnASignal(t *testing.T) {
	t.Parallel()
	o := newOld(t, "")
	cmd, stdout := o.waits()
	// The watch is set up right after the line on stderr.
	until(t, "the hook to end", func() bool {
		_ = cmd.Process.Signal(os.Interrupt)
		return !alive(cmd.Process.Pid)
	})
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() > 0 || stdout.Len() > 0 {
		t.Errorf("%v, stdout %q", err, stdout)
	}
}

// alive reports whether a process runs (a zombie does not).
func alive(pid int) bool {
	data, err := os.ReadFile("/proc/" + itoa(int64(pid)) + "/stat")
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}

func TestWiredCorruptFilesAreNotSilent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".inbox-offset", ".in-flight"} {
		o := newOld(t, "one\ntwo\n")
		blocks(t, o.stop(), "one")
		if err := os.WriteFile(filepath.Join(o.home, name), []byte("{corrupt"), 0o600); err != nil {
			t.Fatal(err)
		}
		// No entry may be skipped: it goes on with one, or says why not.
		r := o.stop()
		if r.status != 0 || r.stdout == "" && r.stderr == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestStderrDelivery(t *testing.T) {
	t.Parallel()
	o := newOld(t, "\"one\\n\"\n")
	if r := o.stop("--deliver", "stderr"); r.status != 2 || r.stdout != "" || r.stderr != "one\n" {
		t.Errorf("%+v", r)
	}
	r := o.stop("--deliver", "stderr", "--mode", "persist", "--idle-interval", "10ms")
	if r.status != 2 || r.stderr != "--- IDLE TICK ---" {
		t.Errorf("%+v, want the idle tick and nothing else on stderr", r)
	}
}

func TestWiredFormBehindTheWordHook(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\n")
	blocks(t, o.run(o.command([]string{"hook", "stop", "--inbox", o.inbox}, "")), "one")
}

func TestProofIsAskedWhereThePayloadHasASession(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\ntwo\n")
	o.transcript = filepath.Join(o.home, "t.jsonl")
	o.soon()
	say := func(more fields) result { return o.stopWith(o.payload(client.Stop, more)) }
	blocks(t, say(nil), "one")
	r := say(fields{"prompt_id": "P2"})
	if !strings.Contains(r.stdout, "one") || !strings.Contains(r.stdout, "attempt 2") {
		t.Fatalf("%+v, want the first entry again", r)
	}
	blocks(t, say(fields{"prompt_id": "P2", "stop_hook_active": true}), "two")
	r = say(fields{"session_id": "other"})
	approves(t, r)
	if !strings.Contains(r.stderr, "recover") || !o.exists(".in-flight") {
		t.Errorf("another session: %+v", r)
	}
	clienttest.Append(t, o.transcript, clienttest.UserLine(clienttest.Feedback+"two"))
	approves(t, say(fields{"prompt_id": "P3"}))
	if o.exists(".in-flight") {
		t.Error("the transcript is no proof")
	}
}

// TestHandWiredRefusesWhereASessionOfOursLives, and changes nothing but hook.log there.
func TestHandWiredRefusesWhereASessionOfOursLives(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\ntwo\n")
	blocks(t, o.stop(), "one")
	release, err := flock.TryLock(o.sessionLock())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	hooklog.Line(o.home, "begun") // what is refused stands in it
	shape := regexp.MustCompile(`(?m)^(\S+/hook\.log|\S+/001) .*$`)
	files := func() string { return shape.ReplaceAllString(o.files(), "$1") }
	before := files()
	signal := filepath.Join(t.TempDir(), "signal")
	r := o.stop("--signal-file", signal)
	approves(t, r)
	if !strings.Contains(r.stderr, "refused") || !strings.Contains(o.log(), "refused") || files() != before {
		t.Errorf("%+v\n%s", r, files())
	}
	if _, err := os.Stat(signal); err == nil {
		t.Error("the signal file would end somebody else's session")
	}
	if r := o.recover(); r.status != 1 || files() != before {
		t.Errorf("recover: %+v", r)
	}
}

// Whatever keeps a hand-wired hook from handing anything over stands in
// hook.log: of a hook that ends with 0 the client shows nobody what it said.
func TestWhatHoldsTheHandWiredHookIsLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, o *old)
		stdin   func(o *old) string
		says    string
	}{
		"another conversation": {
			prepare: func(t *testing.T, o *old) { o.stopWith(o.payload(client.Stop, nil)) },
			stdin:   func(o *old) string { return o.payload(client.Stop, fields{"session_id": "other"}) },
			says:    "is in flight for session C",
		},
		"a session of ours lives": {
			prepare: func(t *testing.T, o *old) {
				release, err := flock.TryLock(o.sessionLock())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = release() })
			},
			says: "a session of heartbeat lives in",
		},
		"a person is needed": {
			prepare: func(t *testing.T, o *old) {
				if err := os.WriteFile(filepath.Join(o.home, ".inbox-offset"), []byte("what?"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			says: "needs a person",
		},
		"nobody tells whose Stop it is": {
			prepare: func(t *testing.T, o *old) { o.stopWith(o.payload(client.Stop, nil)) },
			says:    "no payload tells whether session C had it",
		},
		"the payload is cut off": {
			stdin: func(o *old) string { return o.payload(client.Stop, nil)[:150] },
			says:  "was cut off",
		},
		"the queue is no file": {
			prepare: func(t *testing.T, o *old) {
				if err := os.Rename(o.inbox, o.inbox+".was"); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(o.inbox, 0o700); err != nil {
					t.Fatal(err)
				}
			},
			says: "not a regular file",
		},
	} {
		for _, deliver := range []way{asJSON, asStderr} {
			t.Run(name+", "+string(deliver), func(t *testing.T) {
				t.Parallel()
				o := newOld(t, "one\ntwo\n")
				o.transcript = filepath.Join(o.home, "t.jsonl")
				if c.prepare != nil {
					c.prepare(t, o)
				}
				stdin := ""
				if c.stdin != nil {
					stdin = c.stdin(o)
				}
				r := o.stopWith(stdin, "--deliver", string(deliver))
				approves(t, r)
				if !strings.Contains(o.log(), c.says) {
					t.Errorf("hook.log: %q, want %q", o.log(), c.says)
				}
				if (deliver == asJSON) != strings.Contains(r.stderr, c.says) {
					t.Errorf("stderr: %q", r.stderr)
				}
			})
		}
	}
}

// A person who types /clear begins another conversation in the same client:
// its session went on with nothing any more.
func TestAClientStaysTheSameSessionAfterClear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken  bool
		client int // pid; 0: not told
		want   string
	}{
		"the entry had arrived":     {true, os.Getpid(), "two"},
		"the entry had not arrived": {false, os.Getpid(), "one\n\n[heartbeat: attempt 2"},
		"another client":            {true, os.Getppid(), ""},
		"a client that is not told": {true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\ntwo\n")
			o.transcript = filepath.Join(o.home, "t.jsonl")
			o.soon()
			o.env = append(o.env, "CLAUDE_PID="+strconv.Itoa(os.Getpid()))
			blocks(t, o.stopWith(o.payload(client.Stop, nil)), "one")
			if c.taken {
				clienttest.Append(t, o.transcript, clienttest.UserLine(clienttest.Feedback+"one"))
			}
			o.env[len(o.env)-1] = "CLAUDE_PID="
			if c.client != 0 {
				o.env[len(o.env)-1] += strconv.Itoa(c.client)
			}
			r := o.stopWith(o.payload(client.Stop, fields{
				"session_id": "after-clear", "prompt_id": "P9", "transcript_path": filepath.Join(o.home, "new.jsonl"),
			}))
			var b struct{ Reason string }
			if err := json.Unmarshal([]byte(r.stdout), &b); (err == nil) != (c.want != "") || !strings.HasPrefix(b.Reason, c.want) {
				t.Errorf("%+v, want %q", r, c.want)
			}
		})
	}
}

// heartbeat-rs's scripts empty the inbox after `recover`: under deadletter an
// entry that nothing proved stood there alone, and was lost.
func TestAnInboxThatIsEmptiedAfterRecoverLosesNothing(t *testing.T) {
	t.Parallel()
	for _, payload := range []bool{false, true} {
		o := newOld(t, "one\n")
		o.transcript = filepath.Join(o.home, "t.jsonl")
		clienttest.Append(t, o.transcript, clienttest.UserLine("something else"))
		stdin := ""
		if payload {
			stdin = o.payload(client.Stop, nil)
		}
		blocks(t, o.stopWith(stdin), "one")
		if r := o.recover("--on-orphan", "deadletter"); r.status != 0 {
			t.Fatalf("%+v", r)
		}
		if err := os.Truncate(o.inbox, 0); err != nil {
			t.Fatal(err)
		}
		o.append("two")
		blocks(t, o.stop(), "two")
		if dead := o.read(".dead-letter.jsonl"); !strings.Contains(dead, `"raw_line":"one"`) || !strings.Contains(dead, `"reason":"interrupted"`) {
			t.Errorf("payload %t: dead letters %q", payload, dead)
		}
	}
}

// Without a transcript nothing tells whether a prompt arrived: one that kills
// each session that gets it was given for ever.
func TestWithoutATranscriptAttemptsCount(t *testing.T) {
	t.Parallel()
	o := newOld(t, "poison\nnext\n")
	for n := 1; ; n++ {
		r := o.stop()
		var b struct{ Reason string }
		if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || n > 10 {
			t.Fatalf("attempt %d: %+v", n, r)
		}
		if b.Reason == "next" {
			if n != 6 || !strings.Contains(o.read(".dead-letter.jsonl"), `"reason":"poison"`) {
				t.Errorf("given up after %d attempts: %s", n-1, o.read(".dead-letter.jsonl"))
			}
			break
		}
		if r := o.recover("--on-orphan", "retry"); r.status != 0 {
			t.Fatalf("%+v", r)
		}
	}
}

// TestRepeatsByteForByte: who wants them so gets them so, and the transcript is
// searched for the text as it was handed over.
func TestRepeatsByteForByte(t *testing.T) {
	t.Parallel()
	o := newOld(t, "one\ntwo\n")
	o.transcript = filepath.Join(o.home, "t.jsonl")
	o.soon()
	say := func(more fields) result { return o.stopWith(o.payload(client.Stop, more), "--mark-repeats=false") }
	blocks(t, say(nil), "one")
	blocks(t, say(fields{"prompt_id": "P2"}), "one")
	clienttest.Append(t, o.transcript, clienttest.UserLine(clienttest.Feedback+"one"))
	blocks(t, say(fields{"prompt_id": "P3"}), "two")
	if n := strings.Count(o.read("outbox.jsonl"), `"attempt":2`); n != 1 {
		t.Errorf("the outbox: %s", o.read("outbox.jsonl"))
	}
}
