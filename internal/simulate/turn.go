package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// do does one item; it is the job that runs beside the loop.
func (s *session) do(ctx context.Context, it item) ending {
	switch it.kind {
	case itemStart:
		s.sessionStart(ctx, s.args.source())
		return endSilent
	case itemCommand:
		return s.command(ctx, it.text)
	}
	return s.turn(ctx, it)
}

// sessionStart fires SessionStart; what its hooks add goes with the first
// request.
func (s *session) sessionStart(ctx context.Context, source string) {
	e := event{name: "SessionStart", matcher: source, fields: []field{{"source", source}}}
	switch {
	case source == "resume":
		e.fields = append(e.fields, s.resumed()...)
	case source != "clear" && s.interactive:
		e.fields = append(e.fields, field{"model", s.args.model})
	}
	sleep(ctx, s.script.StartDelay.Or(0))
	for _, a := range s.fire(ctx, e) {
		s.job.context = append(s.job.context, s.additional(e, a)...)
	}
}

// resumed is what SessionStart says of a session that is gone on with. The
// sizes are a small conversation's.
func (s *session) resumed() []field {
	since := time.Duration(0)
	if st, err := os.Stat(s.transcript.path); err == nil {
		since = time.Since(st.ModTime())
	}
	return []field{
		{"seconds_since_last_response", int(since.Seconds())},
		{"context_tokens", 15},
		{"prompt_cache_likely_expired", since > 5*time.Minute},
		{"estimated_cache_write_usd", 0.0001},
	}
}

// clearWords are what the first request after /clear tells of it.
func clearWords(command string) []string {
	name, args, _ := strings.Cut(command, " ")
	return []string{
		"<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request, and its output goes straight to the user. It's recorded here as context for later messages.</local-command-caveat>",
		fmt.Sprintf("<command-name>%s</command-name>\n            <command-message>%s</command-message>\n            <command-args>%s</command-args>",
			name, strings.TrimPrefix(name, "/"), args),
		"<local-command-stdout></local-command-stdout>",
	}
}

// command does a slash command: no hook sees it as a prompt, and no model.
func (s *session) command(ctx context.Context, text string) ending {
	s.show("> " + text)
	s.newPrompt()
	switch name, _, _ := strings.Cut(strings.TrimSpace(text), " "); name {
	case "/exit", "/quit":
		return endSession
	case "/clear", "/new", "/reset":
		s.fire(ctx, event{name: "SessionEnd", matcher: "clear", fields: []field{{"reason", "clear"}}})
		s.begin(newUUID())
		s.job.carried = clearWords(strings.TrimSpace(text))
		s.sessionStart(ctx, "clear")
	default:
		s.show("Unknown command: " + name)
	}
	return endSilent
}

// turn takes one prompt to its end: UserPromptSubmit, requests to the model,
// and Stop, as often as Stop hooks have something to add.
func (s *session) turn(ctx context.Context, it item) ending {
	for _, text := range it.before {
		s.newPrompt()
		s.recordPrompt(item{text: text, submitted: true})
	}
	s.newPrompt()
	system := it.system
	if !it.submitted {
		more, ok := s.submitPrompt(ctx, it.text)
		if !ok {
			return endBlocked
		}
		system = append(system, more...)
	}
	system = append(s.job.context, append(system, s.mentions(it.text)...)...)
	s.job.context, s.job.asked = nil, false
	s.show("\n> " + it.text)
	s.recordPrompt(it)
	began := time.Now()
	prompts := append(it.before, toModel(it.text))
	switch {
	case s.broken("prompt-altered"):
		prompts = []string{altered(it.text)}
	case s.broken("prompt-twice"):
		prompts = append(prompts, it.text)
	}
	for active, blocks := it.rewoken, 0; ; active = true {
		reply, acted, err := s.answer(ctx, prompts, system)
		if err != nil {
			return s.cutShort(ctx, err)
		}
		s.job.lastReply = reply
		if acted {
			blocks = 0
		}
		next, ok := s.stop(ctx, active, reply)
		if !ok || ctx.Err() != nil {
			// What a hook said before another stopped it is in the next request.
			s.job.carried, s.job.context = next.user, next.system
			return s.settled(ctx, began)
		}
		if blocks++; s.capped(blocks) {
			s.show(fmt.Sprintf("● Stop hook blocked %d times in a row; overriding", blocks))
			return endIdle
		}
		prompts, system = next.user, next.system
	}
}

func (s *session) recordPrompt(it item) {
	if it.kind == itemNotice {
		s.userText(it.text, field{"permissionMode", s.mode}, field{"promptSource", "system"},
			field{"turnOrigin", "task_notification"})
		return
	}
	if it.kind == itemTimed {
		s.userText(it.text, field{"isMeta", true}, field{"permissionMode", s.mode}, field{"promptSource", "system"},
			field{"scheduledTaskId", "abcdef01"}, field{"turnOrigin", "scheduled"})
		return
	}
	source := "typed"
	if it.submitted {
		source = "queued"
	}
	s.userText(it.text, field{"permissionMode", s.mode}, field{"origin", map[string]string{"kind": "human"}},
		field{"promptSource", source}, field{"turnOrigin", "human"})
}

// settled is the end of a turn after its Stop hooks; one that was aborted
// meanwhile says nothing more.
func (s *session) settled(ctx context.Context, began time.Time) ending {
	if ctx.Err() != nil {
		return endSilent
	}
	s.record("system", field{"subtype", "turn_duration"}, field{"durationMs", time.Since(began).Milliseconds()})
	return endIdle
}

// cutShort ends a turn that has no Stop: aborted, or the API failed.
func (s *session) cutShort(ctx context.Context, err error) ending {
	failure, ok := errors.AsType[*apiFailure](err)
	if !ok {
		if context.Cause(ctx) != errEnding {
			s.userText("[Request interrupted by user]")
			s.job.carried = []string{"[Request interrupted by user]"}
			s.show("⎿  Interrupted · What should Claude do instead?")
		}
		return endSilent
	}
	if s.broken("other-failures") {
		failure.kind = "unknown"
	}
	s.show("● " + failure.message)
	s.apiError(failure)
	fields := []field{{"error", failure.kind}}
	if failure.details != "" {
		fields = append(fields, field{"error_details", failure.details})
	}
	fields = append(fields, field{"last_assistant_message", failure.message})
	// Its hooks' answers count for nothing.
	s.fire(ctx, event{name: "StopFailure", matcher: failure.kind, fields: fields})
	return endFailed
}

// submitPrompt fires UserPromptSubmit; ok is false when a hook refuses the
// prompt, which then goes nowhere.
func (s *session) submitPrompt(ctx context.Context, text string) (system []string, ok bool) {
	e := event{name: "UserPromptSubmit", fields: []field{{"prompt", text}}}
	for _, a := range s.fire(ctx, e) {
		if a.Block || a.Stop {
			s.show("● UserPromptSubmit operation blocked by hook:\n" + a.Reason)
			return nil, false
		}
		system = append(system, s.additional(e, a)...)
	}
	return system, ctx.Err() == nil
}

// additional is what a hook's answer adds to the request, as the client words
// it.
func (s *session) additional(e event, a answered) []string {
	text := strings.TrimSpace(a.Plain)
	raw := cmp.Or(a.Context, text)
	switch {
	case a.Context != "":
		text = fmt.Sprintf("%s hook additional context: %s", e.name, s.spill(e.name, a.Context))
	case text == "":
		return nil
	case e.matcher != "":
		text = fmt.Sprintf("%s:%s hook success: %s", e.name, e.matcher, s.spill(e.name, text))
	default:
		text = fmt.Sprintf("%s hook success: %s", e.name, s.spill(e.name, text))
	}
	s.record("attachment", field{"attachment", map[string]any{
		"type": "hook_additional_context", "content": []string{raw}, "hookEvent": e.name,
	}})
	return []string{text}
}

// spillOver is the longest additional context that goes into a request;
// a longer one goes into a file, and its beginning into the request.
const spillOver, spillPreview = 10_000, 2_000

func (s *session) spill(event, text string) string {
	r := []rune(text)
	if len(r) <= spillOver {
		return text
	}
	dir := filepath.Join(projectDir(s.home, s.project), s.sessionID(), "tool-results")
	path := filepath.Join(dir, "hook-"+event+"-"+newUUID()+"-additionalContext.txt")
	if os.MkdirAll(dir, 0o700) != nil || os.WriteFile(path, []byte(text), 0o600) != nil {
		return text
	}
	return fmt.Sprintf("<persisted-output>\nOutput too large (%d characters). Full output saved to: %s\n\nPreview:\n%s\n</persisted-output>",
		len(r), path, string(r[:spillPreview]))
}

// clean is what the client does to a hook's words: bad UTF-8 is replaced, and
// its own tag cannot be forged.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.ReplaceAll(text, "<system-reminder", "&lt;system-reminder")
	return strings.ReplaceAll(text, "</system-reminder", "&lt;/system-reminder")
}

// capped reports whether so many blocks in a row are too many.
func (s *session) capped(blocks int) bool {
	limit, err := strconv.Atoi(strings.TrimSpace(s.setting("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP")))
	if err != nil || s.broken("cap-fixed") {
		limit = 8
	}
	return limit > 0 && blocks > limit
}

// notify fires a Notification.
func (s *session) notify(ctx context.Context, kind, words string) {
	s.fire(ctx, event{
		name: "Notification", matcher: kind,
		fields: []field{{"message", words}, {"notification_type", kind}},
	})
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// slash is a prompt that is a command. A path is none.
var slash = regexp.MustCompile(`^\s*/[A-Za-z][A-Za-z0-9:_-]*(\s|$)`)

func isCommand(text string) bool { return slash.MatchString(text) }

var mention = regexp.MustCompile(`(?:^|\s)@([^\s]+)`)

// maxMention bounds a file that a prompt mentions.
const maxMention = 64 << 10

// mentions reads the files a prompt names with @ into the request.
func (s *session) mentions(text string) []string {
	if s.setting("CLAUDE_CODE_DISABLE_FILE_MENTIONS") == "1" {
		return nil
	}
	var out []string
	for _, m := range mention.FindAllStringSubmatch(text, 20) {
		path := m[1]
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.directory(), path)
		}
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() || st.Size() > maxMention {
			continue
		}
		if data, err := os.ReadFile(path); err == nil {
			out = append(out, "Result of calling the Read tool on "+path+":\n"+string(data))
		}
	}
	return out
}
