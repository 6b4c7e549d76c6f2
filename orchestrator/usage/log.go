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

// folderName is in the state directory: AGENT.jsonl, and AGENT.1.jsonl with older
// records.
const folderName = "usage"

// maxLog is the size at which records are moved aside; as many are kept again.
const maxLog = 8 << 20

// maxRecord bounds a line that is read.
const maxRecord = 64 << 10

func fileOf(agent string) string  { return agent + ".jsonl" }
func olderOf(agent string) string { return agent + ".1.jsonl" }

// Append adds records of one agent, which are on disk when it returns nil, or, after
// an error, may be: who goes on reads them again. A line that was torn before spoils
// no other. Nobody else may append for the agent meanwhile: who holds the session's
// lock does.
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

// Agents are those of whom there are records.
func Agents(stateDir string) ([]string, error) {
	folder, err := durable.OpenBelow(stateDir, filepath.Join(stateDir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, err := folder.Entries()
	var names []string
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".jsonl")
		if is && !slices.Contains(names, strings.TrimSuffix(name, ".1")) {
			names = append(names, strings.TrimSuffix(name, ".1"))
		}
	}
	return names, err
}

// Read calls take for each record of an agent from a time on, oldest first. Lines that
// cannot be read, as the torn end of one that was being written, are passed over.
func Read(stateDir, agent string, since time.Time, take func(Record)) error {
	folder, err := durable.OpenBelow(stateDir, filepath.Join(stateDir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read what agent %q has cost: %w", agent, err)
	}
	defer folder.Close()
	for _, name := range []string{olderOf(agent), fileOf(agent)} {
		info, err := folder.Stat(name)
		if err == nil && info.ModTime().Before(since) {
			continue // nothing so new is in it
		}
		if err == nil {
			err = readFile(folder, name, since, take)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read what agent %q has cost: %w", agent, err)
		}
	}
	return nil
}

func readFile(folder *durable.Folder, name string, since time.Time, take func(Record)) error {
	file, err := folder.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := seekNear(file, since); err != nil {
		return err
	}
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, _, err := durable.Line(in, maxRecord)
		var r Record
		if json.Unmarshal(line, &r) == nil && !r.At.IsZero() && !r.At.Before(since) {
			take(r)
		}
		if err != nil {
			return nil //nolint:nilerr // the end
		}
	}
}

// firstWindow is how much of a file's end is looked at first for records of a time.
const firstWindow = 256 << 10

// seekNear goes to where all records of a time and later are behind, without reading
// what is far before it: records are in the order of time.
func seekNear(file *os.File, since time.Time) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	for window := int64(firstWindow); !since.IsZero() && window < info.Size(); window *= 4 {
		from := info.Size() - window
		in := bufio.NewReader(io.NewSectionReader(file, from, window))
		for _, _, err := durable.Line(in, maxRecord); err == nil; { // the first one is cut
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
