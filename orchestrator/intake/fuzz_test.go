package intake

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
)

// short is a source that reads a few bytes at a time, as slow disks and signals may have it.
type short struct{ *bytes.Reader }

func (s short) ReadAt(p []byte, at int64) (int, error) {
	return s.Reader.ReadAt(p[:min(len(p), 7)], at)
}

// FuzzLines: however a file is read, in one go or in parts, its lines are what stands between its
// newlines, and of a line that is too long its beginning.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nthree"), uint8(4), uint8(1))
	f.Add([]byte("a line that is too long\nand one\n"), uint8(5), uint8(0))
	f.Add([]byte("\x00\x00\x00\n\xff\n"), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, most, each uint8) {
		limit := int64(most) + 1
		var want []string
		for rest := data; ; {
			raw, after, whole := bytes.Cut(rest, []byte{'\n'})
			if int64(len(raw)) > limit {
				raw = raw[:limit]
			} else if !whole {
				break
			}
			want = append(want, string(raw))
			if !whole {
				break
			}
			rest = after
		}
		var got []string
		position, skipping := int64(0), false
		for range 2 * (len(data) + 2) {
			l := &lines{from: short{bytes.NewReader(data)}, position: position, end: int64(len(data)), most: limit, skipping: skipping}
			var err error
			for range int(each) + 1 {
				var p piece
				if p, err = l.next(t.Context()); err != nil || !p.complete && !p.cut {
					break
				}
				got = append(got, string(p.raw))
			}
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if l.position < position || l.position > int64(len(data)) {
				t.Fatalf("from %d to %d of %d", position, l.position, len(data))
			}
			position, skipping = l.position, l.skipping
		}
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	})
}

// FuzzMail: whatever a line is, it is nothing, an entry with a text, or a dead letter with one.
func FuzzMail(f *testing.F) {
	f.Add([]byte(`{"heartbeat":1,"id":"x","source":"send","prompt":"do"}`))
	f.Add([]byte("\x00\x00x"))
	f.Add([]byte(`"a\nb"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		k := &taking{box: &box{place: Place{Dir: t.TempDir()}}, now: time.Now(), most: 64}
		id, is := k.post(piece{raw: raw, complete: true})
		if is != (len(k.mail) == 1) || is && (id == "" || k.mail[0].Prompt == "" || k.mail[0].State == "") {
			t.Fatalf("%q, %v, %+v", id, is, k.mail)
		}
	})
}
