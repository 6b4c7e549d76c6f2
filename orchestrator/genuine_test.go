package orchestrator

import (
	"regexp"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/session"
)

// TestACheckBeginsWhereARecordAsksForOneAndNoneRuns: a session that says once more what it
// has said before kept its slot for as long as hold allows.
func TestACheckBeginsWhereARecordAsksForOneAndNoneRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		checks := r.proves(config.NewUntil("make", "test"), passing)
		r.send("a", 2)
		r.set("a", func(f *fakeSession) session.Outcome {
			says := session.Report{Phase: hook.Checking, Checking: &session.Checking{Delivery: "0123456789ab", Iteration: 1, Check: 1}}
			claims(time.Minute)(f)
			says.At = time.Now()
			f.reports <- says
			time.Sleep(time.Minute)
			err := f.queue(func(q *inbox.Held) error {
				e, err := q.Next()
				if err == nil {
					_, err = q.Offer(e, inbox.Offering{Session: f.spec.Session, Checked: true})
				}
				if err == nil {
					_, err = q.Check(inbox.Acknowledgement{Session: f.spec.Session, Now: time.Now()})
				}
				return err
			})
			if err != nil {
				f.r.t.Error(err)
			}
			f.reports <- says
			time.Sleep(time.Minute)
			return session.Outcome{Why: hook.EndFinished, Bound: true}
		})
		stop := r.run()
		defer stop()
		r.sleep(boot + 3*time.Minute - 30*time.Second)
		if n := len(r.replies("a")); checks.n() != 2 || n != 2 {
			t.Errorf("%d checks, %d replies", checks.n(), n)
		}
	})
}

// TestAnApprovalIsAskedForWhatWasHandedOver, whatever delivery the record names meanwhile:
// the answer is not queued as a prompt that has nothing to pass.
func TestAnApprovalIsAskedForWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(config.NewUntil("make", "test"), passing)
		r.send("a", 1)
		var want string
		var asked approval.Request
		r.set("a", claimsWith(time.Minute, func(f *fakeSession, flight *inbox.InFlight) {
			want = flight.DeliveryID
			f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Work: &hook.Work{DeliveryID: want, ID: flight.ID, Attempt: 1}}
			time.Sleep(time.Second)
			delivery := regexp.MustCompile(`"delivery_id":"[0-9a-f]+"`)
			var before string
			rewrite(inbox.FlightFile, func(old string) string {
				before = old
				return delivery.ReplaceAllString(old, `"delivery_id":"aaaaaaaaaaaa"`)
			})(f)
			var err error
			if asked, err = f.r.s.AskApproval(f.r.t.Context(), "a", approval.Request{Question: foreign.Text("may I?")}); err != nil {
				f.r.t.Error(err)
			}
			rewrite(inbox.FlightFile, func(string) string { return before })(f)
		}))
		stop := r.run()
		defer stop()
		r.sleep(5 * time.Minute)
		if asked.Entry != want || want == "" {
			t.Errorf("asked for %q, want %q", asked.Entry, want)
		}
	})
}
