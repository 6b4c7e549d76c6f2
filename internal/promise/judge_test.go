package promise

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// at is a second of a made-up run.
func at(second float64) time.Time {
	return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))
}

// sent are the facts of a prompt of agent a that sender s sent and knows to be
// accepted.
func sent(name string, second float64) Record {
	f := Fact{At: at(second), Kind: Meant, Agent: "a", Prompt: name, Sender: "s", Text: Text(name + " hello"), Replies: []string{Text("done: " + name)}}
	done := f
	done.Kind = Accepted
	return Record{f, done}
}

func given(name string, second float64, attempt int) Fact {
	return Fact{At: at(second), Kind: Given, Agent: "a", Session: "s1", Prompt: name, Text: Text(name + " hello"), Attempt: attempt}
}

func killed(agent string, second float64) Fact {
	return Fact{At: at(second), Kind: Interrupted, Agent: agent, What: "kill -9"}
}

func filed(name, delivery string, why Reason) Fact {
	return Fact{At: at(90), Kind: Filed, Agent: "a", Prompt: name, Delivery: delivery, Reason: why}
}

func replied(name, delivery, reply string) Fact {
	return Fact{At: at(91), Kind: Replied, Agent: "a", Prompt: name, Delivery: delivery, Text: Text(reply)}
}

func with(f Fact, change func(f *Fact)) Fact {
	change(&f)
	return f
}

func policy(p Policy) Fact { return Fact{Kind: Declared, Agent: "a", Policy: p} }

// TestTheJudge provokes each finding, and shows beside it what may be.
func TestTheJudge(t *testing.T) {
	t.Parallel()
	retry, deadletter, drop := policy(Retry), policy(DeadLetter), policy(Drop)
	tool := Fact{At: at(15), Kind: ToolRan, Session: "s1"}
	person := Fact{At: at(12), Kind: Requeued, Agent: "a", What: "dead-letter retry"}
	tests := []struct {
		name  string
		agent Fact
		facts Record // after p1 was sent at 1 and p2 at 2
		want  string // the findings, but for p2's being lost; "" is nothing
	}{
		{"all well", retry, Record{given("p1", 10, 1), given("p2", 11, 1), replied("p1", "d1", "done: p1"), replied("p2", "d2", "done: p2")}, ""},
		{"lost", retry, nil, "lost: p1 was accepted at 00:00:01.000 and never given (lines 3)"},
		{"acknowledged, and never given", retry, Record{replied("p1", "d1", "")}, "lost: p1 was accepted at 00:00:01.000 and never given (lines 3 6)"},
		{"a reply, and never given", retry, Record{replied("p1", "d1", "done: p1")}, "lost: p1; reply: a has a reply to p1, which was never given"},
		{"refused", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Refused })}, ""},
		{"refused and given", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Refused }), given("p1", 10, 1)}, "refused and given: p1 (lines 6 7)"},
		{"its sender was killed", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Unknown })}, ""},
		{"still queued", retry, Record{{At: at(99), Kind: Left, Agent: "a", Prompt: "p1", Note: "queued"}}, "waiting: p1 of a is left: queued"},
		{"still in flight", retry, Record{given("p1", 10, 1), {At: at(99), Kind: Left, Agent: "a", Note: "in flight"}}, "waiting: something of a is left: in flight"},

		{"cut", retry, Record{with(given("p1", 10, 1), func(f *Fact) { f.Text = Text("p1 hel") })}, `garbled: p1 was sent as "p1 hello" and given as "p1 hel"`},
		{"sent by nobody", retry, Record{given("p1", 10, 1), given("", 11, 1)}, "garbled: nobody sent"},
		{"another agent's", retry, Record{with(given("p1", 10, 1), func(f *Fact) { f.Agent = "b" })}, "misled: p1 of a was given to b"},
		{"out of order", retry, Record{given("p2", 10, 1), given("p1", 11, 1)}, "out of order: p2 was given before p1"},
		{"in another order, as a person queued it again", retry, Record{given("p2", 10, 1), person, given("p1", 13, 1)}, ""},
		{"in another order, of two senders", retry, Record{
			with(sent("p0", 0)[1], func(f *Fact) { f.Sender = "other" }), given("p2", 12, 1), given("p1", 11, 1), given("p0", 13, 1),
		}, ""},

		{"again after a kill", retry, Record{given("p1", 10, 1), killed("a", 12), given("p1", 20, 2)}, ""},
		{"again after a kill of all", retry, Record{given("p1", 10, 1), killed("", 12), given("p1", 20, 2)}, ""},
		{"again after another agent's kill", retry, Record{given("p1", 10, 1), killed("b", 12), given("p1", 20, 2)}, "doubled: p1 was given at 00:00:10.000 and again at 00:00:20.000"},
		{"again after a kill that was before", retry, Record{killed("a", 9), given("p1", 10, 1), given("p1", 20, 2)}, "doubled"},
		{"twice again after one kill", retry, Record{given("p1", 10, 1), killed("a", 12), given("p1", 20, 2), given("p1", 30, 3)}, "doubled: p1 was given at 00:00:20.000"},
		{"two prompts again after one kill", retry, Record{given("p1", 10, 1), given("p2", 11, 1), killed("a", 12), given("p1", 20, 2), given("p2", 21, 2)}, "doubled: p2"},
		{"two prompts again after two kills", retry, Record{given("p1", 10, 1), given("p2", 11, 1), killed("a", 12), given("p1", 20, 2), given("p2", 21, 2), killed("a", 20.5)}, ""},
		{"two prompts again while the disk was full", retry, Record{
			given("p1", 10, 1), given("p2", 11, 1), {At: at(12), Until: at(30), Kind: Interrupted, Lasting: true}, given("p1", 20, 2), given("p2", 21, 2),
		}, ""},
		{"it ends its own session", retry, Record{with(sent("p0", 3)[1], func(f *Fact) { f.SelfInterrupting = true }), given("p1", 9, 1), given("p0", 10, 1), given("p0", 20, 2)}, ""},
		{"again after a person's retry", retry, Record{given("p1", 10, 1), person, given("p1", 20, 1)}, ""},
		{"unmarked", retry, Record{given("p1", 10, 1), killed("a", 12), given("p1", 20, 1)}, "unmarked: p1 was given again at 00:00:20.000 as if for the first time (lines 6 8)"},
		{"again after a tool", deadletter, Record{given("p1", 10, 1), tool, killed("a", 17), given("p1", 20, 2)}, "repeated: p1 (deadletter) was given again at 00:00:20.000 after a tool ran for it at 00:00:15.000 (lines 6 7 9)"},
		{"again after a tool, under retry", retry, Record{given("p1", 10, 1), tool, killed("a", 17), given("p1", 20, 2)}, ""},
		{"again after a tool nobody could note", drop, Record{
			given("p1", 10, 1), with(killed("a", 14), func(f *Fact) { f.Unwitnessed = true }), tool, given("p1", 20, 2),
		}, ""},
		{"again after another prompt's tool", drop, Record{given("p1", 10, 1), given("p2", 11, 1), tool, killed("a", 17), given("p1", 20, 2)}, ""},

		{"filed", deadletter, Record{given("p1", 10, 1), tool, killed("a", 17), filed("p1", "d1", ByInterruption)}, ""},
		{"filed twice", deadletter, Record{given("p1", 10, 1), filed("p1", "d1", ByInterruption), filed("p1", "d1", ByInterruption)}, "dead letter: p1 of a stands twice in the file (d1) (lines 7 8)"},
		{"filed against the policy", retry, Record{given("p1", 10, 1), filed("p1", "d1", ByInterruption)}, `dead letter: p1 as "interrupted" under retry`},
		{"dropped", drop, Record{given("p1", 10, 1), filed("p1", "d1", ByDrop)}, `dead letter: p1 as "dropped" under drop`},
		{"filed without a reason", retry, Record{given("p1", 10, 1), filed("p1", "d1", "")}, `dead letter: p1 as "" under retry`},
		{"filed and never given", deadletter, Record{filed("p1", "d1", ByInterruption)}, "lost: p1 was accepted and never given, and is a dead letter as interrupted (lines 3 6)"},
		{"filed and never given, where hooks prove nothing", with(deadletter, func(f *Fact) { f.FilesUnproven = true }), Record{filed("p1", "d1", ByInterruption)}, ""},
		{"filed, never given, and its sender was killed", deadletter, Record{
			with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Unknown }), filed("p1", "d1", ByInterruption),
		}, "dead letter: p1 as interrupted, and was never given"},
		{"poison", retry, Record{filed("p1", "d1", ByPoison)}, ""},
		{"poison too early", with(retry, func(f *Fact) { f.Attempts = 2 }), Record{given("p1", 10, 1), filed("p1", "d1", ByPoison)}, "dead letter: p1 as poison after it was given 1 times"},
		{"an accepted line is torn", retry, Record{filed("p1", "d1", ByTorn)}, "garbled: the accepted p1 is a dead letter as torn"},
		{"a killed sender's line is torn", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Unknown }), filed("p1", "d1", ByTorn)}, ""},
		{"a killed sender's line is torn, and whole when it is sent again", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Unknown }), sent("p1", 4)[1], given("p1", 10, 1), filed("p1", "d1", ByTorn)}, ""},
		{"it is torn, and never given", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Unknown }), sent("p1", 4)[1], filed("p1", "d1", ByTorn)}, "garbled: the accepted p1 is a dead letter as torn"},
		{"a fragment of a killed sender's line", retry, Record{with(sent("p1", 3)[0], func(f *Fact) { f.Kind = Unknown }), filed("", "d1", ByTorn)}, ""},
		{"a fragment of nobody's line", retry, Record{given("p1", 10, 1), filed("", "d1", ByTorn)}, "garbled: nobody sent"},
		{"a dead letter of another agent", retry, Record{with(filed("p1", "d1", ByPoison), func(f *Fact) { f.Agent = "b" })}, "misled: p1 of a is a dead letter of b"},

		{"another prompt's reply", retry, Record{given("p1", 10, 1), replied("p1", "d1", "done: p2")}, `reply: the reply to p1 is "done: p2" (lines 2 7)`},
		{"acknowledged twice", retry, Record{given("p1", 10, 1), replied("p1", "d1", "done: p1"), replied("p1", "d1", "done: p1")}, "reply: p1 of a was acknowledged twice (d1) (lines 7 8)"},
		{"seen by the harness", retry, Record{given("p1", 10, 1), {At: at(5), Kind: Seen, Note: "it ended by itself"}}, "seen: it ended by itself at 00:00:05.000 (lines 7)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := slices.Concat(Record{tt.agent}, sent("p1", 1), sent("p2", 2), tt.facts)
			var got []string
			for _, f := range r.Judge().Findings {
				if f.Prompt != "p2" || f.Wrong != Lost {
					got = append(got, f.String())
				}
			}
			want := strings.Split(tt.want, "; ")
			if tt.want == "" {
				want = nil
			}
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// TestARecordIsReadAsItWasWritten, but for a last line without its end.
func TestARecordIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	r := slices.Concat(Record{policy(DeadLetter)}, sent("p1", 1), Record{given("p1", 10, 1), killed("", 12), filed("p1", "d", ByInterruption)})
	var file bytes.Buffer
	for _, f := range r {
		if err := f.Write(&file); err != nil {
			t.Fatal(err)
		}
	}
	file.WriteString(`{"kind":"gi`)
	got, err := Read(&file)
	if err != nil || len(got) != len(r) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range r {
		if r.Prove(Finding{Lines: []int{i + 1}}) != got.Prove(Finding{Lines: []int{i + 1}}) {
			t.Errorf("line %d: %+v, want %+v", i+1, got[i], r[i])
		}
	}
	if _, err := Read(strings.NewReader("{}\n{half\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// TestTexts: equal as records have them means equal.
func TestTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	texts := []string{"", "a", "a\n", "a\\n", "\xff", "\ufffd", long, long + "x", long[:500] + "y" + long[501:]}
	for i, a := range texts {
		for j, b := range texts {
			if (Text(a) == Text(b)) != (i == j) {
				t.Errorf("%.20q and %.20q: %s, %s", a, b, Text(a), Text(b))
			}
		}
	}
	if p, n := Unmark("do it\n\n[heartbeat: attempt 12 of this entry; an earlier one was interrupted. Check.]"); p != "do it" || n != 12 {
		t.Errorf("%q, %d", p, n)
	}
	if p, n := Unmark("do it"); p != "do it" || n != 1 {
		t.Errorf("%q, %d", p, n)
	}
}
