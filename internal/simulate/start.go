package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/simulate/hooks"
)

// refusal is what the client says, in its own words, when it does not start.
type refusal string

func (r refusal) Error() string { return string(r) }

// pinnedSettings reads --settings, a file or a JSON text.
func pinnedSettings(arg string) (hooks.Settings, error) {
	arg = strings.TrimSpace(arg)
	if arg == "" {
		return hooks.Settings{}, nil
	}
	data := []byte(arg)
	if !strings.HasPrefix(arg, "{") {
		var err error
		if data, err = os.ReadFile(arg); errors.Is(err, fs.ErrNotExist) {
			return hooks.Settings{}, refusal("Settings file not found: " + arg)
		} else if err != nil {
			return hooks.Settings{}, fmt.Errorf("cannot read settings %q: %w", arg, err)
		}
	}
	pinned, err := hooks.Parse(data)
	if err != nil {
		return pinned, fmt.Errorf("cannot use --settings: %w", err)
	}
	return pinned, nil
}

// checkBypass refuses what the client refuses to root.
func (s *session) checkBypass() error {
	settings, _ := s.store.Look()
	s.mode = s.args.mode
	if s.mode == "" {
		s.mode = settings.DefaultMode
	}
	if s.mode == "" {
		s.mode = "auto"
	}
	if s.mode == "bypassPermissions" && os.Geteuid() == 0 && os.Getenv("IS_SANDBOX") != "1" {
		return refusal("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	}
	return nil
}

// inTerminal is the client's life in a terminal.
func (s *session) inTerminal() int {
	l := &loop{s: s}
	s.life = context.Background()
	problem := l.chooseSession()
	switch {
	case errors.Is(problem, errUnknownSession):
		s.begin(newUUID())
		l.endUnstarted(s.trusted())
	case problem == nil && !s.trusted() && !l.askTrust():
		l.endUnstarted(false)
	case problem == nil && !l.startDialogs():
		l.endUnstarted(true)
	case problem == nil:
		l.live()
	}
	s.close(l)
	if problem != nil {
		fmt.Fprintln(s.stderr, problem)
		return 1
	}
	return l.code
}

// endUnstarted ends a session that did not start; SessionEnd is fired for it
// all the same where the directory is trusted.
func (l *loop) endUnstarted(trusted bool) {
	if trusted {
		l.s.sessionEnd("other")
	}
	l.s.transcript.close()
}

// live runs the session from its start to its SessionEnd.
func (l *loop) live() {
	s := l.s
	var stop context.CancelFunc
	s.life, stop = context.WithCancel(context.Background())
	s.beside.Go(s.takeTyped)
	if s.term != nil {
		s.beside.Go(s.showStatus)
		s.spent()
	}
	l.queue = append(l.queue, item{kind: itemStart})
	if prompt := typedPrompt(s.args.prompt); isCommand(prompt) {
		l.queue = append(l.queue, item{kind: itemCommand, text: prompt})
	} else if !isBlank(prompt) {
		l.queue = append(l.queue, item{kind: itemPrompt, text: prompt})
	}
	for _, text := range s.overdue() {
		l.queue = append(l.queue, item{kind: itemTimed, text: text})
	}
	l.run(s.life)
	s.endTasks()
	s.sessionEnd(l.reason)
	stop()
	s.beside.Wait()
	s.rest.Wait()
	s.costState()
	s.transcript.close()
}

// overdue are the prompts of the directory's timetable, which are all taken for overdue.
func (s *session) overdue() (prompts []string) {
	if s.setting("CLAUDE_CODE_DISABLE_CRON") == "1" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.project, ".claude", "scheduled_tasks.json"))
	if err != nil {
		return nil
	}
	var table struct{ Tasks []struct{ Prompt string } }
	_ = json.Unmarshal(data, &table) // what is none gives nothing
	for _, t := range table.Tasks {
		prompts = append(prompts, t.Prompt)
	}
	return prompts
}

// close gives the terminal back.
func (s *session) close(l *loop) {
	if s.term == nil {
		return
	}
	farewell := ""
	if s.transcript != nil && l.code != 1 {
		farewell = fmt.Sprintf("\r\nResume this session with:\r\nclaude --resume %s\r\n", s.id)
	}
	s.term.close(farewell)
}

// sessionEnd runs the SessionEnd hooks, which get 1.5 s unless they ask for
// more. No signal hurries them.
func (s *session) sessionEnd(reason string) {
	s.fire(context.Background(), event{
		name: "SessionEnd", matcher: reason, fields: []field{{"reason", reason}},
		timeout: 1500 * time.Millisecond,
	})
}

// chooseSession decides which session this is: a new one, or one to go on
// with. A session's transcript is what makes it known.
func (l *loop) chooseSession() error {
	s, a := l.s, l.s.args
	known := func(id string) bool {
		_, err := os.Stat(transcriptPath(s.home, s.project, id))
		return err == nil
	}
	old := a.resume
	if a.continueLast {
		if old = lastSession(s.home, s.project); old == "" {
			return refusal("No conversation found to continue")
		}
	}
	switch {
	case old == "" && a.sessionID == "":
		s.begin(newUUID())
	case old == "" && known(a.sessionID):
		return refusal("Error: Session ID " + a.sessionID + " is already in use.")
	case old == "":
		s.begin(a.sessionID)
	case a.sessionID != "" && !a.fork:
		return refusal("Error: --session-id can only be used with --continue or --resume if --fork-session is also specified.")
	case !known(old):
		return fmt.Errorf("%w: %s", errUnknownSession, old)
	case a.fork && a.sessionID != "":
		s.begin(a.sessionID)
	case a.fork:
		s.begin(newUUID())
	case s.broken("resume-anew"):
		s.begin(newUUID())
	default:
		s.begin(old)
		s.meter.resume(s.transcript.path)
		if s.service != nil {
			s.service.recall(s.transcript.path)
		}
	}
	return nil
}

// errUnknownSession has SessionEnd fired, unlike what else is refused.
const errUnknownSession = refusal("No conversation found with session ID")

// lastSession is the session in this directory that was written to last.
func lastSession(home, project string) (id string) {
	names, err := os.ReadDir(projectDir(home, project))
	if err != nil {
		return ""
	}
	var newest time.Time
	for _, n := range names {
		info, err := n.Info()
		if err == nil && strings.HasSuffix(n.Name(), ".jsonl") && info.ModTime().After(newest) {
			id, newest = strings.TrimSuffix(n.Name(), ".jsonl"), info.ModTime()
		}
	}
	return id
}

// source is SessionStart's word for how this session began.
func (a *arguments) source() string {
	switch {
	case a.resume == "" && !a.continueLast:
		return "startup"
	case a.fork:
		return "fork"
	}
	return "resume"
}

// startDialogs asks what the client asks before it starts; false means that
// it ends here.
func (l *loop) startDialogs() bool {
	s := l.s
	l.header()
	settings, err := s.store.Look()
	if err != nil && !l.goOn(" Settings Error\n\n "+err.Error()+
		"\n\n Files with errors are skipped entirely, not just the invalid settings.\n\n"+
		" ❯ 1. Continue without these settings\n   2. Exit and fix manually\n\n Enter to confirm · Esc to cancel", line1) {
		return false
	}
	if len(settings.Warnings) > 0 && !l.goOn(" Settings Warning\n\n "+strings.Join(settings.Warnings, "\n ")+
		"\n\n The values listed above were skipped; the rest of the file is in effect.\n\n"+
		" ❯ 1. Continue\n   2. Exit and fix manually\n\n Enter to confirm · Esc to cancel", line1) {
		return false
	}
	return s.mode != "bypassPermissions" || settings.SkipBypassNote ||
		l.goOn(" WARNING: Claude Code running in Bypass Permissions mode\n\n"+
			" ❯ 1. No, exit\n   2. Yes, I accept\n\n Enter to confirm · Esc to cancel", line2)
}

// goOn shows a start-up dialog and reports whether the answer is the line
// that goes on; any other one ends the client.
func (l *loop) goOn(text string, line choice) bool {
	if l.startDialog(text) == line {
		return true
	}
	l.end(1, "")
	return false
}

func (l *loop) header() {
	mode := l.s.mode
	if mode == "dontAsk" {
		mode = "don't ask"
	}
	l.s.term.tell(fmt.Sprintf(" ▐▛███▜▌   Claude Code v%s (simulated)\n▝▜█████▛▘  %s\n  ▘▘ ▝▝    %s\n\n⏵⏵ %s on\n",
		Version, l.s.args.model, l.s.project, mode))
}

// trusted reports whether hooks may run here: the directory or a parent is
// trusted, or nobody asks.
func (s *session) trusted() bool {
	if !s.args.requireTrust || os.Getenv("CLAUDE_CODE_SANDBOXED") == "1" {
		return true
	}
	for dir := s.project; ; dir = filepath.Dir(dir) {
		if trustIn(s.userConfig(), dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func (s *session) userConfig() string { return filepath.Join(s.home, ".claude.json") }

// askTrust asks whether to trust the directory, and keeps the answer.
func (l *loop) askTrust() bool {
	if !l.goOn(" Accessing workspace:\n\n "+l.s.project+
		"\n\n Quick safety check: Is this a project you created or one you trust?"+
		"\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm · Esc to cancel", line2) {
		return false
	}
	if err := keepTrust(l.s.userConfig(), l.s.project); err != nil {
		l.end(1, "")
		return false
	}
	return true
}

// userConfig is $HOME/.claude.json, of which only the trust is known here;
// the rest stays as it is.
type userConfig map[string]json.RawMessage

func readUserConfig(path string) (userConfig, map[string]map[string]any, error) {
	c, projects := userConfig{}, map[string]map[string]any{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, projects, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c["projects"] != nil {
		err = json.Unmarshal(c["projects"], &projects)
	}
	return c, projects, err
}

func trustIn(path, dir string) bool {
	_, projects, err := readUserConfig(path)
	return err == nil && projects[dir]["hasTrustDialogAccepted"] == true
}

func keepTrust(path, dir string) error {
	c, projects, err := readUserConfig(path)
	if err != nil {
		return err
	}
	if projects[dir] == nil {
		projects[dir] = map[string]any{}
	}
	projects[dir]["hasTrustDialogAccepted"] = true
	c["projects"] = encode(projects)
	return os.WriteFile(path, encode(c), 0o600)
}

// printMode is -p, and what the client does without a terminal: one prompt,
// no dialogs, the reply on stdout.
func (s *session) printMode(stdin io.Reader, stdout io.Writer) int {
	l := &loop{s: s}
	s.life = context.Background()
	if err := l.chooseSession(); err != nil {
		if errors.Is(err, errUnknownSession) {
			s.begin(newUUID())
			l.endUnstarted(true)
		}
		fmt.Fprintln(s.stderr, err)
		return 1
	}
	if s.mode == "auto" && s.args.mode == "" {
		s.mode = "default"
	}
	if isBlank(s.args.prompt) {
		data, err := io.ReadAll(io.LimitReader(stdin, 10<<20))
		if err != nil || isBlank(string(data)) {
			fmt.Fprintln(s.stderr, "Error: Input must be provided either through stdin or as a prompt argument when using --print")
			s.transcript.close()
			return 1
		}
		s.args.prompt = string(data)
	}
	l.live()
	if l.over && s.job.lastReply != "" {
		fmt.Fprintln(stdout, s.job.lastReply)
	}
	return l.code
}
