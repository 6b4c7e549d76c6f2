package preflight

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
)

// ownFile is the file in which the client keeps what it knows about its user, as
// far as we need it. No secret in it is kept.
type ownFile struct {
	broken string
	none   bool

	Onboarded bool `json:"hasCompletedOnboarding"`
	Keys      struct {
		Approved []string `json:"approved"`
		Rejected []string `json:"rejected"`
	} `json:"customApiKeyResponses"`
	Projects map[string]ownProject `json:"projects"`
	Account  *struct{}             `json:"oauthAccount"`
}

type ownProject struct {
	Trusted         bool     `json:"hasTrustDialogAccepted"`
	ImportsApproved bool     `json:"hasClaudeMdExternalIncludesApproved"`
	ImportsWarned   bool     `json:"hasClaudeMdExternalIncludesWarningShown"`
	Enabled         []string `json:"enabledMcpjsonServers"`
	Disabled        []string `json:"disabledMcpjsonServers"`
}

func (c Client) ownPath() string { return client.Claude.Settings.Own(c.Getter()) }

// ownFiles are the last ones that were read, by their paths: the agents of a fleet
// share one that grows with them, and it is needed before each session.
var ownFiles struct {
	sync.Mutex
	last map[string]lastRead
}

type lastRead struct {
	stamp durable.Stamp
	own   *ownFile
}

// ownFile reads it, unless it has not changed since it was last read.
func (c Client) ownFile() *ownFile {
	path := c.ownPath()
	stamp := durable.StampOf(os.Stat(path))
	ownFiles.Lock()
	defer ownFiles.Unlock()
	if last := ownFiles.last[path]; last.stamp.Same(stamp) {
		return last.own
	}
	own := &ownFile{}
	data, readErr := read(path)
	if readErr == nil {
		readErr = json.Unmarshal(data, own)
	}
	if own.none = errors.Is(readErr, fs.ErrNotExist); readErr != nil && !own.none {
		own.broken = readErr.Error()
	}
	if readErr == nil {
		if ownFiles.last == nil {
			ownFiles.last = map[string]lastRead{}
		}
		ownFiles.last[path] = lastRead{stamp, own}
	}
	return own
}

// repository returns the nearest folder from dir upwards that is a git repository.
func repository(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// trusts reports whether the client trusts dir: it or a folder above it is recorded
// as trusted, but in a git repository no folder above the repository counts
// (measured).
func (o *ownFile) trusts(dir, repository string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		if o.Projects[at].Trusted {
			return true
		}
		if at == repository || at == filepath.Dir(at) {
			return false
		}
	}
}

// knows looks for an API key, which is recorded there by its last 20 characters.
func (o *ownFile) knows(key string) (set, approved, rejected bool) {
	tail := key[max(0, len(key)-20):]
	return key != "", slices.Contains(o.Keys.Approved, tail), slices.Contains(o.Keys.Rejected, tail)
}

// serversOf lists the servers of .mcp.json in dir and the folders above it,
// which the client asks about.
func serversOf(dir string) []string {
	names := map[string]bool{}
	for at := dir; ; at = filepath.Dir(at) {
		data, err := durable.Read(filepath.Join(at, client.Claude.Settings.Servers), maxMemory)
		var file struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		if err == nil && foreign.CheckJSON(data) == nil && json.NewDecoder(bytes.NewReader(data)).Decode(&file) == nil {
			for name := range file.Servers {
				names[name] = true
			}
		}
		if at == filepath.Dir(at) {
			return slices.Sorted(maps.Keys(names))
		}
	}
}
