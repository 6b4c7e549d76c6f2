// Package doctor finds what would keep a fleet from working before it is run:
// hooks that cannot run, dialogs that nobody would answer, queues that are
// stuck, machines that are too small.
//
// Collect gathers facts and changes nothing; each check is a pure function
// from facts to findings; Mend makes the repairs that cannot do harm. Findings
// about the client were measured with Claude Code 2.1.329.
//
// Files in an agent's directory are not trusted: reads are bounded, links that
// lead out of it are not followed, and doctor runs or changes nothing because such
// a file says so.
package doctor

import (
	"cmp"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"   // prompts will not be worked on, or get lost
	Warning Severity = "warning" // it works until something else happens
	Info    Severity = "info"    // good to know
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code names the kind of finding; it does not change between versions.
	Code string `json:"code"`
	// Agent is the agent's name, or "" for what concerns the machine.
	Agent string `json:"agent,omitempty"`
	// Seen is what was found, Why its consequence.
	Seen string `json:"seen"`
	Why  string `json:"why"`
	// Fix is a command to type, or what to change by hand.
	Fix string `json:"fix"`
	// Fixable is true if Mend can do it.
	Fixable bool `json:"fixable"`

	mend repair
}

// Examine runs all checks. The machine's findings come first, then each agent's in
// the order of the fleet's file; among them the worst come first.
func Examine(f *Facts) []Finding {
	var all []Finding
	for _, check := range machineChecks {
		all = append(all, check(f)...)
	}
	bySeverity(all)
	for _, a := range f.Agents {
		var found []Finding
		for _, check := range agentChecks {
			found = append(found, check(f, a)...)
		}
		for i := range found {
			found[i].Agent = a.Config.Name
		}
		bySeverity(found)
		all = append(all, found...)
	}
	for i := range all {
		all[i].Fixable = all[i].mend != nothing
	}
	return all
}

func bySeverity(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Compare(a.Severity.rank(), b.Severity.rank())
	})
}

// machineChecks and agentChecks are all checks there are.
var (
	machineChecks = []func(*Facts) []Finding{
		checkConfiguration, checkFile, checkAnswer, checkEnded, checkStore, checkVersion, checkState, checkMoved, checkElsewhere, checkOldQueues, checkLoginEnds, checkDoors, checkUntold, checkPinged, checkWatched, checkClock, checkZone, checkInotify, checkTerminals, checkLimits, checkLeftovers, checkAttempts, checkNested, checkStateVolume, checkStateTemps,
	}
	agentChecks = []func(*Facts, *Agent) []Finding{
		checkDirectory, checkApprovals, checkHeld, checkLastRun, checkQueueLost, checkUntended, checkStuck, checkUnproven, checkStrays, checkToolsRefused, checkServers, checkPaused, checkFailures, checkTriggers, checkFolders, checkRefused, checkUnsent, checkSecrets, checkReplaced, checkReachable, checkDenied, checkVolume, checkApplied, checkSettings, checkForeign, checkTimed, checkReach, checkProofs, checkObstacles, checkSessionEnv, checkCap,
		checkHooks, checkTimeouts, checkHandWired, checkOtherStops, checkPermissions,
		checkClient, checkDrift, checkLogin,
		checkQueue, checkUnreadable, checkCursor, checkOrphan, checkForeignUrgent, checkTail, checkDead, checkLocks, checkFiles, checkTimes,
	}
)
