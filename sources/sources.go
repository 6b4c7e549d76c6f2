// Package sources are the triggers: cron, watch (files) and poll (a
// command). They emit prompts and write nothing; what was seen and fired is
// returned to the caller, who keeps it.
package sources
