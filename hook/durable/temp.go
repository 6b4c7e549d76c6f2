package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"
)

const tempMark = ".tmp-"

// tempName returns a unique name that begins with a dot.
func tempName(name string) string {
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails (crypto/rand)
	return "." + strings.TrimPrefix(name, ".") + tempMark + hex.EncodeToString(unique[:])
}

func isTemp(name string) bool {
	at := strings.LastIndex(name, tempMark)
	if at < 1 || name[0] != '.' {
		return false
	}
	unique, err := hex.DecodeString(name[at+len(tempMark):])
	return err == nil && len(unique) == 8
}

// sweepLimit bounds how many names one Sweep looks at.
const sweepLimit = 10_000

// Sweep removes temporary files that a killed process left behind, when they
// are older than age. It looks at a bounded number of names.
func (f *Folder) Sweep(age time.Duration) error {
	dir, err := f.root.Open(".")
	if err != nil {
		return f.fail("list", ".", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(sweepLimit)
	if err != nil && !errors.Is(err, io.EOF) {
		return f.fail("list", ".", err)
	}
	for _, e := range entries {
		if !isTemp(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < age {
			continue
		}
		if err := f.Remove(e.Name()); err != nil {
			return err
		}
	}
	return nil
}
