//go:build !linux

package durable

import "os"

func fdatasync(file *os.File) error { return file.Sync() }
