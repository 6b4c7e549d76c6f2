package client

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// MostWhole is how many UTF-16 code units of a Stop hook's text reach the model whole
// with every known client. Since 2.1.332 the client counts the hook's command with the
// text and drops the middle of what has more than 51,200: the model gets 25,000 from
// either end, and the name of a file with all of it.
const MostWhole = 48_000

// cutsSince is the first version that cuts.
var cutsSince = []int{2, 1, 332}

func cuts(version, text string) bool {
	if len(text) <= MostWhole {
		return false // a code unit has at least one byte
	}
	if v := numbers(version); v != nil && slices.Compare(v, cutsSince) < 0 {
		return false
	}
	units := 0
	for _, r := range text {
		units += max(1, utf16.RuneLen(r)) // -1 for a surrogate, which is replaced
	}
	return units > MostWhole
}

// numbers returns those of a version, or nil.
func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// Newer reports whether version a is newer than b; an unknown one is not.
func Newer(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return x != nil && y != nil && slices.Compare(x, y) > 0
}

// writtenBy reads the version from a transcript's line (2.1.329: each message has it).
func writtenBy(line []byte) string {
	var record struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(line, &record) // otherwise it says nothing
	return record.Version
}
