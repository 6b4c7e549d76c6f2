package probe

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/internal/fakeapi"
)

const conversation = "0f9a1c6e-5f3a-4b8e-9d55-6d1f1c1e2a3b"

// The flags of a session.
var (
	flags   = client.Claude.Flags
	dontAsk = []string{flags.Mode, "dontAsk"}
)

// kickOff is a first prompt that would be a command, a flag and a file if its first line
// did not say otherwise.
const kickOff = "Task from the queue:\n\n/exit\n--help @note.txt\n!touch x\n# \"q\" ü <b> 🙂"

// handedOver is what only exit status 2 carries.
const handedOver = "/clear @note.txt --help <b> \"q\" ü 🙂\n\n  two \x1b[31mred\x1b[0m\ttab\n\n"

// longest returns the longest text that a Stop hook hands over itself.
func longest() string { return "say it in one piece " + strings.Repeat("x", client.MostWhole-20) }

// handOvers is how often a Stop hook continues: more than the client's own cap allows.
const handOvers = 11

// first is the scene that the others build on: without it nothing else is tried.
var first = scene{
	name: "a session that is handed prompts", tells: Starts,
	model: []fakeapi.Rule{
		asked("say it", says("said it")),
		asked("go on", runs("touch running; sleep 300"), says("never")),
	},
	play: func(s *stage) {
		s.queue()
		s.begin(slices.Concat([]string{flags.Session, conversation}, dontAsk, []string{flags.Settings, s.in("flag.json"), "--", kickOff})...)
		s.firstTurn()
		s.continues()
		s.records()
		s.tellsFigures(conversation, 0)
		s.ends("an idle session")
		s.goesOn()
	},
}

// queue prepares what the Stop hook says, and the settings.
func (s *stage) queue() {
	s.cannot(s.write("flag.json", map[string]any{"statusLine": s.statusLine()}))
	s.cannot(s.write("work/.claude/settings.json", map[string]any{
		"hooks": s.hooks(client.Claude.Hooks.Installed...), "permissions": map[string]any{"allow": []string{"Bash"}},
	}))
	s.cannot(s.reply(client.Stop, 1, "err", handedOver))
	s.cannot(s.reply(client.Stop, 2, "err", longest()))
	for n := 3; n <= handOvers; n++ {
		s.cannot(s.reply(client.Stop, n, "err", fmt.Sprintf("say it %d", n)))
	}
}

// firstTurn: the kick-off, and what the hooks of a turn are told.
func (s *stage) firstTurn() {
	start := s.calls(client.SessionStart)[0]
	s.must(HookFields, start.event != nil && start.event.SessionID == conversation && start.event.Transcript != "" && start.event.Cause == "startup",
		"SessionStart was told %.300q", start.payload)
	s.keeps(HookEnvironment, start.token == token, "HEARTBEAT_SESSION of a hook is %q", start.token)
	s.keeps(HookEnvironment, start.pid == s.pid(), "CLAUDE_PID of a hook is %q, and the client is %s", start.pid, s.pid())
	asked := s.called(HooksRun, client.UserPromptSubmit, 1, "the prompt on the command line")
	s.keeps(KickOff, asked.event.Prompt == kickOff, "UserPromptSubmit was told the prompt %.300q", asked.event.Prompt)
	stop := s.called(HooksRun, client.Stop, 1, "the first turn")
	s.keeps(HookFields, asked.event.PromptID != "" && stop.event.PromptID == asked.event.PromptID && stop.event.LastMessage == "ok" && !stop.event.StopHookActive,
		"the first Stop was told %.500q", stop.payload)
	s.arrives(KickOff, "the prompt on the command line", kickOff, func(asked, text string) bool { return asked == text })
}

// continues: what the Stop hook hands over, and that it may do so often.
func (s *stage) continues() {
	first := s.calls(client.Stop)[0]
	next := s.called(HandOver, client.Stop, 2, "a Stop hook ended with status 2")
	s.keeps(Continued, next.event.StopHookActive && next.event.PromptID == first.event.PromptID, "the Stop after a hand-over was told %.500q", next.payload)
	s.arrives(HandOver, "what a Stop hook has said", handedOver, fromHook)
	// Each is as quick as the one before it; where one is missing, none follows.
	heard := true
	for n := 3; n <= handOvers+1 && heard; n++ {
		heard = s.within(min(2*settleFor, s.patience), func() bool { return len(s.calls(client.Stop)) >= n })
	}
	s.must(BlockCap, heard, "the client let the turn end after %d hand-overs in a row", len(s.calls(client.Stop))-1)
	s.arrives(HandOver, "a long text of a Stop hook", longest(), fromHook)
	s.arrives(HandOver, "the last of many hand-overs", fmt.Sprintf("say it %d", handOvers), fromHook)
}

// fromHook is a text as the client gives it to the model for a Stop hook.
func fromHook(asked, text string) bool {
	before, ok := strings.CutSuffix(strings.TrimPrefix(asked, "Stop hook feedback:\n"), "]: "+text)
	return ok && strings.HasPrefix(before, "[") && !strings.Contains(before, "\n")
}

// records: what the transcript says of all that.
func (s *stage) records() {
	path, t := s.calls(client.Stop)[0].event.Transcript, client.Claude.Transcript
	shows := func(is func(line []byte) bool) func() bool {
		return func() bool {
			return slices.ContainsFunc(bytes.SplitAfter(s.read(path), []byte("\n")), is)
		}
	}
	// A busy machine may write later; twice as late is not what was promised.
	within := min(2*t.Behind, s.patience)
	asked := s.within(within, shows(func(line []byte) bool { return t.Asked(line, kickOff) }))
	s.keeps(Transcript, asked, "it does not show the prompt on the command line after %v", within)
	handed := s.within(within, shows(func(line []byte) bool { return t.HandedOver(line, handedOver) }))
	s.keeps(Transcript, handed, "it does not show what a Stop hook has handed over after %v", within)
	billed := s.within(within, shows(func(line []byte) bool {
		spent, ok := t.Spending(line)
		return ok && spent.Tokens.Output > 0
	}))
	s.keeps(Bill, billed, "no line of it says what an answer has cost")
}

// tellsFigures: the status line of --settings, told of so many percent of the context.
func (s *stage) tellsFigures(session string, used float64) {
	var told client.StatusLine
	tells := func() bool {
		all := s.calls("StatusLine")
		if len(all) == 0 {
			return false
		}
		told, _ = client.Claude.StatusLine(all[len(all)-1].payload, time.Now()) // otherwise it is empty
		return told.SessionID == session && told.Context.Size > 0 && told.Context.Used >= used && told.Cost > 0
	}
	figures := s.within(min(2*settleFor, s.patience), tells)
	all := s.calls("StatusLine")
	if len(all) == 0 {
		s.keeps(StatusLine, false, "its command was not run")
		return
	}
	last := all[len(all)-1]
	s.keeps(StatusLine, figures, "its command was told %.500q", last.payload)
	s.keeps(StatusLine, last.token == token && last.pid == s.pid(), "its command has HEARTBEAT_SESSION %q and CLAUDE_PID %q", last.token, last.pid)
}

// pid is the client's process.
func (s *stage) pid() string { return strconv.Itoa(s.run.child.PID()) }

// statusLine is the setting that has the hook's program run as the status line.
func (s *stage) statusLine() map[string]any {
	return map[string]any{"type": "command", "command": s.command("StatusLine")}
}

// goesOn: the same conversation in another process, which is ended while a tool runs.
func (s *stage) goesOn() {
	tells := s.tells
	s.tells = Resume
	s.begin(slices.Concat([]string{flags.Resume, conversation}, dontAsk, []string{"--", "Task from the queue:\n\ngo on"})...)
	s.tells = tells
	start := s.calls(client.SessionStart)[1]
	s.keeps(Resume, start.event != nil && start.event.SessionID == conversation && start.event.Cause == "resume", "SessionStart was told %.300q", start.payload)
	s.must(Signals, s.until(func() bool { return s.has("running") || s.run.ended() }) && s.has("running"), "the model had a tool run, and it did not (%s)", s.state())
	all := s.api.Requests()
	s.keeps(Resume, all[len(all)-1].Copies("say it 3") > 0, "the model was not told what was said before")
	s.ends("a session in a tool")
}

// rest are the other scenes.
var rest = []scene{only, refused, background, failing("rate_limit"), failing("authentication_failed"), failing("server_error")}

// only: with our settings alone, and ended while a Stop hook waits.
var only = scene{
	name: "only our settings", tells: SettingsFlag,
	model: []fakeapi.Rule{asked("use tools", runs("touch by-ours"), runs("touch by-the-directory"), triesBeside(), fills("done"))},
	play: func(s *stage) {
		var shut []string
		shut, s.variables = client.Claude.Shut(nil)
		s.cannot(s.write("flag.json", map[string]any{
			"hooks": s.hooks(client.Claude.Hooks.Installed...), "permissions": map[string]any{"allow": []string{"Bash(touch by-ours)"}, "deny": shut},
			"statusLine": s.statusLine(),
		}))
		s.cannot(s.write("work/.claude/settings.json", map[string]any{
			// The client waits for it before it asks the model: at the Stop it is known to have run.
			"hooks":       map[string]any{client.UserPromptSubmit: s.hooks("Theirs")["Theirs"]},
			"permissions": map[string]any{"allow": []string{"Bash(touch by-the-directory)"}},
		}))
		s.cannot(s.reply(client.Stop, 1, "waits", ""))
		s.begin(slices.Concat(dontAsk, []string{flags.Settings, s.in("flag.json"), flags.Sources + "=", flags.StrictServers, "--", "use tools"})...)
		stop := s.called(SettingsFlag, client.Stop, 1, "a turn with hooks of --settings alone")
		s.keeps(SettingsFlag, s.has("by-ours"), "a tool that --settings allows did not run")
		tool := s.called(HooksRun, client.PreToolUse, 1, "a tool")
		s.keeps(HookFields, tool.event.Tool.Name == "Bash" && tool.event.Tool.Command == "touch by-ours", "PreToolUse was told %.300q", tool.payload)
		// What the directory allows does not count, so this is not allowed.
		s.keeps(Refuses, !s.has("by-the-directory"), "a tool that only the directory's settings allow ran")
		s.keeps(SettingsFlag, len(s.calls("Theirs")) == 0, "a hook of the directory was called")
		s.shuts(stop.event.Transcript)
		// The last answer alone fills a percent, and nothing but this wait comes after it.
		s.tellsFigures(stop.event.SessionID, 1)
		s.ends("a session whose Stop hook waits")
	},
}

// shuts: none of the tools beside the prompt, which were all tried, has run.
func (s *stage) shuts(transcript string) {
	s.must(HookFields, transcript != "", "Stop was not told where the transcript is")
	names, tried, ran := map[string]string{}, map[string]bool{}, []string{}
	for _, b := range client.Claude.Beside {
		tried[b.Tool] = true
	}
	answered := func() bool {
		ended := 0
		ran = ran[:0]
		for line := range bytes.SplitAfterSeq(s.read(transcript), []byte("\n")) {
			begun, over := client.Claude.Transcript.Calls(line)
			for _, c := range begun {
				names[c.ID] = c.Name
			}
			worked := client.Claude.Transcript.Worked(line)
			for _, id := range over {
				if !tried[names[id]] {
					continue
				}
				if ended++; slices.Contains(worked, id) {
					ran = append(ran, names[id])
				}
			}
		}
		return ended >= len(tried)
	}
	s.must(Transcript, s.within(min(2*client.Claude.Transcript.Behind, s.patience), answered), "it does not show what became of tools that were called")
	s.keeps(Beside, len(ran) == 0, "it ran %s, which rules of --settings deny", strings.Join(ran, ", "))
}

// refused: a person would be asked, and a hook says no.
var refused = scene{
	name: "a tool that a hook refuses", tells: Answer,
	model: []fakeapi.Rule{asked("use a tool", runs("touch not-allowed"), says("went on"))},
	play: func(s *stage) {
		no, err := client.Claude.Hooks.Deny("refused by the probe")
		s.cannot(err)
		s.cannot(s.write("work/.claude/settings.json", map[string]any{"hooks": s.hooks(client.Claude.Hooks.Installed...)}))
		s.cannot(s.reply(client.PermissionRequest, 1, "out", string(no)))
		s.begin(flags.Mode, "default", "--", "use a tool")
		asked := s.called(Answer, client.PermissionRequest, 1, "a tool that is not allowed")
		s.keeps(HookFields, asked.event.Tool.Name == "Bash", "PermissionRequest was told %.300q", asked.payload)
		s.called(Answer, client.Stop, 1, "a hook had refused the tool")
		s.keeps(Answer, !s.has("not-allowed"), "the tool ran, although a hook had refused it")
		all := s.api.Requests()
		s.keeps(Answer, all[len(all)-1].Copies("refused by the probe") > 0, "the model was not told why")
	},
}

// background: a task that continues after the turn.
var background = scene{
	name: "work in the background", tells: Background,
	model: []fakeapi.Rule{asked("start it", starts("while [ ! -e go ]; do sleep 0.05; done"), says("started"))},
	play: func(s *stage) {
		s.cannot(s.write("work/.claude/settings.json", map[string]any{
			"hooks": s.hooks(client.Claude.Hooks.Installed...), "permissions": map[string]any{"allow": []string{"Bash"}},
		}))
		s.begin(slices.Concat(dontAsk, []string{"--", "start it"})...)
		stop := s.called(Background, client.Stop, 1, "a turn that has started a task")
		s.must(Background, slices.ContainsFunc(stop.event.Tasks, client.Task.Running), "a Stop while a task runs was told %.500q", stop.payload)
		s.cannot(s.touch("go"))
		next := s.called(Background, client.Stop, 2, "a task has ended")
		s.keeps(Background, !slices.ContainsFunc(next.event.Tasks, client.Task.Running), "a Stop after the end of a task was told %.500q", next.payload)
	},
}

// failing: the service refuses.
func failing(kind string) scene {
	return scene{
		name: "a refused request", tells: Failures,
		model: []fakeapi.Rule{asked("do it", refusals[kind])},
		play: func(s *stage) {
			s.variables = []string{"CLAUDE_CODE_MAX_RETRIES=0"}
			s.cannot(s.write("work/.claude/settings.json", map[string]any{"hooks": s.hooks(client.Claude.Hooks.Installed...)}))
			s.begin(slices.Concat(dontAsk, []string{"--", "do it"})...)
			failed := s.called(Failures, client.StopFailure, 1, fmt.Sprintf("the service answered with %d", refusals[kind].Status))
			said := client.Claude.Hooks.Failure(failed.event)
			s.keeps(Failures, said == kind, "StopFailure says %q where the service answered with %d: it was told %.300q", said, refusals[kind].Status, failed.payload)
		},
	}
}
