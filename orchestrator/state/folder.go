package state

import (
	"fmt"
	"os"
	"path/filepath"

	"heartbeat/hook/durable"
)

// Folder is an open folder of files as Put writes them, for a caller that reads and writes
// many: opening it takes longer than that.
type Folder struct{ in *durable.Folder }

// Open opens a folder, and creates it.
func Open(path string) (*Folder, error) {
	err := os.MkdirAll(path, 0o700)
	var in *durable.Folder
	if err == nil {
		in, err = durable.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot save into %q: %w", path, err)
	}
	return &Folder{in}, nil
}

// Put is Put for a file of the folder.
func (f *Folder) Put(name string, v any) error {
	return save(filepath.Join(f.in.Path(), name), v, func(_ string, data []byte) error { return f.in.Put(name, data) })
}

// Load is Load for a file of the folder.
func (f *Folder) Load(name string, v any) error {
	return load(filepath.Join(f.in.Path(), name), v, func(_ string, most int64) ([]byte, error) { return f.in.Read(name, most) })
}

// Link gives a file of the folder one more name in it; one that is taken is an error. Each
// name is removed, or gets another file, by itself.
func (f *Folder) Link(name, to string) error { return f.in.Link(name, to) }

// Close closes it. A nil Folder was never opened.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	return f.in.Close()
}
