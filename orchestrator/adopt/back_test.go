package adopt

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store/storetest"
)

// Files as the sources of 8e3db45 declare them; what they embed stands here in full.
type (
	oldOrders []struct {
		Key    string    `json:"key"`
		At     time.Time `json:"at"`
		Done   bool      `json:"done"`
		Failed bool      `json:"failed"`
		Answer string    `json:"answer"`
	}
	oldToken struct {
		ID    string    `json:"id"`
		Name  string    `json:"name"`
		Role  string    `json:"role"`
		Made  time.Time `json:"made"`
		Used  time.Time `json:"used"`
		Until time.Time `json:"until"`
		Hash  string    `json:"sha256"`
	}
	oldTokens struct {
		Links  []oldToken `json:"links"`
		Tokens []oldToken `json:"tokens"`
		// What versions since then have kept, too, and 8e3db45 passes over.
		Host     string     `json:"host"`
		Commands []oldToken `json:"commands"`
	}
	oldEvent struct {
		At      time.Time `json:"at"`
		Agent   string    `json:"agent"`
		Kind    string    `json:"kind"`
		Trigger string    `json:"trigger"`
		Crc     string    `json:"crc"`
	}
	oldIdentities struct {
		Agents []struct {
			Name     string    `json:"name"`
			Dir      string    `json:"dir"`
			Key      string    `json:"key"`
			Triggers string    `json:"triggers"`
			Gone     time.Time `json:"gone"`
		}
	}
	oldPauses struct {
		Since map[string]time.Time `json:"since"`
		Until map[string]time.Time `json:"until"`
		By    map[string]string    `json:"by"`
	}
	oldHold struct {
		Since      time.Time `json:"since"`
		Why        string    `json:"why"`
		Fix        string    `json:"fix"`
		Answers    string    `json:"answers"`
		Definition string    `json:"definition"`
	}
	oldStopHooks struct {
		Hooks map[string]struct {
			Command string    `json:"command"`
			Agents  []string  `json:"agents"`
			Since   time.Time `json:"since"`
		} `json:"hooks"`
	}
	oldMemory struct {
		Triggers []struct {
			Kind    string        `json:"kind"`
			Name    string        `json:"name"`
			Named   bool          `json:"named"`
			Core    string        `json:"core"`
			Sieve   string        `json:"sieve"`
			Prompt  string        `json:"prompt"`
			Key     string        `json:"key"`
			Gone    time.Time     `json:"gone"`
			Fired   time.Time     `json:"fired"`
			Delay   time.Duration `json:"delay"`
			Was     time.Duration `json:"was"`
			Changed time.Time     `json:"changed"`
			Seen    map[string]struct {
				Size    int64  `json:"size"`
				ModTime int64  `json:"mtime"`
				Changed int64  `json:"ctime"`
				Sum     string `json:"sha256"`
			} `json:"seen"`
			Kept   []string    `json:"kept"`
			Polled time.Time   `json:"polled"`
			Recent []time.Time `json:"recent"`
			// Passed over.
			Refused []memory.Refused `json:"refused"`
			Paused  memory.Paused    `json:"paused"`
		} `json:"triggers"`
		Used map[string]int `json:"used"`
	}
	oldConversation struct {
		ID       string   `json:"id"`
		Dir      string   `json:"dir"`
		Sessions []string `json:"sessions"`
	}
	oldNotice struct {
		Key    string    `json:"key"`
		Event  string    `json:"event"`
		Kind   string    `json:"kind"`
		Agent  string    `json:"agent"`
		Urgent bool      `json:"urgent"`
		At     time.Time `json:"at"`
		Since  time.Time `json:"since"`
		Over   time.Time `json:"over"`
		Text   string    `json:"text"`
		Do     string    `json:"do"`
		Link   string    `json:"link"`
		Times  int       `json:"times"`
		Entry  string    `json:"entry"`
		Reply  string    `json:"reply"`
		To     string    `json:"to"`
		Not    string    `json:"not"`
		Of     []string  `json:"of"`
		Due    time.Time `json:"due"` // of one that waits
	}
	oldNotices struct {
		Told map[string]struct {
			Key, Agent, Kind, Text, Do, Link, To, Not, Of string
			Urgent, Slow, Once, Quiet, Over, Happens      bool
			Since, First, At, Gone                        time.Time
			Reminders, Returns, Missed                    int
			Pending, PendingOf                            []string
		} `json:"told"`
		Boxes map[string]struct {
			Waiting []oldNotice `json:"waiting"`
			Sending *struct {
				Key      string      `json:"key"`
				Made     time.Time   `json:"made"`
				Notices  []oldNotice `json:"notices"`
				Attempts int         `json:"attempts"`
			} `json:"sending"`
			Next    time.Time `json:"next"`
			Failing time.Time `json:"failing"`
			Why     string    `json:"why"`
			Arrived time.Time `json:"arrived"`
			Dropped int       `json:"dropped"`
			Unnamed bool      `json:"unnamed"`
		} `json:"boxes"`
		Marks map[string]struct {
			Dead    time.Time `json:"dead"`
			Reply   time.Time `json:"reply"`
			ReplyID string    `json:"reply_id"`
		} `json:"marks"`
		Ping *struct {
			Since time.Time `json:"since"`
			Why   string    `json:"why"`
		} `json:"ping"`
		Heads map[string]struct {
			ID    string    `json:"id"`
			Since time.Time `json:"since"`
		} `json:"heads"`
		Replied []string `json:"replied"`
	}
	oldMessage struct {
		At       time.Time   `json:"at"`
		Target   string      `json:"target"`
		Outcome  string      `json:"outcome"`
		Key      string      `json:"key"`
		Attempts int         `json:"attempts"`
		Why      string      `json:"why"`
		Notices  []oldNotice `json:"notices"`
	}
	oldReply struct {
		Agent  string    `json:"agent"`
		ID     string    `json:"id"`
		Target string    `json:"target"`
		At     time.Time `json:"at"`
		Due    time.Time `json:"due"`
		Before bool      `json:"before"`
	}
	oldRequest struct {
		ID         string    `json:"id"`
		Agent      string    `json:"agent"`
		Key        string    `json:"key"`
		At         time.Time `json:"at"`
		Until      time.Time `json:"until"`
		Aside      bool      `json:"aside"`
		Name       string    `json:"name"`
		Category   string    `json:"category"`
		Question   string    `json:"question"`
		Payload    string    `json:"payload"`
		Cut        bool      `json:"cut"`
		Session    string    `json:"session"`
		Entry      string    `json:"entry"`
		Iteration  int       `json:"iteration"`
		About      string    `json:"about"`
		State      string    `json:"state"`
		AnsweredAt time.Time `json:"answered_at"`
		By         string    `json:"by"`
		Note       string    `json:"note"`
		Person     bool      `json:"person"`
		Told       bool      `json:"told"`
		Needless   string    `json:"needless"`
	}
	oldLimit struct {
		Used   float64   `json:"used"`
		Resets time.Time `json:"resets"`
	}
	oldAccounts map[string]struct {
		Until  time.Time `json:"until"`
		Source string    `json:"source"`
		Reason string    `json:"reason"`
		Since  time.Time `json:"since"` // passed over
		Limits struct {
			FiveHour oldLimit `json:"five_hour"`
			SevenDay oldLimit `json:"seven_day"`
		} `json:"limits"`
	}
	oldRecord struct {
		At         time.Time `json:"at"`
		Agent      string    `json:"agent"`
		Session    string    `json:"session"`
		Account    string    `json:"account"`
		Group      string    `json:"group"`
		Delivery   string    `json:"delivery"`
		Entry      string    `json:"entry"`
		Source     string    `json:"source"`
		Attempt    int       `json:"attempt"`
		Turns      int       `json:"turns"`
		Calls      int       `json:"calls"`
		Input      int64     `json:"input"`
		Output     int64     `json:"output"`
		CacheRead  int64     `json:"cache_read"`
		CacheWrite int64     `json:"cache_write"`
		Cost       float64   `json:"cost"`
		Unseen     int       `json:"unseen"`
		Unpriced   int       `json:"unpriced"`
		Guessed    int       `json:"guessed"`
		Kept       struct {
			Began      time.Time `json:"began"`
			Transcript string    `json:"transcript"`
			From       int64     `json:"from"`
			Total      float64   `json:"total"`
			Unknown    bool      `json:"unknown"`
		} `json:"kept"`
	}
)

// shapeOf returns what a file of the way back has to be, and whether each line is one.
func shapeOf(t *testing.T, file string) (shape func() any, lines bool) {
	t.Helper()
	switch folder, _, _ := strings.Cut(file, "/"); folder {
	case "journal.jsonl":
		return func() any { return new(oldEvent) }, true
	case usageFolder:
		return func() any { return new(oldRecord) }, true
	case "notices.jsonl":
		return func() any { return new(oldMessage) }, true
	case "awaited":
		return func() any { return new(oldReply) }, false
	case "approvals":
		return func() any { return new(oldRequest) }, false
	case "notices.json":
		return func() any { return new(oldNotices) }, false
	case "identities.json":
		return func() any { return new(oldIdentities) }, false
	case "paused.json":
		return func() any { return new(oldPauses) }, false
	case "accounts.json":
		return func() any { return new(oldAccounts) }, false
	case "holds":
		return func() any { return new(oldHold) }, false
	case "foreign-stop-hooks.json":
		return func() any { return new(oldStopHooks) }, false
	case "triggers":
		return func() any { return new(oldMemory) }, false
	case "conversations":
		return func() any { return new(oldConversation) }, false
	case "page":
		if strings.HasSuffix(file, "tokens.json") {
			return func() any { return new(oldTokens) }, false
		}
		return func() any { return new(oldOrders) }, false
	}
	t.Errorf("%s: no file of 8e3db45", file)
	return func() any { return new(any) }, false
}

// back is a state directory that has taken over again what the way back has written of the
// lab's store. Each file of it is one of 8e3db45.
func (l *lab) back() *lab {
	l.Helper()
	next := &lab{T: l.T, dir: filepath.Join(l.TempDir(), "files")}
	files, err := WriteFiles(l.Context(), l.store.Reader, next.dir)
	if err != nil {
		l.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(next.dir, file))
		if err != nil {
			l.Fatal(err)
		}
		shape, lines := shapeOf(l.T, file)
		all := [][]byte{data}
		if lines {
			all = bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		}
		for _, one := range all {
			if lines && len(one) == 0 {
				continue // an empty journal
			}
			d := json.NewDecoder(bytes.NewReader(one))
			d.DisallowUnknownFields()
			if err := d.Decode(shape()); err != nil {
				l.Errorf("%s: %v\n%s", file, err, one)
			}
		}
	}
	if _, err := WriteFiles(l.Context(), l.store.Reader, next.dir); err == nil {
		l.Error("a folder that exists was written into")
	}
	ended, end := context.WithCancel(l.Context())
	end()
	half := filepath.Join(l.TempDir(), "half")
	if _, err := WriteFiles(ended, l.store.Reader, half); err == nil {
		l.Error("nothing was read, and it did not fail")
	}
	if _, err := os.Lstat(half); err == nil {
		l.Error("half of the files are left, which may be taken for all")
	}
	next.store = storetest.New(l.T, next.dir)
	next.adopt()
	return next
}
