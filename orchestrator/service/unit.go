package service

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Unit is what a service manager has to know about a fleet. Paths are absolute.
type Unit struct {
	Fleet  string // its name: letters, digits, ".", "_" and "-"
	Binary string // heartbeat
	File   string // the fleet's file
	// System is true for a service of the machine, which runs as User, and false
	// for one of the user's own service manager.
	System bool
	User   string
	// Args follow "run".
	Args []string
	// Env are the variables to set, NAME=VALUE, none of them secret.
	Env []string
	// StopTimeout is how long a stop may take: turns that finish, sessions that are
	// ended.
	StopTimeout time.Duration
	// NoRestart lists exit statuses after which a restart cannot help.
	NoRestart []int
}

// Name is the name of the service.
func (u *Unit) Name() string { return "heartbeat-" + u.Fleet }

// Time-outs for systemd. A start recovers what an earlier run left, for each agent
// in turn; a reload locks the directories of new agents.
const (
	startTimeout  = 15 * time.Minute
	watchdogAfter = time.Minute
	restartAfter  = 5 * time.Second
)

// Systemd renders the unit file (systemd.service(5)). It needs systemd 243 or
// later.
//
// The reload is a command of its own instead of Type=notify-reload, which came with
// systemd 253 and makes a unit invalid before: "heartbeat reload" waits, and fails
// if the file has problems, on all versions. OOMPolicy=continue because by default
// one process of one session that is killed for memory would stop the whole fleet.
// TasksMax= and MemoryMax= limit the fleet as a whole, resources: in the fleet's
// file each session. Without Delegate= the control groups of the unit belong to
// systemd alone, and ptyrun.PlanGroup makes none. There is no sandboxing: only the
// user knows what agents need.
//
// A binary whose path systemd refuses is an error.
func (u *Unit) Systemd() (string, error) {
	if !systemdRuns(u.Binary) {
		return "", fmt.Errorf("cannot write the unit: systemd runs no command with quotes or backslashes in its path: %s", u.Binary)
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# By heartbeat service. Changes of yours are kept in: %s edit %s", u.systemctl(), u.Name())
	line("[Unit]")
	line("Description=heartbeat: the agents of %s", u.Fleet)
	if u.System {
		line("Wants=network-online.target")
		line("After=network-online.target")
	}
	line("")
	line("[Service]")
	line("Type=notify")
	line("ExecStart=%s", u.command("run", u.Args...))
	line("ExecReload=%s", u.command("reload"))
	if u.System {
		line("User=%s", u.User)
	}
	for _, kv := range u.Env {
		line("Environment=%s", quoted(kv, false))
	}
	line("# A stop lets turns finish; what is left then is killed.")
	line("KillMode=mixed")
	line("TimeoutStopSec=%d", seconds(u.StopTimeout))
	line("TimeoutStartSec=%d", seconds(startTimeout))
	line("Restart=on-failure")
	line("RestartSec=%d", seconds(restartAfter))
	if len(u.NoRestart) > 0 {
		line("RestartPreventExitStatus=%s", strings.Trim(fmt.Sprint(u.NoRestart), "[]"))
	}
	line("WatchdogSec=%d", seconds(watchdogAfter))
	line("# A tool that runs out of memory ends its session, not the fleet.")
	line("OOMPolicy=continue")
	line("# Agents that fork or fill memory without end leave the machine some of both.")
	line("TasksMax=50%%")
	line("MemoryMax=80%%")
	line("# Each session has a control group of its own. What agents start is refused what only")
	line("# a person may do, in every group. Still they can write what %s can, and have others", u.whose())
	line("# act for them: only another user or a container keeps them from that. See")
	line("# heartbeat help security.")
	line("Delegate=yes")
	line("")
	line("[Install]")
	target := "default.target"
	if u.System {
		target = "multi-user.target"
	}
	line("WantedBy=%s", target)
	return b.String(), nil
}

// systemdRuns reports whether systemd runs an executable with a path: string_is_safe() in
// its sources says which it does not, quoted or not.
func systemdRuns(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`"'\`, r) })
}

// command is a command line of heartbeat for the fleet, as a unit file has it.
func (u *Unit) command(name string, args ...string) string {
	words := []string{quoted(u.Binary, false), "-f", quoted(u.File, true), name}
	for _, arg := range args {
		words = append(words, quoted(arg, true))
	}
	return strings.Join(words, " ")
}

// whose names the rights that the agents have.
func (u *Unit) whose() string {
	if u.System {
		return "User="
	}
	return "you"
}

func (u *Unit) systemctl() string {
	if u.System {
		return "systemctl"
	}
	return "systemctl --user"
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// quoted returns a word that systemd reads back unchanged: in double quotes with
// the escapes of C, and with "%", which begins a specifier, doubled. In the
// arguments of a command "$" begins a variable and is doubled as well; in its path
// and in Environment= it is literal (systemd.syntax(7), systemd.service(5)).
func quoted(word string, argument bool) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:=,@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range word {
		switch {
		case r == utf8.RuneError && word[i] != 0xEF || r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, word[i])
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '%', r == '$' && argument:
			b.WriteString(string(r) + string(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// SystemdSteps say where to put the unit and what to run, one line each.
func (u *Unit) SystemdSteps() []string {
	name := u.Name()
	if u.System {
		return []string{
			fmt.Sprintf("heartbeat service print systemd --system | sudo tee /etc/systemd/system/%s.service", name),
			"sudo systemctl daemon-reload",
			fmt.Sprintf("sudo systemctl enable --now %s", name),
		}
	}
	return []string{
		"mkdir -p ~/.config/systemd/user",
		fmt.Sprintf("heartbeat service print systemd > ~/.config/systemd/user/%s.service", name),
		"systemctl --user daemon-reload",
		fmt.Sprintf("systemctl --user enable --now %s", name),
		"loginctl enable-linger   # it keeps running after you log out",
	}
}

// LaunchdSteps say the same of the property list.
func (u *Unit) LaunchdSteps() []string {
	label := u.label()
	if u.System {
		return []string{
			fmt.Sprintf("heartbeat service print launchd --system | sudo tee /Library/LaunchDaemons/%s.plist", label),
			fmt.Sprintf("sudo launchctl bootstrap system /Library/LaunchDaemons/%s.plist", label),
		}
	}
	return []string{
		"mkdir -p ~/Library/LaunchAgents",
		fmt.Sprintf("heartbeat service print launchd > ~/Library/LaunchAgents/%s.plist", label),
		fmt.Sprintf("launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/%s.plist", label),
	}
}

// label is the service's name in launchd's reverse-domain form.
func (u *Unit) label() string { return "local." + u.Name() }
