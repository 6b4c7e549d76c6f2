// Package rooms holds the rules of who may import whom, of who may open files,
// and of what comments and documents may refer to; its tests check them.
// Rooms stand on floors, and imports point down: cmd → what tells people → the
// scheduler → agents → sessions → records → config → hook → {sources, ptyrun} → ground.
// Each third-party module has one owner.
package rooms

import (
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "heartbeat"

// floor is where rooms stand: a room may import those of its own floor and of the floors
// below, and none above. (That no two import each other is Go's own rule.)
type floor struct {
	name  string
	what  string // what stands here, in a sentence
	rooms []string
}

// floors, the lowest first. A room with a trailing "/..." is all packages below it, too. A
// new room goes to the lowest floor on which it has all that it needs.
var floors = []floor{
	{
		"ground", "They know the system and the client, and nothing of heartbeat's own. The stand-in for the client is one of them.",
		[]string{"hook/client/...", "hook/crashpoint", "hook/durable", "hook/flock", "hook/foreign", "hook/harden", "hook/hooklog", "hook/inpath", "hook/owned", "hook/process", "hook/wake", "internal/simulate/..."},
	},
	{
		"tools", "They know no agent and no queue: schedules, watched files, terminals and process trees, an API to try a client against.",
		[]string{"sources/...", "ptyrun/...", "internal/fakeapi"},
	},
	{
		"hook", "The client's hook contract, and the queue that hooks hand out of.",
		[]string{"hook", "hook/ask", "hook/handover", "hook/handwired/...", "hook/inbox", "hook/settings", "queue/..."},
	},
	{"config", "The fleet's file: what it says, it says to all floors above.", []string{"config"}},
	{
		"records", "Each keeps one kind of fact, or decides purely about one, and knows no session.",
		in("orchestrator", "account", "adopt", "approval", "attempts", "deadline", "entries/...", "explain", "exports/...", "intake", "journal", "lastrun", "later", "ledger", "memory", "notify/awaited", "notify/memo", "notify/notice", "notify/outbox", "owner",
			"page/access", "page/once", "proof/guard", "series", "slots", "state", "stophooks", "store/...", "transcript", "usage/...", "volume"),
	},
	{
		"sessions", "One session, check or client at a time, and the queue as a scheduler needs it.",
		in("orchestrator", "claim", "clients", "launch", "person", "preflight", "probe", "proof", "queue", "resources", "session/..."),
	},
	{
		"agents", "One agent at a time: its state, its work, its directory.",
		in("orchestrator", "agent", "check", "consent", "firing", "oldqueue", "proving/...", "status", "takeover", "workspace"),
	},
	{"scheduler", "It decides what happens to the fleet, and knows nobody who asks or is told.", []string{"orchestrator"}},
	{
		"voices", "They tell people and programs of a fleet, and take what these want.",
		in("orchestrator", "control", "doctor", "doors", "fleetfile", "logs", "metrics", "notify/...", "page/...", "remote", "send", "service"),
	},
	{"commands", "They put it all together; nothing imports them.", []string{"cmd/heartbeat", "cmd/heartbeat-stop"}},
	{
		"instruments", "They test whole programs, and may look at all but what the bans say.",
		[]string{"internal/..."},
	},
}

// in are rooms below a folder.
func in(folder string, rooms ...string) []string {
	var all []string
	for _, r := range rooms {
		all = append(all, folder+"/"+r)
	}
	return all
}

// ban is what rooms may not import though it stands below them, in their tests neither where
// tests is true.
type ban struct {
	rooms, never, but []string // but: these of never they may
	why               string   // after "it may not import X: "
	tests             bool
}

var bans = []ban{
	{[]string{"sources/..."}, []string{"ptyrun/..."}, nil, "sources know no terminals", false},
	{[]string{"ptyrun/..."}, []string{"sources/..."}, nil, "terminals know no sources", false},
	{[]string{"hook/...", "config"}, []string{"ptyrun/..."}, nil, "the hook and the file know no terminals", false},
	{[]string{"hook/..."}, []string{"sources/..."}, nil, "a hook starts at every tool call, and needs no schedules", false},
	{
		[]string{"hook/ask", "hook/crashpoint", "hook/harden", "hook/hooklog"},
		[]string{"hook", "hook/handover", "hook/inbox", "hook/settings"},
		nil, "a hook only asks: it knows no queue", false,
	},
	{
		[]string{"hook/inbox"},
		[]string{"hook", "hook/ask", "hook/handover", "hook/handwired", "hook/settings", "hook/client"},
		nil,
		"the queue knows no client and no hook", false,
	},
	{
		[]string{"hook", "hook/handover", "orchestrator/session"},
		[]string{"hook/inbox"},
		nil, "only the scheduler moves entries: a session asks it", true,
	},
	{[]string{"queue/..."}, []string{"hook/..."}, nil, "what a prompt is, and may become, knows no client and no file", false},
	{
		[]string{"hook/handwired/..."},
		[]string{"hook", "hook/ask", "hook/settings", "hook/inbox"},
		nil, "the hand-wired form knows no session of ours, and has a queue of its own", true,
	},
	{
		[]string{"hook/handover"},
		[]string{"hook", "hook/ask", "hook/handwired/...", "hook/inbox"},
		nil, "what a session is given does not depend on where it is queued", true,
	},
	{
		[]string{"hook/handwired/files"},
		[]string{"hook/client", "hook/handover", "hook/handwired"},
		nil, "a queue in files knows no client and no hook", true,
	},
	{
		[]string{"hook", "hook/ask", "hook/handover", "hook/inbox", "hook/settings"},
		[]string{"hook/handwired"},
		nil, "a session of ours has nothing to do with the hand-wired form", true,
	},
	{[]string{"cmd/heartbeat-stop"}, []string{"..."}, []string{"hook/ask", "hook/handwired"}, "it is the hook, which starts fast", false},
	{
		[]string{"orchestrator/page/...", "orchestrator/notify/...", "orchestrator/doors"},
		[]string{"orchestrator"},
		nil,
		"what people see and are told is given to it: it asks no scheduler", false,
	},
	{[]string{"hook/...", "sources/...", "ptyrun/...", "config", "orchestrator/..."}, []string{"internal/..."}, nil, "instruments are for tests", false},
	{[]string{"cmd/..."}, []string{"internal/..."}, []string{"internal/simulate"}, "instruments are for tests; only the stand-in is a command, too", false},
	{[]string{"internal/simulate/..."}, []string{"..."}, []string{"internal/simulate/..."}, "the stand-in knows what the client knows: nothing of ours", false},
	{
		[]string{"internal/promise", "internal/testbed", "internal/rooms"},
		[]string{"..."},
		nil,
		"what all others stand on knows nothing of ours", false,
	},
	{
		[]string{"internal/..."},
		[]string{"hook/inbox", "queue/...", "orchestrator/entries/...", "orchestrator/check", "orchestrator/exports/...", "orchestrator/intake", "orchestrator/takeover", "orchestrator/queue", "orchestrator/oldqueue", "orchestrator/ledger"},
		nil,
		"who judges may not know how a queue is kept; what needs that is tested in its own room", true,
	},
	{[]string{"..."}, []string{"cmd/..."}, nil, "nothing imports a command", true},
}

// exceptions are imports against a floor or a ban, each with its reason.
var exceptions = []string{
	"orchestrator/probe internal/fakeapi",                 // the probe has its client ask the fake API
	"orchestrator/entries/entriestest orchestrator/check", // its tables are of the same entries, until both are the store's
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
	"github.com/yuin/goldmark":             {"orchestrator/page"},
	"modernc.org/sqlite":                   {"orchestrator/store"},
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
	here := floorOf(room)
	if here < 0 {
		say("stands on no floor: say in internal/rooms/rooms.go where it belongs")
		return broken
	}
	for _, path := range p.Imports {
		ours, isOurs := strings.CutPrefix(path, Module+"/")
		module := moduleOf(path)
		switch {
		case isOurs && floorOf(ours) > here && !slices.Contains(exceptions, room+" "+ours):
			say("may not import", ours+":", "it stands on a floor above,", floors[floorOf(ours)].name)
		case !isOurs && module != "" && !matches(owners[module], room):
			say("is not the owner of", path)
		case matches(deciding, room) && slices.Contains(outside, ours):
			say("decides, and may not open anything:", path)
		}
	}
	for _, b := range bans {
		if !matches(b.rooms, room) {
			continue
		}
		paths := slices.Clone(p.Imports)
		if b.tests {
			paths = slices.Concat(paths, p.TestImports, p.XTestImports)
		}
		for _, path := range paths {
			ours, isOurs := strings.CutPrefix(path, Module+"/")
			if isOurs && matches(b.never, ours) && !matches(b.but, ours) && !slices.Contains(exceptions, room+" "+ours) {
				say("may not import", ours+":", b.why)
			}
		}
	}
	for _, path := range append(p.TestImports, p.XTestImports...) {
		module := moduleOf(path)
		switch {
		case module == "" || strings.HasPrefix(path, Module+"/") || slices.Contains(testOnly, module) || module == "github.com/creack/pty":
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

// floorOf returns the floor of a room: that which names it, or a folder above it; -1: none.
func floorOf(room string) int {
	for i, f := range floors {
		if slices.Contains(f.rooms, room) {
			return i
		}
	}
	return slices.IndexFunc(floors, func(f floor) bool { return matches(f.rooms, room) })
}

func matches(patterns []string, room string) bool {
	for _, p := range patterns {
		folder, below := strings.CutSuffix(p, "/...")
		if p == "..." || room == folder || below && strings.HasPrefix(room, folder+"/") {
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
