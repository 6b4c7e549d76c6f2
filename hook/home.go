package hook

import (
	"path/filepath"

	"heartbeat/hook/durable"
)

// openHome opens an agent's .heartbeat folder. The agent may have replaced it with
// anything.
func openHome(home string) (*durable.Folder, error) {
	return durable.OpenBelow(filepath.Dir(home), home)
}

// inHome runs do on an opened .heartbeat folder.
func inHome(home string, do func(f *durable.Folder) error) (err error) {
	f, err := openHome(home)
	if err != nil {
		return err
	}
	defer f.Close() // nothing in it waits to be written
	return do(f)
}
