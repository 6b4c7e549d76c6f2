package main

import (
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/owner"
)

// inZoneOfRun brings a fleet that is looked at into the time zone of the run that has it: what
// has no zone of its own fires in that one, whatever the zone of this process is. It returns
// how people call that zone and ours, where they differ; "" otherwise.
func inZoneOfRun(f *config.Fleet, now time.Time) (its, ours string) {
	dir, err := owner.Path(f)
	if err != nil {
		return "", ""
	}
	last := lastrun.Of(dir)
	if last == nil || !last.Lives {
		return "", "" // the next run may have any zone: ours is as good a guess as another
	}
	here := lastrun.Here()
	zone := last.Zone.Location()
	if zone == nil || last.Zone.Same(here) {
		return "", ""
	}
	concerned := false
	for _, a := range f.Agents {
		if a.Zone == nil {
			a.Zone = zone
		}
		for i := range a.Triggers {
			if c := a.Triggers[i].Cron; c != nil && c.Schedule.Location() == time.Local {
				c.Schedule = c.Schedule.In(zone)
			}
			concerned = concerned || a.Triggers[i].Cron != nil && a.Triggers[i].Cron.Schedule.Location().String() == zone.String()
		}
	}
	if !concerned {
		return "", ""
	}
	return last.Zone.Words(now), here.Words(now)
}

// zoneText says that a run is in another time zone than the reader; "" if it is not.
func zoneText(its, ours string) string {
	if its == "" {
		return ""
	}
	return "schedules without a timezone: are in the scheduler's zone, " + its + "; here it is " + ours
}
