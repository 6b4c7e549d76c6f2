// Package rooms holds the rules of who may import whom, of who may open files,
// and of what comments and documents may refer to; its tests check them.
// Imports point one way, cmd → orchestrator → {sources, ptyrun, hook, config},
// and each third-party module has one owner.
package rooms

import (
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "heartbeat"

// allowed lists for each room what it may import of our own rooms. A room with
// a trailing "/..." is all packages below it, too.
var allowed = map[string][]string{
	// Everybody who shows text may need to make it safe.
	"hook/foreign":           {},
	"hook/durable":           {},
	"hook/flock":             {},
	"hook/client":            {},
	"hook/client/clienttest": {},
	"hook/settings":          {"hook/client"},
	"hook/owned":             {},
	"hook/inpath":            {},
	"hook/inbox":             {"hook/durable", "hook/flock"},
	"hook/handover":          {"hook/client", "hook/durable", "hook/foreign", "hook/inbox"},
	"hook":                   {"hook/client", "hook/durable", "hook/flock", "hook/foreign", "hook/handover", "hook/inbox"},
	// hook/durable opens what others may have put something else in place of.
	"sources/...":            {"sources/...", "hook/durable", "hook/foreign"},
	"ptyrun/...":             {"ptyrun/...", "hook/client", "hook/durable", "hook/foreign", "hook/inpath"},
	"config":                 {"hook", "hook/client", "hook/inbox", "hook/owned", "hook/inpath", "hook/settings", "orchestrator/proof/guard", "sources"}, // the words, the client's permission rules, how long guards make an agent wait, and the schedule grammar
	"orchestrator/state":     {"hook/durable", "hook/owned"},
	"orchestrator/usage":     {"hook/client", "hook/durable"},
	"orchestrator/session":   {"hook/...", "ptyrun/...", "orchestrator/usage"},
	"orchestrator/queue":     {"config", "hook/...", "orchestrator/session"},
	"orchestrator/account":   {"hook/client", "orchestrator/state", "sources"},
	"orchestrator/journal":   {"hook", "hook/durable", "hook/flock", "hook/foreign"},
	"orchestrator/series":    {"hook/durable", "hook/inbox", "orchestrator/journal", "orchestrator/usage"},
	"orchestrator/memory":    {"config", "hook/flock", "orchestrator/ledger", "orchestrator/state", "sources"},
	"orchestrator/approval":  {"config", "hook/durable", "hook/flock", "hook/foreign", "orchestrator/state"},
	"orchestrator/resources": {"config", "ptyrun"},
	"orchestrator/slots":     {},
	// What follows a check is pure; running one knows no agent.
	"orchestrator/proof/guard": {"hook/inbox"},
	"orchestrator/proof":       {"hook/durable", "hook/inbox", "hook/inpath", "orchestrator/state", "ptyrun", "sources/poll"},
	"orchestrator/ledger":      {"config", "hook/inbox", "orchestrator/proof/guard", "orchestrator/state"},
	// It has checks run and their answers applied, one agent at a time.
	"orchestrator/proving": {"orchestrator/approval", "config", "hook/durable", "hook/foreign", "hook/inbox", "orchestrator/journal", "orchestrator/later", "orchestrator/ledger", "orchestrator/proof", "orchestrator/proof/guard", "orchestrator/queue", "orchestrator/status"},
	// It asks people for agents, which it knows by an interface of its own.
	"orchestrator/consent": {"config", "hook/foreign", "hook/inbox", "orchestrator/approval", "orchestrator/journal", "orchestrator/memory", "orchestrator/proving", "orchestrator/queue", "orchestrator/status"},
	// What it reads of a queue and of a session, and the words of the rooms that
	// it tells of.
	"orchestrator/status":   {"orchestrator/usage", "orchestrator/approval", "config", "hook", "hook/durable", "hook/flock", "hook/foreign", "hook/inbox", "hook/settings", "orchestrator/explain", "orchestrator/firing", "orchestrator/memory", "orchestrator/owner", "orchestrator/queue", "orchestrator/session", "orchestrator/state"},
	"orchestrator/firing":   {"config", "hook", "hook/foreign", "hook/inbox", "sources/...", "orchestrator/journal", "orchestrator/memory", "orchestrator/state"},
	"orchestrator/oldqueue": {"config", "hook/flock", "hook/inbox", "orchestrator/later", "orchestrator/owner", "orchestrator/queue", "orchestrator/state", "orchestrator/status"},
	"orchestrator/owner":    {"config", "hook", "hook/durable", "hook/flock", "hook/settings", "orchestrator/journal", "orchestrator/memory", "orchestrator/state"},
	"orchestrator/claim":    {"config", "hook", "hook/durable", "hook/flock", "orchestrator/owner", "orchestrator/session"},
	"orchestrator/launch":   {"orchestrator/usage", "config", "hook", "hook/client", "hook/inbox", "ptyrun", "orchestrator/preflight", "orchestrator/resources", "orchestrator/session", "orchestrator/state", "orchestrator/stophooks"},
	"orchestrator/agent":    {"orchestrator/usage", "config", "hook", "hook/client", "hook/foreign", "hook/inbox", "orchestrator/account", "orchestrator/journal", "orchestrator/memory", "orchestrator/session", "orchestrator/status", "sources"},
	"orchestrator": {
		"config", "hook", "hook/client", "hook/foreign", "hook/inbox",
		"orchestrator/usage", "orchestrator/account", "orchestrator/agent", "orchestrator/approval", "orchestrator/claim", "orchestrator/clients", "orchestrator/consent", "orchestrator/firing", "orchestrator/launch", "orchestrator/later", "orchestrator/journal", "orchestrator/memory", "orchestrator/preflight", "orchestrator/probe", "orchestrator/proof", "orchestrator/proving", "orchestrator/queue", "orchestrator/session", "orchestrator/slots", "orchestrator/state", "orchestrator/status", "orchestrator/stophooks",
	},
	"orchestrator/later":     {"config", "hook/durable", "hook/flock"},
	"orchestrator/stophooks": {"hook", "hook/client", "hook/handover", "orchestrator/state"},
	"orchestrator/preflight": {"config", "hook", "hook/client", "hook/durable", "hook/inpath", "hook/settings", "orchestrator/stophooks"},
	"orchestrator/workspace": {"config", "hook/...", "orchestrator/claim", "orchestrator/launch", "orchestrator/owner", "orchestrator/preflight", "orchestrator/session", "orchestrator/state", "orchestrator/stophooks"},
	"orchestrator/probe":     {"hook/client", "hook/foreign", "hook/settings", "internal/fakeapi", "ptyrun", "ptyrun/screen"},
	"orchestrator/clients":   {"config", "hook/client", "orchestrator/preflight", "orchestrator/probe", "orchestrator/state"},
	"orchestrator/explain":   {},
	"orchestrator/send":      {"orchestrator/later", "orchestrator/ledger", "orchestrator/memory", "config", "hook/inbox", "orchestrator/notify/awaited", "orchestrator/owner", "orchestrator/queue", "orchestrator/status", "orchestrator/workspace"},
	"orchestrator/doctor": {
		"config", "orchestrator/approval", "hook/...", "ptyrun",
		"orchestrator", "orchestrator/clients", "orchestrator/explain", "orchestrator/firing", "orchestrator/journal", "orchestrator/launch", "orchestrator/memory", "orchestrator/owner", "orchestrator/probe", "orchestrator/queue", "orchestrator/preflight", "orchestrator/resources", "orchestrator/session", "orchestrator/state", "orchestrator/status", "orchestrator/stophooks", "orchestrator/workspace",
	},
	"orchestrator/logs":       {"config", "hook", "hook/durable", "orchestrator/journal", "orchestrator/launch", "orchestrator/transcript"},
	"orchestrator/transcript": {"hook", "hook/durable", "hook/foreign", "hook/handover"},
	"orchestrator/control":    {"orchestrator", "orchestrator/approval", "orchestrator/firing", "orchestrator/state", "orchestrator/status", "hook", "hook/flock", "hook/foreign", "ptyrun/peer"},
	"orchestrator/fleetfile":  {"config", "orchestrator", "orchestrator/status"},
	"orchestrator/remote":     {"hook/settings"},
	"orchestrator/service":    {"hook/durable", "hook/settings", "orchestrator", "orchestrator/status"},
	"orchestrator/metrics":    {"hook", "hook/inbox", "orchestrator", "orchestrator/firing", "orchestrator/journal", "orchestrator/status"},
	"orchestrator/doors":      {"config", "orchestrator/firing", "orchestrator/status", "ptyrun/peer", "sources/webhook"},
	// The page reads and does what cmd gives it.
	"orchestrator/page/changes": {"hook/durable", "hook/foreign", "sources/poll"},
	"orchestrator/page/window":  {"config", "hook/foreign", "orchestrator/logs", "orchestrator/transcript", "ptyrun/attach"},
	"orchestrator/page/plot":    {"orchestrator/series", "orchestrator/usage"},
	"orchestrator/page/once":    {"orchestrator/state"},
	"orchestrator/page/access":  {"hook/durable", "hook/flock", "orchestrator/state", "ptyrun/peer"},
	"orchestrator/page":         {"orchestrator/approval", "config", "hook", "hook/foreign", "hook/inbox", "orchestrator/journal", "orchestrator/page/...", "orchestrator/state", "orchestrator/series", "orchestrator/status", "orchestrator/transcript", "ptyrun/screen", "orchestrator/usage"},
	"cmd/heartbeat-stop":        {"hook"},
	"cmd/heartbeat":             {"config", "hook/...", "sources/...", "ptyrun/...", "orchestrator/...", "internal/simulate"},
	// Who is told what; each of its own rooms does one thing.
	"orchestrator/notify/notice":  {"hook/foreign"},
	"orchestrator/notify/outbox":  {"config", "orchestrator/notify/notice"},
	"orchestrator/notify/deliver": {"config", "hook/foreign", "orchestrator/notify/notice", "orchestrator/notify/outbox", "sources/poll"},
	"orchestrator/notify/awaited": {"hook/durable", "orchestrator/state"},
	"orchestrator/notify": {
		"orchestrator/ledger", "orchestrator/memory", "config", "hook", "hook/durable", "hook/flock", "hook/foreign", "hook/inbox",
		"orchestrator/journal", "orchestrator/notify/awaited", "orchestrator/notify/deliver", "orchestrator/notify/notice", "orchestrator/notify/outbox", "orchestrator/queue", "orchestrator/state", "orchestrator/status",
	},
	// The stand-in knows what the client knows: nothing of ours.
	"internal/simulate/...": {"internal/simulate/..."},
	"internal/fakeapi":      {},
	"internal/testbed":      {},
	"internal/rooms":        {},
	"internal/promise":      {"hook/inbox"},
	"internal/bench":        {"hook", "hook/durable", "hook/inbox"},
	"internal/fleetsim":     {"config", "hook", "hook/inbox", "internal/promise", "orchestrator/...", "sources/..."},
	"internal/crash/...":    {"hook", "hook/inbox", "hook/settings", "internal/crash/...", "internal/promise"},
	"internal/soak":         {"hook", "hook/handover", "hook/inbox", "hook/flock", "orchestrator", "orchestrator/control", "orchestrator/status", "internal/promise", "internal/simulate/..."},
	"internal/browser":      {"internal/testbed"},
	"internal/e2e":          {"hook", "hook/inbox", "internal/..."},
}

// owners lists for each third-party module who may import it outside of tests.
var owners = map[string][]string{
	"gopkg.in/yaml.v3":                     {"config"},
	"github.com/alecthomas/kong":           {"cmd/heartbeat"},
	"github.com/creack/pty":                {"ptyrun"},
	"github.com/robfig/cron/v3":            {"sources"},
	"github.com/fsnotify/fsnotify":         {"sources/..."},
	"github.com/bmatcuk/doublestar/v4":     {"sources/...", "config"},
	"github.com/charmbracelet/x/vt":        {"ptyrun/screen"},
	"github.com/charmbracelet/ultraviolet": {"ptyrun/screen"},
	"golang.org/x/sync":                    {"orchestrator/...", "sources/..."},
	"golang.org/x/sys":                     {"ptyrun/...", "sources/...", "orchestrator/...", "internal/crash/..."},
	"golang.org/x/term":                    {"ptyrun/...", "cmd/heartbeat", "internal/simulate", "orchestrator/service"},
	"github.com/coreos/go-systemd/v22":     {"orchestrator/service"},
	"rsc.io/qr":                            {"cmd/heartbeat"},
	"github.com/prometheus/client_golang":  {"orchestrator/metrics"},
	"github.com/aymanbagabas/go-udiff":     {"cmd/heartbeat", "orchestrator/workspace"},
}

// testOnly are the modules that tests may import, and nothing else may.
// A test may also import github.com/creack/pty, to be somebody's terminal.
var testOnly = []string{
	"github.com/google/go-cmp", "pgregory.net/rapid",
	"github.com/invopop/jsonschema", "github.com/santhosh-tekuri/jsonschema",
}

// deciding are the rooms that decide. They open no file and start no process:
// rooms that do return what they have found, and decide nothing.
var deciding = []string{"orchestrator", "orchestrator/agent", "orchestrator/slots", "orchestrator/proof/guard", "orchestrator/notify/notice", "orchestrator/notify/outbox", "internal/promise"}

// outside are the packages by which a room would reach files and processes.
var outside = []string{"os", "os/exec", "io/ioutil", "syscall", "net", "hook/durable", "hook/flock"}

// standardOnly are rooms that start often and fast: nothing third-party may
// be linked into them, however far away.
var standardOnly = []string{"hook/...", "cmd/heartbeat-stop"}

// Package is what `go list -json` says of one, as far as it matters here.
type Package struct {
	ImportPath, Name                         string
	Standard                                 bool
	Imports, TestImports, XTestImports, Deps []string
}

// Violations returns a line for each broken rule of a package.
func Violations(p Package) []string {
	room, ok := strings.CutPrefix(p.ImportPath, Module+"/")
	if !ok {
		return nil
	}
	var broken []string
	say := func(what ...string) { broken = append(broken, room+": "+strings.Join(what, " ")) }
	mayImport, known := find(allowed, room)
	if !known {
		say("no rule says what this room may import")
	}
	for _, path := range p.Imports {
		ours, isOurs := strings.CutPrefix(path, Module+"/")
		switch module := moduleOf(path); {
		case isOurs && !matches(mayImport, ours):
			say("may not import", ours)
		case !isOurs && module != "" && !matches(owners[module], room):
			say("is not the owner of", path)
		case matches(deciding, room) && slices.Contains(outside, ours):
			say("decides, and may not open anything:", path)
		}
	}
	for _, path := range append(p.TestImports, p.XTestImports...) {
		ours, isOurs := strings.CutPrefix(path, Module+"/")
		module := moduleOf(path)
		switch {
		case isOurs && strings.HasPrefix(ours, "cmd/"):
			say("may not import a command, not even in tests:", ours)
		case module == "" || isOurs || slices.Contains(testOnly, module) || module == "github.com/creack/pty":
		case !matches(owners[module], room) && !strings.HasPrefix(room, "internal/"):
			say("is not the owner of", path, "(in a test)")
		}
	}
	if matches(standardOnly, room) {
		for _, path := range p.Deps {
			if moduleOf(path) != "" {
				say("is linked with", path, "and has to be standard library only")
			}
		}
	}
	return broken
}

// find returns the rule for a room: its own, or that of a folder above it.
func find(rules map[string][]string, room string) ([]string, bool) {
	if r, ok := rules[room]; ok {
		return r, true
	}
	for pattern, r := range rules {
		if matches([]string{pattern}, room) {
			return r, true
		}
	}
	return nil, false
}

func matches(patterns []string, room string) bool {
	for _, p := range patterns {
		folder, below := strings.CutSuffix(p, "/...")
		if room == folder || below && strings.HasPrefix(room, folder+"/") {
			return true
		}
	}
	return false
}

// moduleOf returns the third-party module that a package belongs to: one that
// has an owner, or the package's path itself, or "" for the standard library
// and for ours.
func moduleOf(path string) string {
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		return ""
	}
	for module := range owners {
		if path == module || strings.HasPrefix(path, module+"/") {
			return module
		}
	}
	for _, module := range testOnly {
		if strings.HasPrefix(path, module) {
			return module
		}
	}
	return path
}
