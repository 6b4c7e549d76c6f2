// Package sources implements the triggers: cron here, watch (files) and poll (a
// command) in the rooms below. They emit prompts and write nothing; they return
// what was seen and fired to the caller, who stores it.
//
// This room holds what they share (prompts and their templates, labels,
// back-off) and time: schedules, which of their fires are due, and a
// timetable that fires them.
package sources
