package takeover

import (
	"encoding/json"
	"time"

	"heartbeat/config"
	"heartbeat/hook/handwired/files"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/queue"
)

// former is a queue in files, as they say.
type former struct {
	lanes []*lane         // the urgent one first
	dead  []files.Dead    // oldest first
	ids   []entries.ID    // that were accepted, oldest first
	begun begun           // what people had begun to do with it
	apart []apart         // what is set aside, by the state directory
	stray []*files.Record // by the agent's file alone
	later []later
	// work is what the last session worked on, by its own record; without a delivery id: nothing.
	work struct {
		Delivery string `json:"delivery_id"`
		Attempt  int
	}
	// ended are the delivery ids in the outbox, last the last of them, awaited the records for
	// which somebody waits.
	ended     map[string]bool
	last      string
	awaited   []files.Delivery
	isAwaited func(files.Delivery) bool
	kept
}

// lane is what a Reader has found in one.
type lane struct {
	urgent bool
	flight *files.Record
	// byRs is true if heartbeat-rs has recorded flight, which then counts as started if flagged.
	byRs, flagged bool
	damaged       bool // there is a record, and it is none: the first entry may be in flight
	again         *files.History
	lost          *files.Dead // what was taken out of it; of gone the text is known, too
	gone          func(func(*files.Entry, *files.Dead) bool) (end int64, err error)
	// queued calls its argument for each line, late for those that came too late; see files.View.
	queued func(func(*files.Entry, *files.Dead) bool) (end int64, err error)
	late   func(func(*files.Entry, *files.Dead) bool) error
	end    int64 // where what is queued has ended
}

// begun is what people had begun to do with queued entries and dead letters, by delivery ids.
type begun struct {
	Drop  []string `json:"drop"`
	Retry []string `json:"retry"`
}

// apart is an entry that was set aside.
type apart struct {
	*files.Record
	conversation string
}

// aside is what its record says of an entry that was set aside.
type aside struct {
	Since    time.Time `json:"since"`
	Answered time.Time `json:"answered"` // since when it is to be handed over again; zero: it waits
}

func asideOf(f *files.Record) (a aside, is bool) {
	return a, len(f.Aside) > 0 && json.Unmarshal(f.Aside, &a) == nil
}

// claim is what a session said when its turn was over.
type claim struct {
	Session   string    `json:"session"`
	Reply     string    `json:"reply"`
	Abandoned []string  `json:"abandoned"`
	Since     time.Time `json:"since"`
}

func claimOf(f *files.Record) *claim {
	var c claim
	if len(f.Claim) == 0 || json.Unmarshal(f.Claim, &c) != nil {
		return nil
	}
	return &c
}

// later is a prompt whose time had not come.
type later struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Text   string    `json:"prompt"`
	Urgent bool      `json:"urgent"`
}

// kept is what the state directory knows of a queue: it is out of the agent's reach.
type kept struct {
	demands map[string]demand // :: id
	texts   map[string]string // :: id → what was queued with it
	book    book
}

// demand is what an entry has to pass.
type demand struct {
	ID, Inbox, Text, Trigger, Passed string
	Until                            *config.Until
	Nothing, Queued                  bool
	GivenUp                          bool `json:"given_up"`
	At, Due                          time.Time
}

// book is what was decided about an agent's entries.
type book struct {
	Courses []course
	Proven  []struct{ Delivery, ID string }
	Until   bool // the agent's own until: was declared
}

// course is what is known of the checks of one entry.
type course struct {
	Delivery string
	Entry    string // the hash of the line that was handed over; "": it was not seen yet
	From     string
	Past     guard.Past
	Asks     int
	Files    string
	Answered *answered
	Vain     *struct {
		Since   time.Time
		Times   int
		As, Why string
	}
	Verdict *verdict
}

const fromEntry = "entry" // course.From: what it has to pass is a demand

// answered is a check that has passed, and waits for people. Its form is that of which requests
// hold a hash.
type answered struct {
	Check      int           `json:"check"`
	Claimed    time.Time     `json:"claimed,omitzero"`
	Definition string        `json:"definition"`
	Output     string        `json:"output,omitempty"`
	Took       time.Duration `json:"took"`
	At         time.Time     `json:"at"`
}

// verdict is the last one about an entry.
type verdict struct {
	Delivery, Entry  string
	Check, Iteration int
	Claimed          time.Time
	Definition       string
	Passed, Applied  bool
	GiveUp           queue.Reason `json:"give_up"`
	By, Why, Output  string
	Took             time.Duration
	At               time.Time
	Answers          string
}

func (b *book) of(delivery string) *course {
	for i := range b.Courses {
		if b.Courses[i].Delivery == delivery {
			return &b.Courses[i]
		}
	}
	return nil
}

// isProven reports whether an entry has passed.
func (b *book) isProven(delivery string) bool {
	for _, p := range b.Proven {
		if p.Delivery == delivery {
			return true
		}
	}
	c := b.of(delivery)
	return c != nil && c.Verdict != nil && c.Verdict.Passed
}
