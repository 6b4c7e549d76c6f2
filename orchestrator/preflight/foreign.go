package preflight

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// Foreign is something that a file in the agent's directory tells the client and
// that is not ours, for example in a repository that somebody else wrote: it counts
// beside our rules.
type Foreign struct {
	File string
	// Line is where it is, or 0.
	Line int
	// Text is what it says, on one line and without control characters.
	Text string
}

// String returns the place and the text.
func (f Foreign) String() string {
	if f.Line == 0 {
		return f.File + " " + f.Text
	}
	return fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Text)
}

// Foreign lists what the project's and the local settings say beside ours, the
// servers of .mcp.json, and what skills, agents and commands of the directory are
// granted, except what sessions are started without.
func (c Client) Foreign(all []Settings) []Foreign {
	var found []Foreign
	for _, s := range all {
		if s.Kind != Project && s.Kind != Local {
			continue
		}
		says, err := settings.FindForeign(s.Data, c.Applied...)
		if err = cmp.Or(s.Err, err); err != nil {
			found = append(found, Foreign{File: s.Name, Text: "cannot be read: " + err.Error()})
		}
		found = append(found, from(s.Name, says)...)
	}
	f := c.flags()
	if !f.strict {
		found = append(found, c.servers()...)
	}
	if f.reads(Project) {
		found = append(found, granted(filepath.Join(c.Dir, client.Claude.Settings.Folder))...)
	}
	return found
}

// Timed lists the prompts that a file of the directory has the client give a session
// as a person's, at times. Only a session with the client's timetable gets them (client.HasTimetable),
// whatever settings it reads.
func (c Client) Timed() []Foreign {
	path := filepath.Join(c.Dir, client.Claude.Settings.Folder, client.Claude.Settings.Timed)
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var says []settings.Foreign
	if err == nil {
		says, err = settings.PromptsOf(data)
	}
	if err != nil {
		return []Foreign{{File: path, Text: "cannot be read: " + err.Error()}}
	}
	return from(path, says)
}

func from(file string, says []settings.Foreign) []Foreign {
	var found []Foreign
	for _, s := range says {
		found = append(found, Foreign{file, s.Line, s.Text})
	}
	return found
}

// servers returns those of .mcp.json in the directory and the folders above it.
func (c Client) servers() []Foreign {
	var found []Foreign
	for at := c.Dir; ; at = filepath.Dir(at) {
		path := filepath.Join(at, ".mcp.json")
		data, err := read(path)
		var says []settings.Foreign
		if err == nil {
			says, err = settings.ServersOf(data)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			found = append(found, Foreign{File: path, Text: "cannot be read: " + err.Error()})
		}
		found = append(found, from(path, says)...)
		if at == filepath.Dir(at) {
			return found
		}
	}
}

// grants are keys in the head of a skill, an agent or a command that run something
// or let it do more than the session may.
var grants = []string{"hooks", "allowed-tools", "mcpServers", "permissionMode"}

const saysKey = "says "

// Limits for reading the directory's skills, agents and commands: an agent can make
// more of them than anybody reads.
const (
	mostGranted = 500
	mostDeep    = 4
	mostHead    = 64 << 10
)

// granted returns the skills, agents and commands of a folder .claude that contain
// one of grants.
func granted(dir string) []Foreign {
	var found []Foreign
	left := mostGranted
	for _, kind := range []string{"agents", "commands", "skills"} {
		found = append(found, grantedIn(filepath.Join(dir, kind), mostDeep, &left)...)
	}
	if left <= 0 {
		found = append(found, Foreign{File: dir, Text: fmt.Sprintf("has over %d files", mostGranted)})
	}
	return found
}

func grantedIn(dir string, depth int, left *int) []Foreign {
	folder, err := durable.Open(dir)
	if err != nil {
		return nil
	}
	entries, err := folder.Entries()
	if err = errors.Join(err, folder.Close()); err != nil {
		return nil
	}
	var found []Foreign
	for _, e := range entries {
		if *left--; *left < 0 {
			return found
		}
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && depth > 0:
			found = append(found, grantedIn(path, depth-1, left)...)
		case strings.HasSuffix(e.Name(), ".md"):
			found = append(found, head(path)...)
		}
	}
	return found
}

// head reads the lines between two --- at the beginning of a file.
func head(path string) []Foreign {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	file, err := durable.OpenFile(real, os.O_RDONLY)
	if err != nil {
		return []Foreign{{File: path, Text: "cannot be read: " + err.Error()}}
	}
	defer file.Close()
	var found []Foreign
	lines := bufio.NewScanner(io.LimitReader(file, mostHead))
	lines.Buffer(nil, mostHead+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), " \t\r")
		if (n == 1) != (line == "---") {
			break
		}
		if key, _, ok := strings.Cut(line, ":"); ok && slices.Contains(grants, strings.Trim(key, `"' `)) {
			found = append(found, Foreign{path, n, saysKey + strings.Trim(key, `"' `)})
		}
	}
	return found
}
