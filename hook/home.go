package hook

import (
	"path/filepath"

	"heartbeat/hook/durable"
)

// openHome opens an agent's folder .heartbeat, which the agent may have replaced
// by anything.
func openHome(home string) (*durable.Folder, error) {
	return durable.OpenBelow(filepath.Dir(home), home)
}

// inHome does something with a folder .heartbeat.
func inHome(home string, do func(f *durable.Folder) error) (err error) {
	f, err := openHome(home)
	if err != nil {
		return err
	}
	defer f.Close() // nothing in it waits to be written
	return do(f)
}
