// Package sources are the triggers: cron here, watch (files) and poll (a
// command) in rooms below. They emit prompts and write nothing; what was seen
// and fired is returned to the caller, who keeps it.
//
// This room holds what they share (prompts and their templates, labels,
// back-off) and time: schedules, which of their fires are due, and a
// timetable that fires them.
package sources
