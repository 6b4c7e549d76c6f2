package notify

import (
	"fmt"
	"time"

	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/notify/notice"
)

// crashed returns the fact that the run before this one did not end as it should, or nil.
func (w *Watch) crashed() []notice.Fact {
	run := lastrun.Of(w.opt.StateDir)
	if run == nil || run.Before == nil {
		return nil
	}
	before := *run.Before
	return []notice.Fact{{
		Key: "/" + string(notice.Crashed), Kind: notice.Crashed, Urgent: true, Since: before.Ended,
		Text: fmt.Sprintf("%s: nobody watched for about %s", before.Text(), about(w.began.Sub(before.Ended))),
		Do:   w.opt.Ours + " status; " + w.opt.Ours + " events",
	}}
}

// about rounds a duration to minutes: when a run was killed is known to some seconds.
func about(d time.Duration) string {
	if d < time.Minute {
		return "a minute"
	}
	d = d.Truncate(time.Minute)
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}
