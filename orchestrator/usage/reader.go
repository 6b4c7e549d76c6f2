package usage

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
)

// What is read of transcripts, which agents can write: a longer line tells nothing,
// and no more files of subagents are looked at.
const (
	maxLine  = 16 << 20
	maxFiles = 10_000
	// baseWithin is how far before its present end a conversation that is resumed
	// says what it has cost.
	baseWithin = 4 << 20
)

// listEvery is how often new subagents are looked for.
const listEvery = time.Second

// Reader follows the transcripts of one session: the client's own, and those of its
// subagents. It opens no file that has not grown.
type Reader struct {
	at     map[string]int64 // how far each was read, by path
	listed time.Time
}

// From has a transcript be read from an offset on.
func (r *Reader) From(path string, offset int64) {
	if r.at == nil {
		r.at = map[string]int64{}
	}
	r.at[path] = offset
}

// Base returns what a client says a conversation had cost that goes on behind an
// offset of its transcript: what it has written at its end, or nothing. It is false
// where that may stand further before.
func Base(path string, offset int64) (total float64, ok bool) {
	from := max(0, offset-baseWithin)
	ok = from == 0
	_ = lines(path, from, offset, func(line []byte) { // what cannot be read says nothing
		if s, tells := client.Claude.Transcript.Spending(line); tells && s.Cost > 0 {
			total, ok = s.Cost, true
		}
	})
	return total, ok
}

// Look gives counter what has been written since the last look into a transcript and
// those of its subagents. The error is about files that could not be read: they are
// tried again.
func (r *Reader) Look(transcript string, now time.Time, counter *Counter) error {
	if transcript == "" {
		return nil
	}
	err := r.read(transcript, counter, false)
	if now.Sub(r.listed) < listEvery {
		return err
	}
	r.listed = now
	folder := client.Claude.Transcript.Subagents(transcript)
	opened, openErr := durable.Open(folder)
	if openErr != nil {
		return err // there are none
	}
	entries, listErr := opened.Entries()
	err = errors.Join(err, listErr, opened.Close())
	for i, e := range entries {
		if i < maxFiles && e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".jsonl") {
			err = errors.Join(err, r.read(filepath.Join(folder, e.Name()), counter, true))
		}
	}
	return err
}

// LookAgain has the next Look list subagents, too.
func (r *Reader) LookAgain() { r.listed = time.Time{} }

func (r *Reader) read(path string, counter *Counter, aside bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // it is not there yet, or not any more
	}
	at := r.at[path]
	if info.Size() < at { // it was cut: what is left was counted
		r.From(path, info.Size())
		return nil
	}
	if info.Size() == at {
		return nil
	}
	return lines(path, at, -1, func(line []byte) {
		at += int64(len(line))
		r.From(path, at)
		if s, tells := client.Claude.Transcript.Spending(line); tells {
			counter.Take(s, aside)
		}
	})
}

// lines calls take for each whole line of a file from an offset on, up to another
// one, or -1. A line that is too long is a blank one of the same length.
func lines(path string, from, to int64, take func(line []byte)) error {
	file, err := durable.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	if to < 0 {
		to = 1 << 62
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), 64<<10)
	for {
		line, length, err := durable.Line(in, maxLine)
		if err != nil {
			return nil //nolint:nilerr // the end, or the rest of a line that is being written
		}
		if line == nil {
			line = make([]byte, length)
		}
		take(line)
	}
}
