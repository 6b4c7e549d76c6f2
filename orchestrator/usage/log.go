package usage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
)

// folderName is in the state directory: AGENT.jsonl, and AGENT.jsonl.1 with older
// records. No agent's own file can have that name.
const folderName = "usage"

// maxLog is the size at which records are moved aside; older ones of the same size are kept.
const maxLog = 8 << 20

// maxRecord limits the length of a line that is read.
const maxRecord = 64 << 10

func fileOf(agent string) string  { return agent + ".jsonl" }
func olderOf(agent string) string { return agent + ".jsonl.1" }

// Append adds records of one agent. They are on disk when it returns nil; after an error
// they may be: the next count reads them again. A torn line damages no other line.
// Only the holder of the session's lock may append for the agent.
func Append(stateDir, agent string, records ...Record) error {
	if len(records) == 0 {
		return nil
	}
	var data bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("cannot record what agent %q has cost: %w", agent, err)
		}
		data.Write(append(line, '\n'))
	}
	folder, err := durable.MakeBelow(stateDir, filepath.Join(stateDir, folderName))
	if err != nil {
		return fmt.Errorf("cannot record what agent %q has cost: %w", agent, err)
	}
	defer folder.Close()
	name := fileOf(agent)
	if info, err := folder.Stat(name); err == nil && info.Size() > maxLog {
		if err := folder.Rename(name, olderOf(agent)); err != nil {
			return fmt.Errorf("cannot record what agent %q has cost: %w", agent, err)
		}
	}
	if err := folder.Append(name, data.Bytes()); err != nil {
		return fmt.Errorf("cannot record what agent %q has cost: %w", agent, err)
	}
	return nil
}

// Agents returns the agents that have records, sorted.
func Agents(stateDir string) ([]string, error) {
	folder, err := durable.OpenBelow(stateDir, filepath.Join(stateDir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, err := fs.ReadDir(folder.Root().FS(), ".") // all: it is ours, and a fleet may be large
	var names []string
	for _, e := range entries {
		name, is := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".1"), ".jsonl")
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// Read calls take for each record of an agent from a time on, oldest first. It skips
// lines that cannot be read, such as one that is being written, and those of another
// agent, if somebody has renamed a file. Records that are moved aside meanwhile are
// neither missing nor doubled.
func Read(stateDir, agent string, since time.Time, take func(Record)) error {
	folder, err := durable.OpenBelow(stateDir, filepath.Join(stateDir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read what agent %q has cost: %w", agent, err)
	}
	defer folder.Close()
	files, err := openBoth(folder, agent)
	for _, file := range slices.Backward(files) {
		defer file.Close()
		if err == nil {
			err = readFile(file, agent, since, take)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot read what agent %q has cost: %w", agent, err)
	}
	return nil
}

// openBoth opens those of an agent's two files that exist, the newer one first: if that
// is moved aside before the other one is opened, both are the same file.
func openBoth(folder *durable.Folder, agent string) (files []*os.File, err error) {
	var newer fs.FileInfo
	for _, name := range []string{fileOf(agent), olderOf(agent)} {
		file, err := folder.OpenFile(name, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		info, err := file.Stat()
		if err != nil || os.SameFile(newer, info) {
			return files, errors.Join(err, file.Close())
		}
		newer, files = info, append(files, file)
	}
	return files, nil
}

func readFile(file *os.File, agent string, since time.Time, take func(Record)) error {
	if old, err := isOld(file, since); old || err != nil {
		return err
	}
	if err := seekNear(file, since); err != nil {
		return err
	}
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, _, err := durable.Line(in, maxRecord)
		var r Record
		if json.Unmarshal(line, &r) == nil && r.Agent == agent && !r.At.IsZero() && !r.At.Before(since) {
			take(r)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lastWindow is how much of a file's end has its last records.
const lastWindow = 8 << 10

// isOld reports whether a file has no record of a time or later. The file's own time alone
// does not tell: a file system may keep whole seconds, and who copies a file may set it.
func isOld(file *os.File, since time.Time) (bool, error) {
	info, err := file.Stat()
	if err != nil || !info.ModTime().Before(since) {
		return false, err
	}
	var last Record
	in := bufio.NewReader(io.NewSectionReader(file, max(0, info.Size()-lastWindow), lastWindow))
	for err == nil {
		var line []byte
		var r Record
		if line, _, err = durable.Line(in, maxRecord); json.Unmarshal(line, &r) == nil && !r.At.IsZero() {
			last = r
		}
	}
	return !last.At.IsZero() && last.At.Before(since), nil
}

// firstWindow is how much of a file's end is searched first for records of a time.
const firstWindow = 256 << 10

// seekNear seeks to a place before all records of a time and later, without reading what
// is far before it: records are in the order of time.
func seekNear(file *os.File, since time.Time) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	for window := int64(firstWindow); !since.IsZero() && window < info.Size(); window *= 4 {
		from := info.Size() - window
		in := bufio.NewReader(io.NewSectionReader(file, from, window))
		for _, _, err := durable.Line(in, maxRecord); err == nil; { // the first line is cut
			var line []byte
			var r Record
			if line, _, err = durable.Line(in, maxRecord); err == nil && json.Unmarshal(line, &r) == nil && !r.At.IsZero() {
				if r.At.Before(since) {
					_, err := file.Seek(from, io.SeekStart)
					return err
				}
				break
			}
		}
	}
	return nil
}

// Oldest returns when the oldest record of an agent was written; zero: there is none.
func Oldest(stateDir, agent string) (at time.Time, err error) {
	folder, err := durable.OpenBelow(stateDir, filepath.Join(stateDir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read what agent %q has cost: %w", agent, err)
	}
	defer folder.Close()
	files, err := openBoth(folder, agent)
	for _, file := range slices.Backward(files) {
		defer file.Close()
		in := bufio.NewReaderSize(file, 64<<10)
		for at.IsZero() {
			line, _, end := durable.Line(in, maxRecord)
			var r Record
			if json.Unmarshal(line, &r) == nil && r.Agent == agent {
				at = r.At
			}
			if end != nil {
				break
			}
		}
	}
	return at, err
}
