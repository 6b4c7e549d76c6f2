package doctor

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/resources"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/volume"
)

// Facts are all that the checks know.
type Facts struct {
	ours string // how a command line of ours begins
	// Scheduler is the run that answers for the fleet, or nil; Journalled is
	// false where no run has begun a journal in the state directory.
	Scheduler  *Scheduler
	Journalled bool
	// Mute and LastRun are those of Look.
	Mute    *status.Mute
	LastRun *lastrun.Past
	// Doors are the addresses that the run serves, or that one could or could not open.
	Doors []status.Door
	// Store is what is wrong with the fleet's store.
	Store []store.Trouble
	// Untold and Unwatched are those of Look.
	Untold    []status.Untold
	Unpinged  *status.Unpinged
	Unwatched bool
	// OldQueues are those of Look.
	OldQueues []status.OldQueue
	// Logins are those of the agents that end soon.
	Logins []preflight.Ending
	// Broken is why the fleet's file cannot be used, or nil.
	Broken error
	// StateProblem is why StateDir cannot be used, or nil.
	StateProblem error
	// StateDenied is what this user may not use of StateDir, or nil.
	StateDenied *Denied
	Now         time.Time
	// Self is the running binary.
	Self Program
	// Markers are the variables of a surrounding session in our environment.
	Markers []string
	// TZ is the variable TZ; BadTZ why no zone is known by it.
	TZ    string
	BadTZ string
	// LocalZone is false where the machine does not say its time zone.
	LocalZone bool
	StateDir  string
	State     Volume
	// StateTemps are left-over temporary files in the state directory.
	StateTemps []string
	Inotify    Inotify
	Terminals  Terminals
	// FileWarnings are those of Look.
	FileWarnings []config.Problem
	// Limits are those of sessions that cannot be kept by the run, or by one that
	// would be started as this was.
	Limits    []resources.Lack
	Leftovers []Leftover
	// Attempts are what has ended its scheduler, and what runs.
	Attempts []attempts.Note
	// Left are states that agents had before the fleet was moved.
	Left []owner.Left
	// Elsewhere are agents whose directories are those of another store, or agent.
	Elsewhere []owner.Elsewhere
	Agents    []*Agent
}

// Program is a binary, as far as its build information tells.
type Program struct {
	Path       string
	Missing    bool
	Executable bool
	// Module is "" for a file that is no Go program.
	Module   string
	Revision string // of the source, or ""
	Modified bool   // the source had changes that no revision names
	Built    time.Time
	// Mendable is true where Mend may make it executable: it is ours, and
	// not a path that only an agent's file names.
	Mendable bool
}

// Volume is what is known of the file system below a directory.
type Volume struct {
	Path string
	// Known is false where the system does not tell.
	Known bool
	volume.Volume
	// Unwritable is why files cannot be made there, or "".
	Unwritable string
}

// Inotify are the limits of notifications about files, per user, and what is
// in use and needed.
type Inotify struct {
	Known                        bool
	MaxInstances, MaxWatches     int
	UsedInstances, UsedWatches   int
	NeedInstances, NeedWatches   int
	WatchTriggers, WaitingAgents int
}

// Terminals are the pseudo-terminals of the machine.
type Terminals struct {
	// None is why none could be opened, or nil.
	None error
	// Used and Max are how many there are, Max is 0 where the system does not tell. Need is
	// how many sessions may live at once.
	Used, Max, Need int
}

// Leftover is a session whose shim is gone.
type Leftover struct {
	session.Leftover
	Processes []int // that are still there
}

// Agent is what is known of one agent.
type Agent struct {
	Config *config.Agent
	// Env is what a session's client gets; EnvProblem why its env-file is not
	// in it.
	Env        map[string]string
	EnvProblem error
	// SecretProblems are why secrets of webhooks cannot be read.
	SecretProblems []SecretProblem
	// WatchesNothing are the folders, below its dir, that its triggers watch and that are not
	// there, by trigger.
	WatchesNothing map[string]string
	// Missing is true where the directory is not there yet.
	Missing bool
	IsHome  bool // it is the user's home
	Volume  Volume
	// Running is true while `heartbeat run` holds the directory.
	Running bool
	// Holder is the process that does, or 0 where that is not known.
	Holder int
	// Other is the fleet that had it last, where that is another one; or nil.
	Other *owner.Origin
	// State is what that run says of the agent; Scheduled is true where the
	// run is the one that answers for the fleet.
	State     status.AgentState
	Scheduled bool
	// Was is what the last run said of it when it ended; nil: one runs it, or none
	// ever has.
	Was *status.AgentState
	// Budget is one that is used up while none runs it; nil: none is.
	Budget *status.Budget
	// Approval is what the agent waits for a person to say yes or no to, Aside what does
	// while its queue goes on; or nil.
	Approval, Aside *status.Approval
	// PausedTriggers do not fire by themselves.
	PausedTriggers []memory.PausedTrigger
	// Paused is since when a person wants nothing started for it, or zero.
	Paused time.Time
	// Denied is what this user may not use of the queue, or nil.
	Denied *Denied
	// Unwired is why the directory cannot be wired; Drift is what applying
	// would change; Applied is true where any hook of ours is installed.
	Unwired  error
	Drift    []string
	Applied  bool
	Settings []Settings
	Hooks    []Hook
	// Obstacles keep sessions from working, Others are the Stop hooks beside ours.
	Obstacles []preflight.Obstacle
	Others    preflight.Others
	// Gates are those of them that have made the client continue, by what the runs
	// of the fleet have seen.
	Gates []string
	// Foreign is what files in the directory tell the client beside us.
	Foreign []preflight.Foreign
	// Timed are prompts of the directory that the client gives itself, Timetable is
	// true if the agent's sessions get them.
	Timed     []preflight.Foreign
	Timetable bool
	// Checks say what of its work is done, as the file declares it.
	Checks    []Check
	configDir string // of the user's settings
	Client    Client
	Queue     Queue
	apply     func() error
	// ours is how a command line of ours begins.
	ours string
}

// SecretProblem is why the secret-file of a trigger cannot be used.
type SecretProblem struct {
	Trigger, File string
	Err           error
}

// Denied is a file or folder that this user must be able to use and may not.
type Denied struct {
	Path, Mode string
	// Own is true where it belongs to this user.
	Own bool
}

// Settings is one settings file that the client reads.
type Settings struct {
	Path string
	Kind string // a preflight.Kind, or rendered
	preflight.Document
	Report settings.Report
}

// Hook is an installed hook, with what is known of its program.
type Hook struct {
	settings.Hook
	File, Kind string
	// Wired are the flags of a hand-wired heartbeat-stop, or nil.
	Wired *Wired
	// Program is of ours and of hand-wired hooks.
	Program Program
}

// Wired is a Stop hook of heartbeat-rs's form.
type Wired struct {
	Inbox       string
	Persist     bool
	Idle        time.Duration
	BadFlags    bool
	StdinClosed bool // the shell does not pass the payload on
}

// Client is the program that sessions run, and what its own files say.
type Client struct {
	Name string
	// Claude is true where the command is Claude Code itself; the rest is
	// known only then.
	Claude  bool
	Version string
	// VersionProblem is why the version is not known.
	VersionProblem string
	Login          preflight.Login
	Bypasses       bool // it asks nobody for anything
	Known          clients.Known
}

// Queue is what is known of an agent's queue.
type Queue struct {
	Err           error
	NeedsOperator bool
	Depth         inbox.Depth
	InFlight      *inbox.InFlight
	Aside         []string // the deliveries of what is set aside
	Dead, Torn    int
	OldestDead    time.Time
	// Gone counts the dead letters of entries that somebody took out of the inbox, and
	// nothing else; Missing is the part that nobody has filed yet.
	Gone       inbox.DeadCount
	Missing    inbox.Gone
	DeadBroken int // lines of the dead letters that cannot be read as records
	// Obstacles are its files that cannot be read.
	Obstacles []inbox.Obstacle
	// CursorProblem is what is wrong with a cursor, or "", and Cursor that file.
	Cursor, CursorProblem string
	// ForeignUrgent is a file beside the inbox that has the name of the urgent lane but
	// was not written by `send --urgent`, and of which no entry has run; "" if there is
	// none.
	ForeignUrgent string
	// Written is when the inbox was last written to.
	Written time.Time
	// BadLocks are the paths of locks that are not regular files.
	BadLocks []string
	// HookLockHeld means that it was held at each look for a second.
	HookLockHeld bool
	// SessionHeld means that somebody holds the lock that a session's shim holds; Shim is the
	// shim of a session of this fleet that lives there, ShimHalt whether something has stopped
	// it.
	SessionHeld bool
	Shim        hook.Process
	ShimHalt    process.Halt
	Temps       []string
	Corrupt     []string
	NoGitignore bool
	// Future is a file that was written in the future, or "".
	Future   string
	FutureBy time.Duration
}
