package series

import (
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

// folderName is the folder in the state directory. It has AGENT.points and, with the older
// points, AGENT.points.1: no agent's name makes its newer file collide with that.
const folderName = "series"

// maxPoints is how many points a file may have before it becomes the older one: those of
// 400 days in which something happened all the time.
const maxPoints = 400 * 24 * int(time.Hour/Slot)

func fileOf(agent string) string  { return agent + ".points" }
func olderOf(agent string) string { return agent + ".points.1" }

func folderOf(stateDir string) string { return filepath.Join(stateDir, folderName) }

// add appends points of an agent. A write that fails halfway is undone; what is left of one
// behind the last whole point is overwritten.
func add(folder *durable.Folder, agent string, points []Point) (err error) {
	name := fileOf(agent)
	if info, err := folder.Stat(name); err == nil && info.Size() >= int64(maxPoints*pointSize) {
		if err := folder.Rename(name, olderOf(agent)); err != nil {
			return err
		}
	}
	file, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	end := wholeUntil(file, info.Size())
	var data []byte
	for _, p := range points {
		data = p.encode(data)
	}
	if _, err := file.WriteAt(data, end); err != nil {
		return errors.Join(err, file.Truncate(end))
	}
	return nil
}

// wholeUntil returns where the last whole point of a file ends: at the end of the file, even
// if bytes before it were removed, or before a torn point there.
func wholeUntil(file *os.File, size int64) int64 {
	var last [pointSize]byte
	if _, err := file.ReadAt(last[:], size-pointSize); err == nil {
		if _, _, ok := decode(last[:]); ok {
			return size
		}
	}
	return size - size%pointSize
}

// lastSlot returns the slot of the last point in an agent's file; 0: there is none, or it
// cannot be read.
func lastSlot(folder *durable.Folder, agent string) int64 {
	file, err := folder.OpenFile(fileOf(agent), os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	var last [pointSize]byte
	_, err = file.ReadAt(last[:], wholeUntil(file, info.Size())-pointSize)
	if _, slot, ok := decode(last[:]); err == nil && ok {
		return slot
	}
	return 0
}

// firstSlot returns the slot of the first point in an agent's files; 0: there is none, or it
// cannot be read.
func firstSlot(stateDir, agent string) int64 {
	folder, err := durable.OpenBelow(stateDir, folderOf(stateDir))
	if err != nil {
		return 0
	}
	defer folder.Close()
	for _, name := range []string{olderOf(agent), fileOf(agent)} {
		file, err := folder.OpenFile(name, os.O_RDONLY)
		if err != nil {
			continue
		}
		var first [pointSize]byte
		_, err = file.ReadAt(first[:], 0)
		_ = file.Close()
		if _, slot, ok := decode(first[:]); err == nil && ok {
			return slot
		}
	}
	return 0
}

// Read calls take for each point of an agent since a time, in the order in which they were
// written: that of time, unless the clock was set. Points in the future, from a clock that
// was ahead, are skipped.
func Read(stateDir, agent string, since, now time.Time, take func(Point)) error {
	folder, err := durable.OpenBelow(stateDir, folderOf(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the series of agent %q: %w", agent, err)
	}
	defer folder.Close()
	from, to := slotOf(since), slotOf(now)
	most := min(to-from+slack, int64(maxPoints)+slack) * pointSize
	for _, name := range []string{olderOf(agent), fileOf(agent)} {
		data, err := readEnd(folder, name, most)
		if err != nil {
			return fmt.Errorf("cannot read the series of agent %q: %w", agent, err)
		}
		each(data, func(p Point, slot int64) {
			if slot >= from && slot <= to {
				p.At = startOf(slot)
				take(p)
			}
		})
	}
	return nil
}

// slack is how many points more than there are slots in the time are read from the end of
// a file: after a clock was set back, slots occur twice.
const slack = 7 * 24 * int64(time.Hour/Slot)

// readEnd reads at most most bytes from the end of a file.
func readEnd(folder *durable.Folder, name string, most int64) ([]byte, error) {
	file, err := folder.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(info.Size(), most))
	n, err := file.ReadAt(data, info.Size()-int64(len(data)))
	if errors.Is(err, io.EOF) {
		err = nil // it was truncated meanwhile
	}
	return data[:n], err
}

// each calls take for each whole point. After a damaged point it searches for the next one
// byte by byte, because bytes may have been removed.
func each(data []byte, take func(p Point, slot int64)) {
	for len(data) >= pointSize {
		p, slot, ok := decode(data)
		if !ok {
			data = data[1:]
			continue
		}
		take(p, slot)
		data = data[pointSize:]
	}
}

// Agents returns the agents that have points.
func Agents(stateDir string) ([]string, error) {
	folder, err := durable.OpenBelow(stateDir, folderOf(stateDir))
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
		name, is := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".1"), ".points")
		if is && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
