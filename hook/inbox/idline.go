package inbox

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// splitLine is a line of the memory that was read in a hurry.
type splitLine struct {
	id        []byte
	raw       []byte // the id as it is written in JSON
	ino       uint64
	start     int64 // -1: not known
	end       int64
	disturbed bool
	urgent    bool
}

// splitID reads a line of the memory without decoding all of it, as there may be
// 100,000. For an invalid line it returns nothing.
func splitID(l []byte) splitLine {
	none := splitLine{start: -1}
	l, ok := bytes.CutSuffix(l, []byte("}\n"))
	if !ok {
		return none
	}
	l, urgent := bytes.CutSuffix(l, []byte(`,"urgent":true`))
	l, last, ok := cutLast(l, `,"end":`)
	if !ok {
		return none
	}
	l, inode, ok := cutLast(l, `,"ino":`)
	if !ok {
		return none
	}
	l, _, ok = cutLast(l, `,"at":`)
	if !ok {
		return none
	}
	l, first, placed := cutLast(l, `,"start":`)
	l, ok = bytes.CutPrefix(l, []byte(`{"id":"`))
	if !ok || !bytes.HasSuffix(l, []byte{'"'}) {
		return none
	}
	k := splitLine{raw: l[:len(l)-1], start: -1, urgent: urgent}
	if k.id = k.raw; bytes.IndexByte(k.raw, '\\') >= 0 {
		var s string
		if json.Unmarshal(append(append([]byte{'"'}, k.raw...), '"'), &s) != nil {
			return none
		}
		k.id = []byte(s)
	}
	var inoErr, endErr, startErr error
	k.ino, inoErr = strconv.ParseUint(string(inode), 10, 64)
	k.end, endErr = strconv.ParseInt(string(last), 10, 64)
	if placed {
		k.start, startErr = strconv.ParseInt(string(first), 10, 64)
	}
	if inoErr != nil || endErr != nil || startErr != nil || k.end < 0 || k.start < -1 {
		return splitLine{id: k.id, start: -1, urgent: urgent}
	}
	k.disturbed = len(k.id) == 0 && k.start < 0
	return k
}

func cutLast(l []byte, sep string) (before, after []byte, ok bool) {
	at := bytes.LastIndex(l, []byte(sep))
	if at < 0 {
		return l, nil, false
	}
	return l[:at], l[at+len(sep):], true
}
