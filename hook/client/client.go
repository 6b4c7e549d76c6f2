// Package client describes the program whose sessions heartbeat feeds, as plain
// data and pure functions over bytes: it opens no file, keeps no state and decides
// nothing. A new release of the client is an edit here, and nowhere else; README.md
// has what was measured, with which version, and the scenario that recorded it.
//
// It imports the standard library only, and none of its code runs before main:
// hooks start at every tool call.
package client

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Client describes one program. What a program does not have is the zero value: no
// variable, no flag, no function.
type Client struct {
	Name string
	// Program is the name of its executable.
	Program    string
	Versions   Versions
	Hooks      Hooks
	Transcript Transcript
	Settings   Settings
	Variables  Variables
	Flags      Flags
	Terminal   Terminal
	// StatusLine reads what it tells the command of its status line; nil: it has
	// none. The error is ErrNoStatusLine.
	StatusLine func(data []byte, now time.Time) (StatusLine, error)
	// Modes are its permission modes, Attended those of them in which it waits for a person,
	// and what for.
	Modes    []string
	Attended map[string]string
	// Beside are its tools that act beside the prompt (see Shut).
	Beside []Beside
	// Carries reports whether a text reaches the model unchanged when it is passed
	// as the prompt argument.
	Carries func(text string) bool
	// Untold is what it never tells, or not reliably: we have to learn it from
	// elsewhere, or guard against it.
	Untold []string
}

// Versions are those that we rely on.
type Versions struct {
	// Measured is the version with which all of this was measured, Oldest and Newest the
	// oldest and the newest that were tried and do what we rely on (orchestrator/probe).
	Measured, Oldest, Newest string
	// Of reads what it prints when asked for its version; "": that is no version.
	Of func(printed string) string
}

// Hooks are its hooks: when it calls them, what it tells them, and what it does
// with their answers.
type Hooks struct {
	// Known are all events. For any other name in a settings file it opens a
	// dialog.
	Known []string
	// Installed are the events of our hooks, in the order in which they are
	// written. None has a matcher: each is called for all tools and causes.
	Installed []string
	// Types are the kinds of hooks that it knows.
	Types []string
	// Timeout is the time-out of a hook whose settings give none.
	Timeout time.Duration
	// Fields are the keys of its payloads.
	Fields []Field
	// Block returns what a Stop hook prints to continue with a text and exit status
	// 0.
	Block func(text string) ([]byte, error)
	// Cuts reports whether a client of this version, "" where it is not known, may keep
	// a part of a Stop hook's text from the model.
	Cuts func(version, text string) bool
	// Deny answers a PermissionRequest: the model reads the message.
	Deny func(message string) ([]byte, error)
	// Failure names what ended a turn by what a StopFailure says. Faults are the
	// known words for it, and whose fault each is; a new release may have others.
	Failure func(e *Event) string
	Faults  map[string]Fault
	// Refused is the word for a login or a key that is not accepted.
	Refused string
	// Limited is the word for a limit that was reached, Limit what its words for
	// people say of when that ends.
	Limited string
	Limit   func(text string) (LimitWords, bool)
}

// StatusPrompt is the exit status of a Stop hook whose stderr is the next prompt.
// It is the same for all known clients.
const StatusPrompt = 2

// The events that matter to us. A client that has an event uses this name.
const (
	SessionStart      = "SessionStart"
	UserPromptSubmit  = "UserPromptSubmit"
	PreToolUse        = "PreToolUse"
	Stop              = "Stop"
	StopFailure       = "StopFailure"
	Notification      = "Notification"
	PermissionRequest = "PermissionRequest"
	SessionEnd        = "SessionEnd"
)

// Has reports whether the client calls hooks at an event.
func (h Hooks) Has(event string) bool { return slices.Contains(h.Known, event) }

// Transcript is the record of a conversation that the client writes, one line for
// each thing that happens.
type Transcript struct {
	// Behind is how long after it happened a line is written at the latest.
	Behind time.Duration
	// Folder is the folder of all transcripts, in the folder of its configuration.
	Folder string
	// HandedOver reports whether a line shows that a Stop hook's text reached the
	// model, Asked that a prompt did.
	HandedOver func(line []byte, text string) bool
	Asked      func(line []byte, prompt string) bool
	// Answered returns the agent's words if a line is the agent's, and whether it
	// calls a tool.
	Answered func(line []byte) (is bool, words []string, tool bool)
	// Version is that of the client that wrote a line, "" where the line does not say.
	Version func(line []byte) string
	// Begun reports whether a line is a prompt or an answer, including those of
	// subagents.
	Begun func(line []byte) bool
	// Stopped reads what became of a Stop, or the prompt id of a line.
	Stopped func(line []byte) (*StopRecord, string)
	// Spoke reads, at a Stop whose hooks are still running, whether one of them has
	// spoken.
	Spoke func(line []byte) Saying
	// Queued reads what became of a prompt that was submitted during a turn.
	Queued func(line []byte) Queueing
	// Spending reads what a line tells of what the conversation costs; false:
	// nothing. Subagents is the folder in which those of a conversation have
	// transcripts of their own, which count as well.
	Spending  func(line []byte) (Spending, bool)
	Subagents func(transcript string) string
	// Calls reads which tools a line calls, and the calls of which it has the results.
	Calls func(line []byte) (begun []Call, ended []string)
	// Names reads which calls of a line have a text in what they are called with, by their
	// ids; JSON must not escape it.
	Names func(line []byte, text string) (ids []string)
	// Worked reads which calls of a line have a result that is no error, by their ids.
	Worked func(line []byte) (ids []string)
	// Denied reads which calls were refused because no rule allows them, by their ids.
	Denied func(line []byte) (ids []string)
	// Stray reads a prompt that neither a person nor who started the client has given it, or
	// nil.
	Stray func(line []byte) *Stray
	// Refused reads a request that the API refused for good, or nil.
	Refused func(line []byte) *Refusal
	// Failed names what ended a turn, for a client that has no StopFailure.
	Failed func(line []byte) string
}

// Saying is what a line says about the hooks of a Stop that has not ended.
type Saying int

// The sayings.
const (
	NothingSaid Saying = iota
	Silence            // what hooks said before it belongs to an earlier Stop
	Said               // one of them has spoken
)

// Queueing is what became of prompts that wait for the end of a turn.
type Queueing int

// The queueings.
const (
	NotQueued Queueing = iota
	Enqueued
	Dequeued
	TakenBack // all of them, by the person
)

// Settings are the files that it reads, and what they may contain.
type Settings struct {
	// Folder is the folder of its configuration in the user's home, and of the
	// settings in a directory.
	Folder string
	// File is the name of the settings in both, Local the name of the directory's
	// own.
	File, Local string
	// Managed is the folder of the administrator's settings, by system.
	Managed func(system string) string
	// Own is the file in which it keeps what it knows about its user, for a client
	// with an environment.
	Own func(get Getter) string
	// Login is the file in the home's Folder that holds a login, Profiles the folder
	// of logins that it shares with other programs of its maker.
	Login    string
	Profiles func(get Getter) string
	// Servers is the name of the file that names servers, Timed that of the one in Folder
	// by which the client gives a session prompts at times.
	Servers, Timed string
	// ServerLogs is the folder of the logs of a project's servers, on a system and for a
	// client with an environment; in it are folders whose names are ServerLog and a
	// server's, with files that ServerSaid reads, line by line.
	ServerLogs func(system string, get Getter, transcript string) string
	ServerLog  string
	ServerSaid func(line []byte) (session string, says ServerSaying, why string)
	// Harmless are keys for looks and the model, and keys that restrict what a
	// session may do.
	Harmless []string
	// Tools are those that a permission rule can name, besides a server's.
	Tools []string
	// CheckRule judges a permission rule, from the list allow or from another one;
	// nil means that it is good.
	CheckRule func(rule string, allow bool) *RuleProblem
}

// Getter looks up a variable of an environment; "" means that it is not set.
type Getter func(name string) string

// In looks up variables in an environment. If a name occurs twice, the last one
// counts.
func In(env []string) Getter {
	return func(name string) string {
		for _, kv := range slices.Backward(env) {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// ConfigDir is where a client with an environment keeps its conversations and the
// user's settings.
func (c *Client) ConfigDir(get Getter) string {
	return cmp.Or(get(c.Variables.Config), filepath.Join(get("HOME"), c.Settings.Folder))
}

// Typed is the command with which a person starts the client, as an agent's sessions see
// the user: with the variables that say where it keeps what it knows, where theirs (of)
// differ from the person's (here).
func (c Client) Typed(program string, of, here Getter, quote func(string) string) string {
	var without, with []string
	for _, name := range []string{"HOME", c.Variables.Config} {
		switch value := of(name); {
		case value == here(name):
		case value == "":
			without = append(without, "-u", name)
		default:
			with = append(with, name+"="+quote(value))
		}
	}
	words := append(with, quote(program))
	if len(without) > 0 {
		words = slices.Concat([]string{"env"}, without, words)
	}
	return strings.Join(words, " ")
}

// Variables are those of its environment.
type Variables struct {
	// Config names the folder of its configuration.
	Config string
	// Caller tells hooks the client's process.
	Caller string
	// Cap limits how many times in a row Stop hooks may continue; Capped reads it.
	Cap string
	// HooksOff are switches (see On) with which no hook runs.
	HooksOff []string
	// Trusts is set where every folder is trusted.
	Trusts string
	// Session are NAME=VALUE for each session, Defaults those that apply if nothing
	// else is set, Keyed the same where a key or a token in its place is used.
	Session, Defaults, Keyed []string
	// Still is NAME=VALUE with which it does not update itself, Untimed the same with
	// which it has no timetable, neither its tools' nor a directory's (Settings.Timed).
	Still, Untimed string
	// Dropped are patterns (path.Match) of those that sessions do not inherit from us: an
	// agent's env may set them.
	Dropped []string
	// Quiet are NAME=VALUE that keep it from contacting anybody, for a question to
	// the program itself.
	Quiet []string
	// Marks are the variables that a session sets in what it starts.
	Marks []string
	// Key, Token and Login are its credentials: a key, a token in its place, and a
	// token for unattended use. Base is the address that it calls.
	Key, Token, Login, Base string
	// Logins are patterns (path.Match) of others by which it may log in; each Cloud's
	// switch is one.
	Logins []string
	// Sandbox is set to 1 where it may run as root and ask nobody.
	Sandbox string
	// Clouds are the switches (see On) for other providers.
	Clouds []Cloud
}

// Access reports whether a variable says by what the client logs in, or where.
func (v Variables) Access(name string) bool {
	if name == v.Key || name == v.Token || name == v.Login || name == v.Base {
		return true
	}
	if slices.ContainsFunc(v.Clouds, func(c Cloud) bool { return name == c.Switch || slices.Contains(c.Whose, name) }) {
		return true
	}
	return v.LogsIn(name)
}

// LogsIn reports whether the client may log in by a variable (Logins).
func (v Variables) LogsIn(name string) bool { return matches(v.Logins, name) }

// Drops reports whether sessions do not inherit a variable (Dropped).
func (v Variables) Drops(name string) bool { return matches(v.Dropped, name) }

// matches reports whether a name matches one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// Cloud is a provider that is used with credentials of another kind.
type Cloud struct {
	Switch, Name string
	Whose        []string // variables that say whose account it is
}

// On is how the client reads a switch.
func On(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// Flags are those of its command line.
type Flags struct {
	Session, Resume, Mode string // take a value
	// Settings names a file of settings, or contains them. Of two, the last one
	// counts.
	Settings, Managed string
	// Sources chooses whose settings are read, StrictServers allows only servers
	// that the command names, Restricted nothing of the workspace.
	Sources, StrictServers, Restricted string
	Plugins                            []string // turn plugins on
	HooksOff                           []string // with one of them no hook runs
}

// Terminal is what it shows.
type Terminal struct {
	// Idle is how many bytes it shows at most within IdleFor when it does nothing,
	// Spinner how many within SpinnerFor when nothing but time passes.
	Idle       int64
	IdleFor    time.Duration
	Spinner    int64
	SpinnerFor time.Duration
	// Dialogs are questions at its start, which nobody answers.
	Dialogs []Dialog
}

// Dialog is a question that waits for a person.
type Dialog struct {
	// Shows are texts that are all on the screen with it: a conversation may quote
	// one of them.
	Shows []string
	// What is what it asks.
	What string
	// Do is what a person does to avoid it. Type, if not "", is our command for
	// that, to be followed by the agent's name. First is what is done instead where the
	// client has no file of its own yet. In Do and First, {client} stands for the command
	// that starts the client (see Cure).
	Do, Type, First string
}

// Cure returns Do, or First where that is to be done first, with what a person types to
// start the client.
func (d *Dialog) Cure(first bool, typed string) string {
	text := d.Do
	if first {
		text = d.First
	}
	return strings.ReplaceAll(text, "{client}", typed)
}

// Asks returns the dialog that is on a screen, or nil.
func (t Terminal) Asks(screen string) *Dialog {
	screen = solid(screen) // a narrow window breaks lines
	lacks := func(text string) bool { return !strings.Contains(screen, solid(text)) }
	for i, d := range t.Dialogs {
		if !slices.ContainsFunc(d.Shows, lacks) {
			return &t.Dialogs[i]
		}
	}
	return nil
}

// solid returns a text without blanks.
func solid(text string) string { return strings.Join(strings.Fields(text), "") }
