package client

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
)

// The client keeps a log of each MCP server that it starts: a folder for each project and
// server in the user's cache, a file for each start of the client. Measured in 2.1.329:
// mcp-logs-NAME/2026-11-29T03-38-36-984Z.jsonl with lines {"debug":TEXT,"sessionId":ID,…} or
// {"error":TEXT,…}. Neither a hook, nor the transcript, nor the status line says that a
// server did not connect; the transcript only names those that are still connecting.

// serverLog begins the names of those folders.
const serverLog = "mcp-logs-"

// serverLogs is the folder of a project's logs. The project is named as in the path of its
// transcripts.
func serverLogs(system string, get Getter, transcript string) string {
	base := cmp.Or(get("XDG_CACHE_HOME"), filepath.Join(get("HOME"), ".cache"))
	if system == "darwin" {
		base = filepath.Join(get("HOME"), "Library", "Caches")
	}
	return filepath.Join(base, "claude-cli-nodejs", filepath.Base(filepath.Dir(transcript)))
}

// ServerSaying is what a line of a server's log says.
type ServerSaying int

// The sayings.
const (
	ServerSaysNothing ServerSaying = iota
	ServerConnected
	ServerFailed
)

// serverSaid reads a line of a server's log: of which session it is, what it says, and why.
func serverSaid(line []byte) (session string, says ServerSaying, why string) {
	var l struct {
		Debug, Error string
		Session      string `json:"sessionId"`
	}
	if json.Unmarshal(line, &l) != nil {
		return "", ServerSaysNothing, ""
	}
	switch {
	case strings.HasPrefix(l.Debug, "Successfully connected"):
		return l.Session, ServerConnected, ""
	case strings.HasPrefix(l.Error, "Connection failed"):
		_, why, _ := strings.Cut(l.Error, ": ")
		return l.Session, ServerFailed, cmp.Or(why, l.Error)
	}
	return l.Session, ServerSaysNothing, ""
}
