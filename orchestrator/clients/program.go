// Package clients knows which programs agents' sessions start as their client, which of
// them were probed (room probe), and what came of it.
//
// A program is known by its file: where it lies, links resolved, its size, its inode and
// the times of its last changes. That costs one stat(2), and no read of some 370 MB at
// each start. A client that updates itself has another file then. Of a script it says
// nothing, as a script may run another client tomorrow: a script is not probed.
package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/probe"
)

// Program is a client as sessions start it.
type Program struct {
	// Argv is its command line without arguments, Path the PATH of its sessions.
	Argv []string
	Path string
	// File is what is run, links resolved; ID changes with it.
	File, ID string
	// Agents are the names of those that use it.
	Agents []string
	// Untried is why it cannot be probed, or "".
	Untried string
}

// Of returns the client of an agent whose sessions are started from an environment.
// self is the running program, which is the stand-in for agents that use that.
func Of(a *config.Agent, base []string, self string) Program {
	c := preflight.ClientOf(a, base)
	p := Program{Path: c.Env["PATH"], Agents: []string{a.Name}}
	switch {
	case a.StandsIn():
		p.Argv, p.File = []string{self, a.Command[1], "--api"}, self
		return p.identified()
	case a.Self:
		p.File = strings.Join(a.Command, " ")
		return p.untried("it is heartbeat itself")
	case !c.Known():
		p.File = c.Program
		return p.untried(fmt.Sprintf("%s is not the client itself, and what it runs is not known", c.Program))
	}
	p.File = c.Locate()
	p.Argv = []string{p.File}
	if p = p.identified(); p.Untried == "" && script(p.File) {
		return p.untried(p.File + " is a script, and what it runs is not known")
	}
	return p
}

// At is a client that a person names by its file, whatever that is.
func At(file string, base []string) Program {
	p := Program{Path: client.In(base)("PATH"), File: file}
	if abs, err := filepath.Abs(file); err == nil {
		p.File = abs
	}
	p.Argv = []string{p.File}
	return p.identified()
}

// Distinct returns the clients of agents, each once, with the names of all that use it.
func Distinct(agents []*config.Agent, base []string, self string) []Program {
	var all []Program
	for _, a := range agents {
		p := Of(a, base, self)
		i := slices.IndexFunc(all, func(q Program) bool { return q.ID == p.ID && q.Untried == p.Untried })
		if i < 0 {
			all = append(all, p)
			continue
		}
		all[i].Agents = append(all[i].Agents, a.Name)
	}
	return all
}

func (p Program) untried(why string) Program {
	p.Argv, p.ID, p.Untried = nil, "", why
	return p
}

// identified looks at the file.
func (p Program) identified() Program {
	file, err := filepath.EvalSymlinks(p.File)
	var st unix.Stat_t
	if err == nil {
		err = unix.Stat(file, &st)
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("it is not a file")
	}
	if err != nil {
		return p.untried(fmt.Sprintf("cannot look at %s: %v", p.File, err))
	}
	p.File = file
	// An npm package's files all have the same time, and an inode may be used again:
	// none of these alone says that it is the same file.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %d %d %s %s", file, st.Dev, st.Ino, st.Size,
		st.Mtim.Nano(), st.Ctim.Nano(), strings.Join(p.Argv[1:], " "), probe.Edition()))
	p.ID = hex.EncodeToString(sum[:8])
	return p
}

// script reports whether a file begins with "#!".
func script(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO may have taken its place
	if err != nil {
		return false
	}
	defer f.Close()
	var begins [2]byte
	_, err = io.ReadFull(f, begins[:])
	return err == nil && string(begins[:]) == "#!"
}
