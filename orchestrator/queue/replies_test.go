package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
)

// TestFollowingRepliesSaysOnceThatTheyCannotBeRead, and goes on when they can: it took what
// stood in the outbox's place for an outbox without replies.
func TestFollowingRepliesSaysOnceThatTheyCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) },
		"FIFO":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":   func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			outbox := filepath.Join(a.Home, "outbox.jsonl")
			if err := put(outbox); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				begin := time.Now()
				time.AfterFunc(time.Minute, func() {
					record := fmt.Sprintf(`{"delivery_id":"d","id":"x","acknowledged_at":%q,"reply":"done"}`+"\n", begin.Add(time.Second).Format(time.RFC3339))
					if err := errors.Join(os.RemoveAll(outbox), os.WriteFile(outbox, []byte(record), 0o600)); err != nil {
						t.Error(err)
					}
				})
				var unread, replies int
				FollowReplies(ctx, []*config.Agent{a}, begin, nil, func(r Reply, err error) bool {
					if err != nil {
						if unread++; r.Agent != a.Name || !strings.Contains(err.Error(), "cannot read the replies") {
							t.Errorf("%+v %v", r, err)
						}
						return true
					}
					replies++
					return false
				})
				if unread != 1 || replies != 1 {
					t.Errorf("%d errors and %d replies, want one of each", unread, replies)
				}
			})
		})
	}
}
