package status

import (
	"testing"
	"time"
)

// TestOldQueue: what is left is told as the fleet's trouble, with what to type for each way
// that an agent leaves its queue.
func TestOldQueue(t *testing.T) {
	t.Parallel()
	at := func(dir, inbox string, shared bool) OldQueue {
		return OldQueue{Agent: "a", Dir: dir, Home: dir + "/.heartbeat", Inbox: inbox, Shared: shared, Prompts: 2}
	}
	for _, tt := range []struct {
		q        OldQueue
		text, do string
	}{
		{
			at("/w/a", "/w/a/.heartbeat/inbox.jsonl", false), "agent a has left 2 prompts in /w/a/.heartbeat/inbox.jsonl, which no agent of the file has now",
			"declare an agent with dir: /w/a again, or delete its queue: rm -rf -- /w/a/.heartbeat",
		},
		{
			at("/w/a", "/q/it's.jsonl", false), "agent a has left 2 prompts in /q/it's.jsonl, which no agent of the file has now",
			`declare an agent with dir: /w/a and inbox: /q/it's.jsonl again, or delete its queue: rm -rf -- /w/a/.heartbeat '/q/it'\''s.jsonl' '/q/.it'\''s.jsonl'.*`,
		},
		{
			at("/w/a", "/w/a/.heartbeat/inbox.jsonl", true), "agent a has left 2 prompts in /w/a/.heartbeat/inbox.jsonl, which no agent of the file has now",
			"write inbox: /w/a/.heartbeat/inbox.jsonl again until it is empty, or delete its queue: rm -f -- /w/a/.heartbeat/inbox.jsonl /w/a/.heartbeat/.inbox.jsonl.*",
		},
		{
			OldQueue{Agent: "a", Inbox: "/x", Problem: "it is a folder"}, "agent a had the queue /x, which cannot be read: it is a folder", "correct that, or delete it",
		},
		{OldQueue{Problem: "no"}, "no", "heartbeat apply begins a new record, without the queues that agents had before"},
	} {
		all := Fleet{OldQueues: []OldQueue{tt.q}}.Troubles("heartbeat", time.Now())
		if len(all) != 1 || all[0].What != OldQueues || all[0].Agent != "" || all[0].Text != tt.text || all[0].Do != tt.do || tt.q.Empty() {
			t.Errorf("%+v", all)
		}
	}
	if !(OldQueue{Inbox: "/x"}).Empty() {
		t.Error("an empty queue is told")
	}
}
