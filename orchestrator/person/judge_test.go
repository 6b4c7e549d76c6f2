package person

import (
	"testing"

	"heartbeat/ptyrun"
)

// The processes of a usual machine. Each is in the session of its own number, unless it
// says so.
var (
	first   = ptyrun.Forebear{PID: 1, Session: 1, Program: "/usr/lib/systemd/systemd", Start: 1}
	manager = ptyrun.Forebear{PID: 900, Parent: 1, Session: 900, Mine: true, Program: "/usr/lib/systemd/systemd", Args: []string{"/usr/lib/systemd/systemd", "--user"}, Start: 50}
	sshd    = ptyrun.Forebear{PID: 10, Parent: 1, Session: 10, Program: "/usr/sbin/sshd", Start: 10}
)

func mine(pid, parent, session int, change ...func(*ptyrun.Forebear)) ptyrun.Forebear {
	f := ptyrun.Forebear{PID: pid, Parent: parent, Session: session, Mine: true, Start: uint64(pid), Program: "/usr/bin/sh", Args: []string{"sh"}}
	for _, c := range change {
		c(&f)
	}
	return f
}

func branded(f *ptyrun.Forebear)  { f.Branded = true }
func terminal(f *ptyrun.Forebear) { f.Terminal = true }
func in(group string) func(*ptyrun.Forebear) {
	return func(f *ptyrun.Forebear) { f.Group = group }
}

func args(program string, args ...string) func(*ptyrun.Forebear) {
	return func(f *ptyrun.Forebear) { f.Program, f.Args = program, append([]string{program}, args...) }
}

// TestWhoIsAPersonByDescent is the rule as a table: what a user finds (the brand holds), what
// root finds, who could have taken it off, and what a system without a brand makes of it.
func TestWhoIsAPersonByDescent(t *testing.T) {
	t.Parallel()
	const scheduler = 1000 // began then, and so has what has a higher number
	shell, root := mine(400, 300, 400, terminal), func(f *ptyrun.Forebear) { f.Mine = true }
	rootsSSHD := sshd
	root(&rootsSSHD)
	line := func(all ...ptyrun.Forebear) []ptyrun.Forebear { return all }
	for name, c := range map[string]struct {
		line, leader        []ptyrun.Forebear
		user, root, without string
	}{
		"a shell of a terminal":             {line(shell, mine(300, 900, 300, args("/usr/bin/xterm")), manager, first), nil, "", "", ofNoOne},
		"a shell of macOS's terminal":       {line(shell, mine(300, 1, 300, args("/System/Applications/Utilities/Terminal.app/Contents/MacOS/Terminal")), first), nil, "", "", ""},
		"a shell of login":                  {line(shell, sshd, first), nil, "", "", ""},
		"a shell in tmux":                   {line(shell, mine(300, 1, 300, args("tmux")), first), nil, "", "", ofNoOne},
		"ssh without a terminal":            {line(mine(1400, 10, 1400), sshd, first), nil, "", "", ""},
		"root's ssh":                        {line(mine(1400, 10, 1400), rootsSSHD, first), nil, "", "", ofNoOne},
		"cron":                              {line(mine(1402, 1401, 1401), ptyrun.Forebear{PID: 1401, Parent: 10, Session: 1401}, sshd, first), nil, "", "", ""},
		"a runner of CI, its own leader":    {line(mine(1500, 1400, 1500), mine(1400, 1, 1400, args("/opt/runner/run")), first), nil, "", "", ofNoOne},
		"a harness in the first's session":  {line(mine(1500, 1400, 1500), mine(1400, 1, 1), first), nil, "", "", ofNoOne},
		"docker exec":                       {line(mine(1400, 0, 1400)), nil, "", "", ""},
		"docker exec, beside our init":      {line(mine(1400, 0, 1400), mine(1399, 0, 1399)), nil, "", "", ""},
		"the reload of our unit":            {line(mine(1400, 900, 1400, args("/usr/bin/heartbeat", "-f", "x", "reload"), in("/u.slice/heartbeat-x.service/.control")), manager, first), nil, "", "", ofNoOne},
		"nohup, before the scheduler":       {line(mine(500, 1, 400), first), nil, "", "", ofNoOne},
		"nohup, its shell has ended":        {line(mine(1500, 1, 400), first), nil, "", ofAnOrphan, ofNoOne},
		"nohup, its shell lives":            {line(mine(1500, 1, 400, terminal), first), line(shell, sshd, first), "", "", ""},
		"an orphan of an orphan's session":  {line(mine(1500, 1, 1490), first), line(mine(1490, 1480, 1490), mine(1480, 1, 1470), first), "", "", ofNoOne},
		"an orphan in a scheduler's group":  {line(mine(1500, 1, 1500, in("/u.slice/heartbeat-x.service")), first), nil, "", ofAFleet, ofAFleet},
		"script, of an orphan":              {line(shell, mine(1500, 1, 1490, args("script")), first), nil, "", ofAnOrphan, ofNoOne},
		"a session's shell":                 {line(mine(1500, 1400, 1500, branded, terminal), mine(1400, 1300, 1300, branded), first), nil, ofAFleet, ofAFleet, ofAFleet},
		"a double fork, all ancestors gone": {line(mine(1500, 1, 1500, branded), first), nil, ofAFleet, ofAFleet, ofAFleet},
		"in its own terminal":               {line(mine(1500, 1, 1500, branded, terminal), first), nil, ofAFleet, ofAFleet, ofAFleet},
		"whose parent has the brand":        {line(mine(1500, 1400, 1500), mine(1400, 1, 1400, branded), first), nil, ofAFleet, ofAFleet, ofAFleet},
		"adopted by a scheduler":            {line(mine(1500, 1400, 1500), mine(1400, 400, 400, args("/usr/bin/heartbeat", "-f", "run.yaml", "run")), shell, sshd, first), nil, ofAFleet, ofAFleet, ofAFleet},
		"adopted by a shim":                 {line(mine(1500, 1400, 1500), mine(1400, 400, 400, args("/usr/bin/heartbeat", "launch", "--shim")), shell, sshd, first), nil, ofAFleet, ofAFleet, ofAFleet},
		"of a scheduler by another name":    {line(mine(1500, 1400, 1500), mine(1400, 400, 400, args("/opt/hb", "run")), shell, sshd, first), nil, ofAFleet, ofAFleet, ofAFleet},
		"heartbeat launch":                  {line(mine(1500, 1400, 1500), mine(1400, 400, 400, args("/usr/bin/heartbeat", "launch", "--", "make", "run")), shell, sshd, first), nil, "", "", ""},
		"in a session's group":              {line(mine(1500, 1400, 1500, in("/u.slice/heartbeat-x.service/heartbeat-1000-77-abc/x")), sshd, first), nil, ofAFleet, ofAFleet, ofAFleet},
		"in the group of a run's relatives": {line(shell, mine(300, 10, 300, in("/heartbeat-1000-77-run")), sshd, first), nil, "", "", ""},
	} {
		f := facts{Line: c.line, Leader: c.leader, Since: scheduler, Self: "/opt/hb"}
		for kind, want := range map[string]string{"user": c.user, "root": c.root, "without a brand": c.without} {
			f.Holds, f.Vague = kind == "user", kind == "without a brand"
			if got := judge(f); got != want {
				t.Errorf("%s, %s: %q, want %q", name, kind, got, want)
			}
		}
	}
}
