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

// folderName is in the state directory: AGENT.points, and AGENT.points.1 with older
// ones, which is the name of no agent's newer ones.
const folderName = "series"

// maxPoints is how many points a file may have before it moves aside: those of 400 days
// in which something happened all the time. As many are kept again.
const maxPoints = 400 * 24 * int(time.Hour/Slot)

func fileOf(agent string) string  { return agent + ".points" }
func olderOf(agent string) string { return agent + ".points.1" }

func folderOf(stateDir string) string { return filepath.Join(stateDir, folderName) }

// add appends points of an agent. A write that the disk has cut is cut off; what lies
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

// wholeUntil is where the last whole point of a file of a size ends: at its end, also
// where something before was taken out, or before the torn one there.
func wholeUntil(file *os.File, size int64) int64 {
	var last [pointSize]byte
	if _, err := file.ReadAt(last[:], size-pointSize); err == nil {
		if _, _, ok := decode(last[:]); ok {
			return size
		}
	}
	return size - size%pointSize
}

// lastSlot is that of the point which was written last for an agent; 0: none was, or it
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

// firstSlot is that of the oldest point that is kept of an agent; 0: none is, or it cannot
// be read.
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

// Read calls take for each point of an agent from a time on, as they were written: in
// the order of time, unless the clock was set. What is said of the future, by a clock
// that was ahead, is passed over.
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

// slack is how many points more than there are slots from a time on are read from the
// end of a file: those of a clock that was set back are there again.
const slack = 7 * 24 * int64(time.Hour/Slot)

// readEnd reads so many bytes at the end of a file.
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
		err = nil // it was cut meanwhile
	}
	return data[:n], err
}

// each calls take for each whole point. Behind one that is damaged it looks for the next
// one, byte by byte: something may have been taken out.
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

// Agents are those of whom there are points.
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
