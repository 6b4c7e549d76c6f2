package inbox

import "heartbeat/queue"

// Given is the entry as all know one.
func (f *InFlight) Given() *queue.Given {
	g := &queue.Given{
		Entry: queue.Entry{
			Delivery: f.DeliveryID, EntryID: f.EntryID, ID: f.ID, Source: f.Source,
			State: queue.State(f.State), Lane: queue.Normal, Tries: queue.Tries(f.Tries),
			Proving: queue.Proving{Checked: f.Checked, Iteration: f.Iteration, Most: f.Most, Check: f.Check, Interrupted: queue.State(f.Interrupted)},
			Handover: queue.Handover{
				N: f.DeliveredAt.UnixNano(), Session: f.Session, Via: queue.Via(f.Via), At: f.DeliveredAt, PromptID: f.PromptID,
				Transcript: f.Transcript, Offset: f.TranscriptOffset, File: f.File, Unmarked: f.Unmarked,
			},
			Failure: f.Failure, Cancel: queue.Cancel(f.Cancel),
		},
		Text:  queue.Text{Prompt: f.Prompt()},
		Shown: queue.Shown{Output: f.Output, Answers: f.Answers},
	}
	if f.Urgent {
		g.Lane = queue.Urgent
	}
	if f.Claim != nil {
		g.Claimed = f.Claim.Since
	}
	return g
}
