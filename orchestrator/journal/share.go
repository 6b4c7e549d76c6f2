package journal

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/hook/durable"
)

// share rewrites the old file from its own events and those of the full file, which
// are newer, and removes that one. If both together are too large, it drops the
// oldest events of each agent beyond its share: an agent that fires all day pushes
// out its own past, not that of the others. What its Stop hooks have decided, a line
// for each turn, goes before anything else. If we die meanwhile, the next rotation
// does it; between the last two steps that repeats events.
func share(stateDir string, most int64) error {
	full := filepath.Join(stateDir, fullFile)
	sizes, stops := map[string]int64{}, map[string]int64{} // :: agent → bytes of its events, and of those that are Stops
	err := eachOf(stateDir, func(agent string, kind Kind, line []byte) error {
		if sizes[agent] += int64(len(line)); kind == Stopped {
			stops[agent] += int64(len(line))
		}
		return nil
	})
	if err != nil {
		return err
	}
	over := excess(sizes, most)
	for agent, n := range stops {
		stops[agent] = min(n, over[agent])
		over[agent] -= stops[agent]
	}
	folder, err := durable.Open(stateDir)
	if err != nil {
		return err
	}
	defer folder.Close()
	err = folder.ReplaceFunc(oldFile, false, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<20)
		err := eachOf(stateDir, func(agent string, kind Kind, line []byte) error {
			too := over
			if kind == Stopped {
				too = stops
			}
			if too[agent] > 0 {
				too[agent] -= int64(len(line))
				return nil
			}
			_, err := out.Write(line)
			return err
		})
		return errors.Join(err, out.Flush())
	})
	if err != nil {
		return fmt.Errorf("cannot shorten the journal: %w", err)
	}
	return os.Remove(full)
}

// excess returns how much each agent has beyond its share of most: what small
// agents leave of an equal share goes to the others.
func excess(sizes map[string]int64, most int64) map[string]int64 {
	over := map[string]int64{}
	agents := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) })
	for i, agent := range agents {
		part := min(sizes[agent], most/int64(len(agents)-i))
		over[agent] = sizes[agent] - part
		most -= part
	}
	return over
}

// eachOf calls do with the whole lines of the old file and of the full one, and
// whose and of which kind they are; a line that is no event belongs to nobody.
func eachOf(stateDir string, do func(agent string, kind Kind, line []byte) error) error {
	for _, name := range []string{oldFile, fullFile} {
		f, err := durable.OpenFile(filepath.Join(stateDir, name), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = eachIn(io.NewSectionReader(f, beginning(f), mostRead), do)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func eachIn(f io.Reader, do func(agent string, kind Kind, line []byte) error) error {
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		line, _, err := durable.Line(in, maxEventLine)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e struct {
			Agent string `json:"agent"`
			Kind  Kind   `json:"kind"`
		}
		if json.Unmarshal(line, &e) != nil || e.Kind == "" {
			continue
		}
		if err := do(e.Agent, e.Kind, line); err != nil {
			return err
		}
	}
}
