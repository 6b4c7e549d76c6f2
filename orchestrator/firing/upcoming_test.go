package firing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
	"heartbeat/sources"
)

func cron(t *testing.T, name, spec string) config.Trigger {
	t.Helper()
	schedule, err := sources.ParseSchedule(spec, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return config.Trigger{Name: name, Cron: &config.CronTrigger{Schedule: schedule}}
}

func TestUpcoming(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	a := &config.Agent{Name: "a", Triggers: []config.Trigger{cron(t, "half", "*/30 * * * *"), {Name: "watch", Watch: &config.WatchTrigger{}}}}
	b := &config.Agent{Name: "b", Triggers: []config.Trigger{cron(t, "hour", "0 * * * *")}}
	b.Triggers[0].Cron.Jitter = 10 * time.Minute
	late := sources.Offset(10*time.Minute, "b/hour")
	var got []string
	for _, f := range Upcoming([]*config.Agent{a, b}, nil, at, 4) {
		got = append(got, f.Agent+" "+f.At.UTC().Sub(at).String())
	}
	want := []string{"b " + late.String(), "a 30m0s", "a 1h0m0s", "b " + (time.Hour + late).String()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if each := Next([]*config.Agent{a, b}, nil, at); len(each) != 2 || each[0].Agent != "b" || each[1].Trigger != "half" {
		t.Errorf("the next of each: %+v", each)
	}
}
