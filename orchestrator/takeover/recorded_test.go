package takeover

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recorded are queues that the earlier design's own code has made.
const recorded = "testdata/queues"

// TestRecordedQueuesAreTaken, whether the code that made them is still there or not.
func TestRecordedQueuesAreTaken(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob(recorded + "/*/home")
	if err != nil || len(all) < 10 {
		t.Fatalf("%d, %v", len(all), err)
	}
	one := newRig(t)
	for _, home := range all {
		r := one.another()
		from := filepath.Dir(home)
		r.play(home, r.agent.Home)
		r.play(filepath.Join(from, "state"), r.state)
		r.take()
		var got strings.Builder
		for _, e := range r.all() {
			fmt.Fprintf(&got, "%s %q: %s, lane %d, id %q, attempt %d, repeats %d, iteration %d, check %d, checked %v, via %q, prompt %q, failure %q, cancel %q, unread %v, ended %v %s\n",
				e.Delivery, e.Prompt, e.State, e.Lane, e.ID, e.Attempt, e.Repeats, e.Iteration, e.Check, e.Checked, e.Handover.Via, e.Handover.PromptID, e.Failure, e.Cancel, e.Unread,
				!e.Ended.IsZero(), e.Reason)
		}
		text := got.String()
		for _, e := range r.all() {
			if e.State == "later" { // its delivery id is of this store
				text = strings.ReplaceAll(text, e.Delivery, "later")
			}
		}
		golden := filepath.Join(from, "rows.txt")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || text != string(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", from, err, text, want)
		}
	}
}

var inode = regexp.MustCompile(`"ino":[0-9]+`)

// play makes a folder that was recorded: the inbox has another inode.
func (r *rig) play(from, to string) {
	r.Helper()
	if _, err := os.Lstat(from); err != nil {
		return
	}
	inodes := map[bool]string{}
	for _, urgent := range []bool{true, false, true} { // the last time is for what names them
		err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			names := strings.NewReplacer("INBOX", hashOf(r.agent.Inbox, 8), "asides/"+key+"/", "asides/"+r.key+"/", "proofs/"+key+".", "proofs/"+r.key+".")
			at := filepath.Join(to, names.Replace(rel))
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if lines := map[bool]string{true: "urgent.jsonl", false: "inbox.jsonl"}[urgent]; rel == lines && inodes[urgent] == "" {
				if err := os.WriteFile(at, data, 0o600); err != nil {
					return err
				}
				info, err := os.Lstat(at)
				inodes[urgent] = fmt.Sprintf(`"ino":%d`, inodeOf(info))
				return err
			}
			if rel == "urgent.jsonl" || rel == "inbox.jsonl" {
				return nil
			}
			data = bytes.ReplaceAll(data, []byte("@DIR@"), []byte(r.agent.Dir))
			data = inode.ReplaceAll(data, []byte(inodes[strings.HasPrefix(rel, ".urgent")]))
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				return err
			}
			return os.WriteFile(at, data, 0o600)
		})
		if err != nil {
			r.Fatal(err)
		}
	}
}
