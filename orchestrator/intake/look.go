package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// Waiting is what stands in an inbox and is not taken in yet.
type Waiting struct {
	Lines int // those that are whole
	// AtLeast is true if there are more: so much is not read for a look.
	AtLeast bool
	First   []line.Content // the first of them; fragments among them, and lines that are too long
}

// Bounds of a look.
const (
	mostLooked = 16 << 20 // bytes
	mostFiles  = 100
)

// Look returns what stands in an inbox and is not taken in yet, with the first lines, as many as
// said. It takes no lock and changes nothing: what is taken in meanwhile may be missing, or
// counted though it was taken in.
func Look(ctx context.Context, r *store.Reader, p Place, first int) (Waiting, error) {
	w, err := looking(ctx, r, p, first)
	if err != nil {
		err = fmt.Errorf("cannot look into the inbox: %w", err)
	}
	return w, err
}

func looking(ctx context.Context, r *store.Reader, p Place, first int) (w Waiting, err error) {
	b, err := open(p)
	if b == nil || err != nil {
		return Waiting{}, err
	}
	defer b.close()
	k, err := store.Get(ctx, r, func(v *store.View) (known, error) { return load(v, p.Agent, b.key) })
	if err != nil {
		return Waiting{}, err
	}
	files, whole, err := b.list(k.last)
	if err != nil {
		return Waiting{}, err
	}
	left := int64(mostLooked)
	for i, f := range files {
		if i >= mostFiles || left <= 0 {
			w.AtLeast = true
			break
		}
		file, err := b.taken.OpenFile(b.fileName(f.n), os.O_RDONLY)
		if err == nil {
			err = errors.Join(w.add(ctx, file, k.files[f.n], p.MaxEntry, first, &left), file.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is removed when it was taken in
			return w, err
		}
	}
	w.AtLeast = w.AtLeast || !whole && b.obstacle == nil
	info, err := b.dir.Stat(b.name)
	if b.dangling || err != nil || info.Size() == 0 {
		return w, nil //nolint:nilerr // there is no inbox
	}
	file, err := b.dir.OpenFile(b.name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	return w, errors.Join(w.add(ctx, file, k.inPlace, p.MaxEntry, first, &left), file.Close())
}

// add counts the lines of a file that are not taken in.
func (w *Waiting) add(ctx context.Context, file *os.File, r *record, most int64, first int, left *int64) error {
	if most <= 0 {
		most = queue.MaxLine
	}
	f, is, err := look(file, r)
	if err != nil {
		return err
	}
	in := &lines{from: file, end: f.size, most: max(most, mostKept)}
	if is {
		in.position, in.skipping = r.position, r.skipping
	}
	if f.size-in.position > *left {
		in.end, w.AtLeast = in.position+*left, true
	}
	*left -= in.end - in.position
	for {
		p, err := in.next(ctx)
		switch {
		case errors.Is(err, io.EOF) || err == nil && !p.complete && !p.cut:
			return nil
		case errors.Is(err, errEnough):
			w.AtLeast = true
			return nil
		case err != nil:
			return err
		}
		c := line.Content{Kind: line.Fragment}
		if !p.cut && int64(len(p.raw)) <= most {
			c = line.Decode(p.raw, p.start == 0)
		}
		if c.Kind == line.Blank {
			continue
		}
		w.Lines++
		if len(w.First) < first {
			w.First = append(w.First, c)
		}
	}
}
