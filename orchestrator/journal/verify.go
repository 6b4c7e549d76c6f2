package journal

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/hook/durable"
)

// Each line ends with a checksum (CRC-32C) of what stands before it, so that damage
// is noticed: a disk that lies, a copy that was cut, an editor. It is no seal: who
// changes a line on purpose can compute another one.
const sumKey = `,"crc":"`

func sumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// summed returns an event's line with its checksum.
func summed(line []byte) []byte {
	body := bytes.TrimSuffix(line, []byte("}"))
	return fmt.Appendf(body[:len(body):len(body)], `%s%08x"}`, sumKey, sumOf(body))
}

// isSummed reports whether a line has a checksum, and whether it is right.
func isSummed(line []byte) (has, right bool) {
	line = bytes.TrimSpace(line)
	at := bytes.LastIndex(line, []byte(sumKey))
	if at < 0 || len(line) != at+len(sumKey)+len(`00000000"}`) {
		return false, false
	}
	if !bytes.HasSuffix(line, []byte(`"}`)) {
		return true, false
	}
	sum, err := hex.DecodeString(string(line[at+len(sumKey):][:8]))
	if err != nil {
		return true, false
	}
	want := sumOf(line[:at])
	return true, uint32(sum[0])<<24|uint32(sum[1])<<16|uint32(sum[2])<<8|uint32(sum[3]) == want
}

// isOld reports whether a line is an event as versions without checksums wrote it,
// with no key that they did not know: a checksum's own may be damaged.
func isOld(line []byte) bool {
	var e Event
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	return in.Decode(&e) == nil && e.Kind != "" && !in.More()
}

// Verified is what a look at all lines of a journal has found.
type Verified struct {
	Lines int `json:"lines"`
	// Unsummed are lines of versions that wrote no checksum.
	Unsummed int `json:"unsummed"`
	// Damaged are lines that are not as they were written: FILE:LINE, the first 100.
	Damaged []string `json:"damaged"`
	More    int      `json:"more,omitempty"` // of them
}

// maxDamaged bounds how many damaged lines are named.
const maxDamaged = 100

// Verify looks at each line of a fleet's journal. What stands at the end of the
// present file without a newline is still being written.
func Verify(stateDir string) (Verified, error) {
	v := Verified{Damaged: []string{}}
	for _, name := range []string{oldFile, fullFile, presentFile} {
		if err := v.file(filepath.Join(stateDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return v, fmt.Errorf("cannot verify the journal: %w", err)
		}
	}
	return v, nil
}

func (v *Verified) file(path string) error {
	f, err := durable.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	for number := 1; ; number++ {
		line, _, err := durable.Line(in, maxEventLine)
		if err != nil { // the end
			return nil
		}
		v.Lines++
		has, right := isSummed(line)
		switch {
		case has && right:
		case !has && isOld(line):
			v.Unsummed++
		case len(v.Damaged) < maxDamaged:
			v.Damaged = append(v.Damaged, fmt.Sprintf("%s:%d", path, number))
		default:
			v.More++
		}
	}
}
