package session

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
)

// Server is an MCP server that the client was to use in a session, and that did not connect:
// its tools were not there, and the prompts were done without them. The agent can forge it.
type Server struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// ServersText says which did not connect, as "MCP server mail did not connect: Connection
// closed".
func ServersText(all []Server) string {
	first := all[0]
	text := "MCP server " + first.Name + " did not connect: " + first.Why
	switch more := len(all) - 1; {
	case more == 1:
		text += "; nor did " + all[1].Name
	case more > 1:
		text += "; nor did " + all[1].Name + " and " + strconv.Itoa(more-1) + " more"
	}
	return text
}

// Bounds of what is read and kept of the logs of servers.
const (
	mostServers    = 20
	mostServerLog  = 1 << 20
	longestServer  = 200
	stillConnects  = "it was still connecting when the session ended"
	serverLogsAsOf = "2006-01-02T15-04-05" // how the names of the files begin, in UTC
)

// servers are those that did not connect, as they were when entries were last done.
type servers struct {
	done int // the entries that were
	list []Server
}

// told are those, or nil.
func (s *servers) told() *[]Server {
	if len(s.list) == 0 {
		return nil
	}
	list := s.list // the next look replaces it
	return &list
}

// look looks again once an entry more is done.
func (s *shim) lookAtServers() {
	if r := s.record; r.Acknowledged != s.servers.done {
		s.servers.done, s.servers.list = r.Acknowledged, s.unconnected(false)
	}
}

// unconnected returns the servers that have failed to connect in this session; once it has
// ended also those that were still about to.
func (s *shim) unconnected(ended bool) (all []Server) {
	if s.record.Transcript == "" {
		return nil
	}
	known := client.Claude.Settings
	logs := known.ServerLogs(runtime.GOOS, client.In(s.spec.Env), s.record.Transcript)
	for _, folder := range entriesOf(logs) {
		name, is := strings.CutPrefix(folder, known.ServerLog)
		if !is || len(all) == mostServers {
			continue
		}
		if why := s.serverFails(filepath.Join(logs, folder), ended); why != "" {
			all = append(all, Server{foreign.Short(name, longestServer), foreign.Short(why, longestServer)})
		}
	}
	return all
}

// serverFails says why a server did not connect, by its logs; "": it did, or the session had
// none of that name.
func (s *shim) serverFails(folder string, ended bool) string {
	began := s.record.StartedAt.Add(-time.Second).UTC().Format(serverLogsAsOf)
	last, why := client.ServerSaysNothing, ""
	had := false
	for _, name := range entriesOf(folder) {
		if name < began {
			continue // of an earlier session
		}
		f, err := durable.OpenFile(filepath.Join(folder, name), os.O_RDONLY)
		if err != nil {
			continue
		}
		for in := bufio.NewReader(io.LimitReader(f, mostServerLog)); ; {
			line, _, err := durable.Line(in, mostServerLog)
			if err != nil {
				break
			}
			session, says, reason := client.Claude.Settings.ServerSaid(line)
			if session != s.record.ClientSession {
				continue
			}
			had = true
			if says != client.ServerSaysNothing {
				last, why = says, reason
			}
		}
		_ = f.Close() // it was only read
	}
	if had && ended && last == client.ServerSaysNothing {
		return stillConnects
	}
	return why
}

// entriesOf lists a folder, in the order of names; what cannot be listed has nothing.
func entriesOf(path string) (names []string) {
	f, err := durable.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.Entries()
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
