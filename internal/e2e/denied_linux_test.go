package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/journal"
)

// selfApprovals are ways in which an agent that may use a shell tries to approve what it
// has asked: $ID is the request, $HB our program and $SOCK the scheduler's socket. What
// runs in the background has the time that it needs.
var selfApprovals = []string{
	`sh -c "heartbeat approval approve $ID"`,
	`$HB approval approve $ID`,
	`command heartbeat approval approve $ID`,
	`H=heartbeat; $H approval approve $ID`,
	`heartbeat  approval   approve $ID`,
	`heartbeat approval reject $ID`,
	`env -u HEARTBEAT_SESSION -u HEARTBEAT_SOCKET -u HEARTBEAT_HOME -u HEARTBEAT_AGENT heartbeat approval approve $ID`,
	`env -i PATH="$PATH" HOME="$HOME" HEARTBEAT_STATE_DIR="$HEARTBEAT_STATE_DIR" $HB -f "$HEARTBEAT_FILE" approval approve $ID`,
	`setsid -w $HB approval approve $ID`,
	`(setsid nohup env -i HOME="$HOME" HEARTBEAT_STATE_DIR="$HEARTBEAT_STATE_DIR" sh -c "sleep 0.5; $HB -f $HEARTBEAT_FILE approval approve $ID >>late 2>&1; echo >> late-ended" >/dev/null 2>&1 &); until [ -e late-ended ]; do sleep 0.1; done; cat late; false`,
	`printf '#!/bin/sh\nexec %s approval approve %s\n' $HB $ID > approve.sh; chmod +x approve.sh; ./approve.sh`,
	`cp $HB mine; ./mine approval approve $ID`,
	`$HB approval approve $ID </dev/null & wait $!`,
	`python3 -c 'import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
b = json.dumps({"approval": {"id": sys.argv[2], "state": "approved"}})
s.sendall(("POST /v1/answer-approval HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(b), b)).encode())
a = s.makefile().read(); print(a); sys.exit(0 if " 200 " in a else 1)' $SOCK $ID`,
	`curl -s -w '%{http_code}' --unix-socket $SOCK -H 'Content-Type: application/json' -d '{"approval":{"id":"'$ID'","state":"approved"}}' http://x/v1/answer-approval | tee code; grep -q 200 code`,
	`curl -s -w '%{http_code}' --unix-socket $SOCK -H 'Content-Type: application/json' -d '{"tokens":{"do":"token"}}' http://x/v1/tokens | tee code; grep -q 200 code`,
	`$HB resume a`, `$HB stop`, `$HB apply`, `$HB page link --role act`,
}

// TestAnAgentAsksAndCannotAnswer by any way of its shell: the generated rules let it ask,
// which returns at once, refuse it the plain answer, and the scheduler refuses the rest.
// What a person says then is its next prompt.
func TestAnAgentAsksAndCannotAnswer(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.named()
		f.write(filepath.Join(f.Work, "p.sql"), "drop table t;")
		steps := []script.Step{
			bash(`heartbeat approval ask "Deploy?" --category destroy --payload p.sql`),
			bash("heartbeat approval approve 12345678 && touch denied"),
		}
		ways := testbed.SampleOf(t, selfApprovals, 3)
		for i, way := range ways {
			steps = append(steps, bash(fmt.Sprintf(". ./env; if { %s\n} > out.%02d 2>&1; then echo %d >> done; fi", way, i, i)))
		}
		f.turns(
			turn{match: "deploy it", steps: append(steps, bash("touch tried; until [ -e go ]; do sleep 0.1; done"), say("I have asked"))},
			turn{match: "It was rejected", steps: []script.Step{say("I leave it")}},
		)
		f.sendAs("deploy it")
		var id string
		f.write(filepath.Join(f.Work, "env"), "until [ -e ids ]; do sleep 0.1; done; . ./ids\n")
		f.start()
		f.Until("the question", func() bool { id = f.asks(); return id != "" })
		f.write(filepath.Join(f.Work, "ids.new"), fmt.Sprintf("ID=%s HB=%s SOCK=%s\n", id, filepath.Join(f.bin, "heartbeat"), f.control()))
		if err := os.Rename(filepath.Join(f.Work, "ids.new"), filepath.Join(f.Work, "ids")); err != nil {
			t.Fatal(err)
		}
		f.Until("all is tried", func() bool {
			_, err := os.Stat(filepath.Join(f.Work, "tried"))
			return err == nil
		})
		for _, name := range []string{"done", "denied"} {
			if worked, err := os.ReadFile(filepath.Join(f.Work, name)); err == nil {
				t.Errorf("%s: these have worked: %s", name, worked)
			}
		}
		var byRule []string
		for i, way := range ways {
			said, err := os.ReadFile(filepath.Join(f.Work, fmt.Sprintf("out.%02d", i)))
			switch {
			case err != nil:
				byRule = append(byRule, way)
			case !strings.Contains(string(said), "only a person may"):
				t.Errorf("%s\nwas not refused for that: %s", way, said)
			}
		}
		if len(byRule) == len(ways) {
			t.Errorf("the client itself has refused most: %q", byRule)
		}
		t.Logf("refused by the client: %q", byRule)
		f.write(filepath.Join(f.Work, "go"), "")
		f.Until("the session's end", func() bool { return f.session().Phase == hook.Ended })
		f.must("", "approval", "reject", id, "--note", "not on a Monday")
		f.Until("the agent has the answer", func() bool { return len(f.outbox()) == 2 })
		if done := f.outbox(); done[0].Reply != "I have asked" || done[1].Reply != "I leave it" {
			t.Errorf("done: %+v", done)
		}
		if got := f.prompts(); len(got) != 2 || !strings.Contains(got[1], "not on a Monday") {
			t.Errorf("prompts: %q", got)
		}
		if told := f.journal(journal.Approval); len(told) != 2 || told[0].State != "asked" || told[1].State != "rejected" {
			t.Errorf("the journal: %+v", told)
		}
	})
}

// control is the scheduler's socket.
func (f *fleet) control() (socket string) {
	f.t.Helper()
	_ = filepath.WalkDir(f.Dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "control.sock" {
			socket = path
		}
		return nil
	})
	if socket == "" {
		f.t.Fatal("no socket of the scheduler")
	}
	return socket
}
