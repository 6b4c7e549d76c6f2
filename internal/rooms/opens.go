package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// opening lists the functions that wait for a FIFO in place of what they open,
// open a device, or follow a link out of an agent's directory. An agent can put
// any of these in place of any file below its directory; hook/durable and
// hook/flock open what stands there.
var opening = map[string][]string{
	"os": {
		"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "DirFS", "CopyFS",
		"ReadFile", "WriteFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp", "Truncate",
	},
	"io/ioutil":             {"ReadFile", "WriteFile", "ReadDir", "TempFile", "TempDir"},
	"path/filepath":         {"Walk", "WalkDir", "Glob"},
	"syscall":               {"Open", "Mkdir", "Creat"},
	"golang.org/x/sys/unix": {"Open", "Openat", "Openat2", "Mkdir", "Mkdirat", "Creat"},
}

// What the files open that may call those functions.
const (
	owner     = "this is the opener"
	kernel    = "the kernel's files, which nobody can replace"
	named     = "a folder that gets a shorter name (O_PATH) and is not read"
	stateDir  = "folders of the state directory; its files are opened by the opener, too"
	persons   = "files that a person names, links and all"
	throwaway = "a folder of a probe's own, where no agent is, and the administrator's"
	workspace = "the agent's directory itself, which is made like any other folder of a person"
)

// openers lists the files that may call a function of opening, with the reason.
var openers = map[string]string{
	"hook/durable/open.go": owner,
	"hook/flock/flock.go":  owner,

	"hook/clock_linux.go":                  kernel,
	"hook/flock/holder_linux.go":           kernel,
	"hook/harden/harden.go":                kernel,
	"hook/ask/name_linux.go":               named,
	"hook/owned/owned.go":                  "the kernel's files, and the system's list of users and groups",
	"hook/process/process_linux.go":        kernel,
	"orchestrator/doctor/machine_linux.go": kernel,
	"cmd/heartbeat/version.go":             kernel,
	"orchestrator/lastrun/memory.go":       kernel,
	"orchestrator/store/file_linux.go":     "/etc/machine-id, which is the administrator's, and the kernel's files",
	"ptyrun/brand_linux.go":                kernel,
	"ptyrun/group_linux.go":                kernel,
	"ptyrun/peer/far_linux.go":             kernel,
	"ptyrun/limits_linux.go":               kernel,
	"ptyrun/proc_linux.go":                 kernel,
	"ptyrun/reaper_linux.go":               kernel,

	"hook/client/clienttest/clienttest.go": "the temporary folders of tests",

	"orchestrator/doctor/collect_queue.go": stateDir,
	"orchestrator/doctor/denied.go":        stateDir,
	"orchestrator/adopt/adopt.go":          stateDir,
	"orchestrator/adopt/back.go":           stateDir,
	"orchestrator/adopt/earlier.go":        stateDir,
	"orchestrator/adopt/series.go":         stateDir,
	"orchestrator/adopt/usage.go":          stateDir,
	"orchestrator/attempts/attempts.go":    stateDir,
	"orchestrator/ledger/aside.go":         stateDir,
	"orchestrator/ledger/demand.go":        stateDir,
	"orchestrator/ledger/moved.go":         stateDir,
	"orchestrator/ledger/text.go":          stateDir,
	"orchestrator/proof/note.go":           stateDir,
	"orchestrator/session/leftover.go":     stateDir,
	"orchestrator/session/hooks.go":        stateDir,
	"orchestrator/session/talk.go":         stateDir,
	"orchestrator/state/folder.go":         stateDir,
	"orchestrator/state/state.go":          stateDir,
	"orchestrator/store/backup.go":         stateDir,
	"orchestrator/workspace/moved.go":      stateDir,
	"orchestrator/workspace/record.go":     stateDir,
	"orchestrator/workspace/unwire.go":     stateDir,
	"orchestrator/workspace/workspace.go":  stateDir,

	"cmd/heartbeat/launch.go":            persons,
	"cmd/heartbeat/init.go":              persons,
	"config/load.go":                     persons,
	"orchestrator/workspace/hook.go":     "the program that a person installed, links and all, and folders of the state directory",
	"config/recall.go":                   persons,
	"orchestrator/account/identity.go":   persons,
	"orchestrator/lastrun/zone.go":       persons,
	"orchestrator/preflight/settings.go": persons,
	"orchestrator/workspace/trust.go":    persons,

	"orchestrator/service/install.go": "folders of the service manager, with its units",

	"orchestrator/clients/kept.go":         stateDir,
	"orchestrator/clients/program.go":      persons,
	"orchestrator/page/changes/scratch.go": "a folder of our own in the state directory",
	"orchestrator/probe/lab.go":            throwaway,
	"orchestrator/probe/probe.go":          throwaway,

	"orchestrator/claim/claim.go":      workspace,
	"orchestrator/workspace/folder.go": workspace,

	"orchestrator/preflight/imports.go": "folders of rules, which it lists as the client does, through links",
	"hook/handwired/stop.go":            "it makes a new file, and opens none that is there",
}

// folders are the functions that open folders alone: none of them waits for a
// FIFO in the folder's place.
var folders = []string{"os.ReadDir", "os.Mkdir", "os.MkdirAll", "filepath.Walk", "filepath.WalkDir", "filepath.Glob"}

// Opening returns the calls in a Go file, as "os.Open" and so on, that may not
// be made on what an agent can replace.
func Opening(name string, source []byte) ([]string, error) { return calls(name, source, opening) }

// listening lists the functions that open a listener.
var listening = map[string][]string{
	"net":      {"Listen", "ListenTCP", "ListenUnix", "ListenConfig", "FileListener"},
	"net/http": {"ListenAndServe", "ListenAndServeTLS"},
}

// lobby is what bounds who is connected to one.
var lobby = map[string][]string{Module + "/ptyrun/lobby": {"Open"}}

// Listening reports whether a Go file opens a listener, and whether it has a lobby for one.
func Listening(name string, source []byte) (listens, bounds bool, err error) {
	opens, err := calls(name, source, listening)
	if err != nil {
		return false, false, err
	}
	lobbies, err := calls(name, source, lobby)
	return len(opens) > 0, len(lobbies) > 0, err
}

// calls returns the uses in a Go file of some functions, by the paths of their packages.
func calls(name string, source []byte, functions map[string][]string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		local := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = path
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		selected, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := selected.X.(*ast.Ident); ok {
			for _, f := range functions[names[from.Name]] {
				if f == selected.Sel.Name {
					found = append(found, from.Name+"."+f)
				}
			}
		}
		return true
	})
	return found, nil
}
