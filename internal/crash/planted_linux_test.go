package crash

import (
	"fmt"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// planted is a defect that is put between a Stop hook and its client.
type planted struct {
	want promise.Wrong
	// hears returns what the client hears where the hook has said something. text is the
	// prompt that it hands over, or "", before the last one before that.
	hears func(l *lab, text, before string, o stepper.Outcome) stepper.Outcome
}

// The mark of a repeat.
const again = "\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]"

func saying(text string) stepper.Outcome { return stepper.Outcome{Status: 2, Stderr: text} }

// plants are what the judge has to find; each happens once, but for silence.
var plants = map[string]planted{
	"nothing": {"", nil},
	"a prompt is dropped": {promise.Lost, func(l *lab, text, _ string, o stepper.Outcome) stepper.Outcome {
		if text == "" {
			return o
		}
		// As if it had arrived, and were done: the hook gives the next one.
		l.transcribe("user", "Stop hook feedback:\n[heartbeat-stop]: "+text)
		l.active, l.working = true, text
		l.transcribe("assistant", []any{map[string]string{"type": "text", "text": l.answer()}})
		return l.run(l.command("Stop"), 0)
	}},
	"a prompt comes twice": {promise.Doubled, func(l *lab, text, before string, o stepper.Outcome) stepper.Outcome {
		if text != "" || before == "" {
			return o
		}
		return saying(before + again)
	}},
	"a repeat has no mark": {promise.Unmarked, func(l *lab, text, before string, o stepper.Outcome) stepper.Outcome {
		if text != "" || before == "" {
			return o
		}
		l.interrupted(time.Now(), "what explains the repeat")
		return saying(before)
	}},
	"a byte is another one": {promise.Garbled, func(_ *lab, text, _ string, o stepper.Outcome) stepper.Outcome {
		if text == "" {
			return o
		}
		return saying(text[:len(text)-1] + "?")
	}},
	"silence": {promise.Waiting, func(_ *lab, _, _ string, _ stepper.Outcome) stepper.Outcome { return stepper.Outcome{} }},
}

// TestTheJudgeFindsWhatIsPlanted keeps the harness honest: the same run is judged with a
// defect between hook and client, and without one.
func TestTheJudgeFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for name, p := range plants {
		for _, f := range []form{session, wiredStderr} {
			t.Run(fmt.Sprintf("%s, %s", f, name), func(t *testing.T) {
				t.Parallel()
				testbed.Played(t, testbed.Plants, 1)
				inLab(t, f, promise.Retry, func(l *lab) {
					l.fill()
					for i := range 5 {
						prompt := fmt.Sprintf("more%d: of the same", i)
						l.echo(prompt+"\n", prompt)
					}
					l.planted(name, p)
					l.launch()
					l.drain()
					v, wrong := l.verdict()
					if p.want == "" && wrong != "" || p.want != "" && !v.Has(p.want) {
						t.Errorf("found %v, want %q", v.Findings, p.want)
					}
				})
			})
		}
	}
}

// planted puts a defect in place.
func (l *lab) planted(name string, p planted) {
	before, done := "", false
	l.plant = func(event string, o stepper.Outcome) stepper.Outcome {
		if event != "Stop" || p.hears == nil || done {
			return o
		}
		text := ""
		if o.Status == 2 {
			text = o.Stderr
		}
		heard := p.hears(l, text, before, o)
		done = heard.Stderr != o.Stderr && name != "silence"
		before = text
		return heard
	}
}

// TestTheWitnessSeesALoss keeps the harness honest, too: without a session_id the
// hand-wired form goes on as heartbeat-rs does, where the next call acknowledges. There a
// kill loses entries, and the witness has to say so.
func TestTheWitnessSeesALoss(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	lost := 0
	inLab(t, wiredBare, promise.Retry, func(l *lab) {
		l.fill()
		l.launch()
		before := l.picture()
		for n := 1; ; n++ {
			l.restore(before)
			if !l.step(n, true).Killed {
				break
			}
			l.after(sameSession)
			if v, _ := l.verdict(); v.Has(promise.Lost) {
				lost++
			}
		}
	})
	if lost == 0 {
		t.Error("no loss was seen in the form that has some")
	}
	t.Logf("the bare form loses its first entry at %d points of the first tick", lost)
}
