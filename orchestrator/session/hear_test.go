package session

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
)

// says is a queue.
type says struct {
	f      *inbox.InFlight
	broken bool
	passed int
	// unread is true while what was passed cannot be read, owed what was asked then.
	unread bool
	owed   int
}

func (q *says) flight() (*inbox.InFlight, bool) { return q.f, !q.broken }

func (q *says) pass(n int) (int, bool) {
	if q.owed += n; q.unread {
		return 0, false
	}
	n = min(q.owed, q.passed)
	q.passed -= n
	q.owed = 0
	return n, true
}

// shims are the fields of the session record that the shim knows by itself. All
// others are for hooks to tell, and all are walked below: a new field is, too.
var shims = []string{
	"Version", "Agent", "Session", "Conversation", "Runtime", "TokenHash", "Inbox", "Policy", "Shim", "StartedAt",
	"Yield", "TypedAt", "Attached", "ExitCode", "EndedAt", "Clock",
}

func ownRecord() *hook.Record {
	now := time.Now()
	return &hook.Record{
		Version: 1,
		Terms: hook.Terms{
			Agent: "a", Session: "S", Conversation: "S", Inbox: "/q", Policy: hook.Policy{Mode: hook.Drain, MaxContinuations: 20},
		},
		TokenHash: "T",
		StartedAt: now,
		Bound:     hook.Bound{Client: hook.Process{PID: 7, Start: 7}, BoundAt: now},
		Phase:     hook.Turn,
		Since:     now,
		Progress: hook.Progress{
			Events: 5, HandOvers: 3, Continuations: 2, Acknowledged: 1, Work: &hook.Work{DeliveryID: "d", Attempt: 1, Since: now},
		},
		People: hook.People{TypedAt: now, Attached: 1},
	}
}

// hostile are values for a field of a kind.
func hostile(t reflect.Type) []reflect.Value {
	var all []reflect.Value
	add := func(v any) { all = append(all, reflect.ValueOf(v).Convert(t)) }
	switch t.Kind() {
	case reflect.String:
		for _, s := range []string{"", "/etc/passwd", "ended", "timeout", "drained", "unattended", strings.Repeat("x", 1<<19), "\x1b]52;c;x\a\n"} {
			add(s)
		}
	case reflect.Int, reflect.Int64:
		for _, n := range []int64{0, -1, 1 << 30, 1<<63 - 1, -1 << 63} {
			add(n)
		}
	case reflect.Uint64:
		add(uint64(1<<64 - 1))
	case reflect.Bool:
		add(true)
		add(false)
	case reflect.Slice:
		many := reflect.MakeSlice(t, 5000, 5000)
		many.Index(0).Set(hostile(t.Elem())[6])
		all = append(all, reflect.Zero(t), many)
	case reflect.Pointer:
		all = append(all, reflect.Zero(t))
		for _, v := range hostile(t.Elem()) {
			p := reflect.New(t.Elem())
			p.Elem().Set(v)
			all = append(all, p)
		}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			add(time.Time{})
			add(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
			add(time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC))
			break
		}
		all = append(all, reflect.Zero(t))
		for i := range t.NumField() {
			for _, v := range hostile(t.Field(i).Type) {
				s := reflect.New(t).Elem()
				s.Field(i).Set(v)
				all = append(all, s)
			}
		}
	}
	return all
}

// recordFields are those of the session record, of its parts, too.
func recordFields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[hook.Record]()), func(f reflect.StructField) bool { return f.Anonymous })
}

// TestNothingOfTheShimsIsTakenFromTheRecord walks all fields of the session
// record and what they can be set to.
func TestNothingOfTheShimsIsTakenFromTheRecord(t *testing.T) {
	t.Parallel()
	for _, f := range recordFields() {
		heard := false
		values := hostile(f.Type)
		if len(values) == 0 {
			t.Errorf("%s: no hostile value of its type is known", f.Name)
		}
		for _, v := range values {
			own := ownRecord()
			before := *own
			told := hook.Shown(*own)
			reflect.ValueOf(&told).Elem().FieldByIndex(f.Index).Set(v)
			forged := told
			r, wrong := hear(own, &told, &says{f: &inbox.InFlight{DeliveryID: "d", Tries: inbox.Tries{Attempt: 1}, Offering: inbox.Offering{Session: "S"}}})
			if !reflect.DeepEqual(*own, before) {
				t.Fatalf("%s: hear changed what was known", f.Name)
			}
			got := reflect.ValueOf(*r).FieldByIndex(f.Index).Interface()
			was := reflect.ValueOf(before).FieldByIndex(f.Index).Interface()
			if slices.Contains(shims, f.Name) {
				if !reflect.DeepEqual(got, was) {
					t.Errorf("%s: %.80v was believed", f.Name, v)
				}
			} else if !reflect.DeepEqual(got, was) {
				heard = true
			}
			// What hooks would act on, and is not so, is put right.
			if acts := f.Name != "Clock" && f.Name != "StartedAt" && f.Name != "Version" && f.Name != "ExitCode" && f.Name != "EndedAt"; acts &&
				slices.Contains(shims, f.Name) && !reflect.DeepEqual(reflect.ValueOf(forged).FieldByIndex(f.Index).Interface(), was) && !wrong {
				t.Errorf("%s: %.80v stays in the file", f.Name, v)
			}
			checkBelieved(t, f.Name, r, &before)
		}
		switch f.Name {
		case "Client", "BoundAt", "Acknowledged", "Work": // bound, and the queue does not say so
			if heard {
				t.Errorf("%s was believed", f.Name)
			}
		default:
			if !slices.Contains(shims, f.Name) && !heard {
				t.Errorf("%s: what hooks say of it is not heard", f.Name)
			}
		}
	}
}

// checkBelieved checks what holds whatever stands in the file.
func checkBelieved(t *testing.T, field string, r, before *hook.Record) {
	t.Helper()
	switch {
	case r.Events < before.Events, r.HandOvers < before.HandOvers, r.Continuations < before.Continuations, r.Acknowledged != before.Acknowledged:
		t.Errorf("%s: counted back: %+v", field, r)
	case !slices.Contains(hooksPhases, r.Phase) || r.Phase == hook.Starting:
		t.Errorf("%s: phase %q", field, r.Phase)
	case len(r.BackgroundTasks) > maxTasks, r.LastReply != hook.KeepReply(r.LastReply):
		t.Errorf("%s: unbounded", field)
	case r.Ruling != nil && (r.Ruling.Final || !r.Ruling.Why.FromHooks() || len(r.Ruling.Detail) > maxDetail ||
		r.Ruling.Why == hook.EndAPIFailure && !isWord(r.Ruling.Detail)):
		t.Errorf("%s: ruling %+v", field, r.Ruling)
	}
}

// TestWhatStandsIsNotTakenBack: rulings of the shim, and weighty ones of hooks.
func TestWhatStandsIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for _, own := range []*hook.Ruling{
		{Why: hook.EndTimeout},
		{Why: hook.EndFinished},
		{Why: hook.EndShutdown},
		{Why: hook.EndRunaway},
		{Why: hook.EndAPIFailure, Detail: "rate_limit"},
		{Why: hook.EndDrained, Final: true},
	} {
		for _, told := range []*hook.Ruling{nil, {Why: hook.EndDrained}, {Why: hook.EndAPIFailure, Detail: "overloaded"}, {Why: hook.EndShutdown, Final: true}} {
			if got := heardRuling(own, told); got != own {
				t.Errorf("%+v became %+v by %+v", own, got, told)
			}
		}
	}
	light := &hook.Ruling{Why: hook.EndDrained}
	if heardRuling(light, nil) != nil {
		t.Error("a turn that begins does not take a light ruling back")
	}
	for _, e := range []hook.End{hook.EndShutdown, hook.EndFinished, hook.EndLost, hook.EndTimeout, "", "x"} {
		if r := heardRuling(nil, &hook.Ruling{Why: e}); r != nil {
			t.Errorf("hooks rule %q", e)
		}
	}
}

// TestTheQueueSaysWhatIsDone: hooks say it first, the queue confirms it.
func TestTheQueueSaysWhatIsDone(t *testing.T) {
	t.Parallel()
	own := ownRecord()
	told := hook.Shown(*own)
	told.Acknowledged, told.Continuations, told.Work = 3, 0, &hook.Work{DeliveryID: "e", Attempt: 1}
	for _, tt := range []struct {
		queue says
		done  int
		work  string
	}{
		{says{f: &inbox.InFlight{DeliveryID: "d", Tries: inbox.Tries{Attempt: 1}}}, 1, "d"},
		{says{f: &inbox.InFlight{DeliveryID: "e", Tries: inbox.Tries{Attempt: 1}}, passed: 2}, 3, "e"},
		{says{f: &inbox.InFlight{DeliveryID: "f", Tries: inbox.Tries{Attempt: 2}}, passed: 1}, 2, "f"},
		{says{broken: true, passed: 9}, 3, "d"},
		{says{}, 1, ""},
	} {
		r, _ := hear(own, &told, &tt.queue)
		work := ""
		if r.Work != nil {
			work = r.Work.DeliveryID
		}
		if r.Acknowledged != tt.done || work != tt.work {
			t.Errorf("%+v: %d done, work %q", tt.queue, r.Acknowledged, work)
		}
	}
}

// TestAVerdictBeginsTheCountAnew of the turns without an acknowledgement, if the queue
// confirms it; and each iteration has a turn's time.
func TestAVerdictBeginsTheCountAnew(t *testing.T) {
	t.Parallel()
	own := ownRecord()
	own.Continuations, own.Work.Iteration = 9, 2
	for name, tt := range map[string]struct {
		work  *hook.Work
		queue says
		want  int
	}{
		"the next iteration":       {&hook.Work{DeliveryID: "d", Attempt: 1, Iteration: 3}, says{f: &inbox.InFlight{DeliveryID: "d", Tries: inbox.Tries{Attempt: 1}, Proving: inbox.Proving{Iteration: 3}}}, 1},
		"given up":                 {nil, says{}, 1},
		"the next one, after that": {&hook.Work{DeliveryID: "e", Attempt: 1}, says{f: &inbox.InFlight{DeliveryID: "e", Tries: inbox.Tries{Attempt: 1}}}, 1},
		"made up":                  {&hook.Work{DeliveryID: "d", Attempt: 1, Iteration: 3}, says{f: &inbox.InFlight{DeliveryID: "d", Tries: inbox.Tries{Attempt: 1}, Proving: inbox.Proving{Iteration: 2}}}, 9},
		"another attempt":          {&hook.Work{DeliveryID: "d", Attempt: 2, Iteration: 2}, says{f: &inbox.InFlight{DeliveryID: "d", Tries: inbox.Tries{Attempt: 2}, Proving: inbox.Proving{Iteration: 2}}}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := hook.Shown(*own)
			told.Work, told.Continuations = tt.work, 1
			if r, _ := hear(own, &told, &tt.queue); r.Continuations != tt.want {
				t.Errorf("%d, want %d", r.Continuations, tt.want)
			}
		})
	}
	var s sight
	now := time.Now()
	s.seeWork(&hook.Work{DeliveryID: "d", Attempt: 1, Iteration: 1}, 0, now)
	s.seeWork(&hook.Work{DeliveryID: "d", Attempt: 1, Iteration: 2}, 0, now.Add(time.Hour))
	if s.entry.handedOver != now.Add(time.Hour) {
		t.Errorf("the second iteration began at %s", s.entry.handedOver)
	}
	s.seeWork(nil, 0, now.Add(2*time.Hour))
	s.seeWork(&hook.Work{DeliveryID: "d", Attempt: 1, Iteration: 1}, 0, now.Add(2*time.Hour))
	if s.entry.handedOver != now.Add(time.Hour) {
		t.Errorf("an iteration that comes and goes has more time: %s", s.entry.handedOver)
	}
}

// TestNoRecordKeepsASession: whoever writes anything at all into the session
// record, as often as they like, does not keep the session over its limits.
func TestNoRecordKeepsASession(t *testing.T) {
	t.Parallel()
	const limit = time.Hour
	l := limits{entry: limit, session: 8 * limit, start: limit / 60, idle: limit / 60, background: limit / 6}
	fields := recordFields()
	values := make([][]reflect.Value, len(fields))
	for i, f := range fields {
		values[i] = hostile(f.Type)
	}
	phases := append(slices.Clone(hooksPhases), hook.Ended, "x")
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 0))
		begin := time.Now()
		known := &hook.Record{TokenHash: "T", Terms: hook.Terms{Session: "S"}, Phase: hook.Starting}
		queue := &says{}
		if seed%2 == 0 {
			queue.f = &inbox.InFlight{DeliveryID: "d", Tries: inbox.Tries{Attempt: 1}, Offering: inbox.Offering{Session: "S"}}
		}
		var seen sight
		ended := false
		for now := begin; now.Sub(begin) < limit+2*time.Minute && !ended; now = now.Add(time.Second) {
			told := hook.Shown(*known)
			for range 1 + chance.IntN(3) {
				i := chance.IntN(len(fields))
				reflect.ValueOf(&told).Elem().FieldByIndex(fields[i].Index).Set(values[i][chance.IntN(len(values[i]))])
			}
			told.TokenHash = "T"
			told.Phase = phases[chance.IntN(len(phases))]
			told.Events, told.Acknowledged = known.Events+1, known.Acknowledged+1
			told.Work = &hook.Work{DeliveryID: string(rune('a' + chance.IntN(26))), Attempt: chance.IntN(3)}
			if seed%3 == 0 {
				told.Ruling = nil
			}
			known, _ = hear(known, &told, queue)
			seen.see(known, 0, false, now) // the terminal is not quiet
			v := judge(facts{now: now, seen: seen, ruling: known.Ruling}, l)
			ended = v.end != ""
		}
		if !ended {
			t.Errorf("seed %d: the session goes on after %v: %+v", seed, limit, seen)
		}
	}
}

// TestWhatIsDoneIsCountedOnceTheQueueCanBeRead: an entry that a hook acknowledged
// while the shim could not read the queue was written back as not done, and no look
// after that counted it.
func TestWhatIsDoneIsCountedOnceTheQueueCanBeRead(t *testing.T) {
	t.Parallel()
	q, own := &says{unread: true, passed: 1}, ownRecord()
	told := hook.Shown(*own)
	told.Acknowledged++
	now, wrong := hear(own, &told, q)
	if now.Acknowledged != own.Acknowledged || !wrong {
		t.Fatalf("%d are done, to be looked at again: %v", now.Acknowledged, wrong)
	}
	for range 3 { // it is put right meanwhile
		told = hook.Shown(*now)
		if now, wrong = hear(now, &told, q); now.Acknowledged != own.Acknowledged || !wrong {
			t.Fatalf("%d are done, to be looked at again: %v", now.Acknowledged, wrong)
		}
	}
	q.unread = false
	told = hook.Shown(*now)
	if now, wrong = hear(now, &told, q); now.Acknowledged != own.Acknowledged+1 || !wrong {
		t.Errorf("%d are done, to be written: %v", now.Acknowledged, wrong)
	}
	told = hook.Shown(*now)
	if now, wrong = hear(now, &told, q); now.Acknowledged != own.Acknowledged+1 || wrong {
		t.Errorf("%d are done, to be looked at again: %v", now.Acknowledged, wrong)
	}
}
