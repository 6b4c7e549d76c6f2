// Package inpath finds the file that a command's name means in a PATH, as os/exec does it
// for our own environment: relative elements of a PATH mean nothing.
package inpath

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Folders are the folders of a PATH, in its order.
func Folders(search string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, dir := range filepath.SplitList(search) {
			if filepath.IsAbs(dir) && !yield(dir) {
				return
			}
		}
	}
}

// Files are the files that a word without a slash can mean by a PATH, whether they
// are there or not; the first that is a program is meant.
func Files(search, word string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := range Folders(search) {
			if !yield(filepath.Join(dir, word)) {
				return
			}
		}
	}
}

// Runs reports whether what a stat has found is a file that can be run.
func Runs(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// Find returns the program that a word without a slash means by a PATH. The error is
// exec.ErrNotFound, or says which file may not be run.
func Find(search, word string) (string, error) {
	denied := exec.ErrNotFound
	for file := range Files(search, word) {
		switch info, err := os.Stat(file); {
		case err == nil && Runs(info):
			return file, nil
		case err == nil && info.Mode().IsRegular():
			denied = &fs.PathError{Op: "run", Path: file, Err: fs.ErrPermission}
		case errors.Is(err, fs.ErrPermission):
			denied = err
		}
	}
	return "", denied
}

// Of is the PATH of an environment: the last one counts.
func Of(env []string) (search string) {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	return search
}
