package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/durable"
)

// operations repeats what a steady-state tick does to the disk (hook/inbox's
// package comment), and nothing else.
type operations struct {
	folder *durable.Folder
	inbox  *os.File
}

func newOperations(dir string) (*operations, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	folder, err := durable.Open(dir)
	if err != nil {
		return nil, err
	}
	inbox, err := os.OpenFile(filepath.Join(dir, "inbox.jsonl"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	return &operations{folder, inbox}, err
}

func (o *operations) close() { _ = errors.Join(o.inbox.Close(), o.folder.Close()) }

func (o *operations) run(s *series, i int) error {
	if _, err := o.inbox.WriteString(entry(i)); err != nil {
		return err
	}
	if err := o.inbox.Sync(); err != nil { // the writer's part
		return err
	}
	record := []byte(strings.Repeat("r", 500) + "\n")
	begin := time.Now()
	err := errors.Join(
		// Acknowledge: reply, sidecar, cursor, record.
		o.folder.Append("outbox.jsonl", record[200:]),
		o.folder.Put(".inbox-meta", record[100:]),
		o.folder.Swap(".inbox-offset", strconv.AppendInt(nil, int64(i)*188, 10)),
		o.folder.Remove(".in-flight"), o.folder.Remove(".responded"),
		// Offer: the inbox, the record, its name.
		o.folder.SyncData(o.inbox, "inbox.jsonl"),
		o.folder.Swap(".in-flight", record),
		o.folder.Touch(".responded"),
		o.folder.Sync(),
	)
	if s != nil {
		s.add(time.Since(begin))
	}
	return err
}
