package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"heartbeat/internal/simulate/script"
)

// apiFailure is a request that the API refused for good.
type apiFailure struct {
	kind, message, details string
	status                 int
}

func (f *apiFailure) Error() string { return f.kind + ": " + f.message }

// apiFails is a request that the API refuses with what the step says, in the
// words in which the client passes that on.
func (s *session) apiFails(step script.Step) *apiFailure {
	f := &apiFailure{kind: step.Fail, details: step.Details, status: statuses[step.Fail]}
	switch step.Fail {
	case "rate_limit":
		if !step.Resets.IsZero() {
			s.limitFalls(step.Resets)
			f.message = "You've hit your limit · resets " + s.clock(step.Resets)
			break
		}
		f.message = "API Error: Request rejected (429) · " + cmp.Or(step.Message, "Rate limited")
	case "server_error":
		f.message = "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check " +
			gateway(s.setting("ANTHROPIC_BASE_URL")) + "."
	case "authentication_failed":
		f.message = "Invalid API key · Fix external API key"
	case "billing_error":
		f.message = "Credit balance is too low"
	case "invalid_request":
		f.message = tooLong(step.Message)
		f.details = cmp.Or(f.details, fmt.Sprintf(`400 {"error":{"message":%s,"type":"invalid_request_error"},"type":"error"}`,
			encode(cmp.Or(step.Message, "prompt is too long"))))
	case "model_not_found":
		s.request(nil, nil) // it asks once more
		f.message = "There's an issue with the selected model (" + s.args.model +
			"). It may not exist or you may not have access to it. Run /model to pick a different model."
	default:
		f.message = cmp.Or(step.Message, "API Error: "+step.Fail)
	}
	return f
}

// statuses are those of HTTP behind the kinds of failures.
var statuses = map[string]int{
	"rate_limit": 429, "server_error": 529, "authentication_failed": 401, "billing_error": 400, "invalid_request": 400, "model_not_found": 404,
}

// clock is how the client tells people a moment: in its zone, without seconds, with
// the day where that is more than 24 hours away.
func (s *session) clock(at time.Time) string {
	zone, err := time.LoadLocation(cmp.Or(s.setting("TZ"), "UTC"))
	if err != nil {
		zone = time.UTC
	}
	at = at.In(zone)
	layout := "3:04PM"
	if at.Minute() == 0 {
		layout = "3PM"
	}
	text := strings.ToLower(at.Format(layout)) + " (" + zone.String() + ")"
	if time.Until(at) > 24*time.Hour {
		text = at.Format("Jan 2, ") + text
	}
	return text
}

// limits are the numbers in the API's words about a prompt that is too long.
var limits = regexp.MustCompile(`(\d+) tokens > (\d+) maximum`)

func tooLong(said string) string {
	n := limits.FindStringSubmatch(said)
	if n == nil {
		return "Prompt is too long"
	}
	return "Prompt is too long · the request is ~" + n[1] + " tokens (limit " + n[2] + ") but this conversation is only ~2781 tokens — " +
		"the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; " +
		"reduce attached files/tools or start with less context."
}

// gateway is where the client says to look when the API is overloaded.
func gateway(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return "your inference gateway (" + u.Host + ")"
	}
	return "https://status.claude.com"
}

// answer has the model answer: one request, and one more after each tool it
// calls. acted says that it called one.
func (s *session) answer(ctx context.Context, prompts, system []string) (reply string, acted bool, err error) {
	if s.service != nil {
		return s.answerByService(ctx, prompts, system)
	}
	text := strings.Join(prompts, "\n")
	if len(prompts) == 0 {
		text = strings.Join(system, "\n")
	}
	s.request(append(s.job.carried, prompts...), system)
	s.job.carried = nil
	done := s.thinking()
	defer done()
	a := answer{session: s, to: text}
	if err := a.readTask(ctx); err != nil {
		return "", a.acted, err
	}
	steps, err := s.model.Answer(a.to)
	if err != nil {
		return "", a.acted, &apiFailure{kind: "unknown", message: err.Error()}
	}
	for _, step := range steps {
		if step.Empty && !s.job.asked && ctx.Err() == nil {
			a.think(ctx)
			s.job.asked = true
			s.userText(askAgain, field{"isMeta", true})
			reply, more, err := s.answer(ctx, []string{askAgain}, nil)
			return reply, a.acted || more, err
		}
		if err := cmp.Or(a.take(ctx, step), ctx.Err()); err != nil {
			return "", a.acted, err
		}
	}
	if !a.replied {
		a.think(ctx)
		a.reply = s.say(ctx, script.Fill(script.DefaultReply, a.to))
	}
	return a.reply, a.acted, ctx.Err()
}

// answer is how far the model is with one.
type answer struct {
	*session
	to      string // the prompts
	reply   string
	replied bool
	thought bool // since the last tool
	acted   bool // called a tool
}

// mostShown bounds what the transcript has of a file that the model reads.
const mostShown = 2000

// readTask reads the file that the prompt says its task is in: that is then what the model
// is asked. If it may not read it, it is asked what it was.
func (a *answer) readTask(ctx context.Context) error {
	path := script.TaskFile(a.to)
	if path == "" {
		return nil
	}
	task, err := os.ReadFile(path)
	if err != nil {
		return nil // it says what it says to the prompt
	}
	a.acted = true
	err = a.useTool(ctx, newCall(script.Step{
		Tool: "Read", Input: map[string]any{"file_path": path}, Result: strings.ToValidUTF8(string(task[:min(len(task), mostShown)]), ""),
	}))
	if !a.job.result.IsError {
		a.to = string(task)
	}
	a.requestAgain(ctx, err)
	return err
}

// think takes the time that the model thinks, unless a step has taken it.
func (a *answer) think(ctx context.Context) {
	if !a.thought {
		sleep(ctx, a.model.ThinkTime())
	}
}

// take takes a step of the script.
func (a *answer) take(ctx context.Context, step script.Step) error {
	switch {
	case ctx.Err() != nil:
	case step.Delay > 0:
		sleep(ctx, time.Duration(step.Delay))
		a.thought = true
	case step.Await != "":
		a.await(ctx, step.Await)
		a.thought = true
	case step.Reply != nil:
		a.think(ctx)
		a.reply, a.replied = a.say(ctx, script.Fill(*step.Reply, a.to)), true
	case step.Empty:
		a.think(ctx)
		a.reply, a.replied = a.job.lastReply, true
	case step.Tool != "" || step.Background != "" || step.Subagent != nil:
		a.think(ctx)
		a.acted, a.thought, a.replied = true, false, false
		err := a.useTool(ctx, newCall(step))
		a.requestAgain(ctx, err)
		return err
	default:
		return a.mishap(ctx, step)
	}
	return nil
}

// askAgain is what the client says, once a prompt, to a model that has said
// nothing. When it says nothing again, hooks are told of its last words.
const askAgain = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"

// midTurn is how the model is told of what is typed while it works.
const midTurn = "The user sent a new message while you were working:\n%s\n\nThis is how Claude Code surfaces messages the user sends mid-turn — " +
	"within the running turn, often alongside the next tool result, rather than as a separate conversation turn. " +
	"Address the message above as you continue this turn."

// requestAgain is the request that carries a tool's result, and what was
// typed meanwhile.
func (s *session) requestAgain(ctx context.Context, err error) {
	if err != nil || ctx.Err() != nil {
		return
	}
	texts, system := s.takeWaiting("remove")
	for i, text := range texts {
		texts[i] = fmt.Sprintf(midTurn, text)
	}
	s.request(texts, system)
}

func (s *session) thinking() (done func()) {
	if s.term == nil {
		return func() {}
	}
	return s.term.spin("esc to interrupt")
}

// say is the model's words, unless it was interrupted before them.
func (s *session) say(ctx context.Context, reply string) string {
	if ctx.Err() == nil {
		s.assistantContent("end_turn", textBlock{"text", reply})
		s.show("● " + reply)
	}
	return reply
}

// mishap is what can happen to a request or to the client itself.
func (s *session) mishap(ctx context.Context, step script.Step) error {
	switch {
	case step.Fail != "":
		sleep(ctx, s.model.ThinkTime())
		return s.apiFails(step)
	case step.Hang:
		<-ctx.Done()
	case step.Crash:
		die()
	case step.Exit != nil:
		s.exit(*step.Exit)
		<-ctx.Done()
	case step.Print != "":
		for range max(1, step.Repeat) {
			if s.term == nil || ctx.Err() != nil {
				break
			}
			s.term.send(step.Print)
		}
	default:
		return errors.New("the step says nothing to do")
	}
	return nil
}

// sleep waits, or until ctx ends.
// await waits for a file, which a relative path names in the workspace.
func (s *session) await(ctx context.Context, path string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.cwd, path)
	}
	for ctx.Err() == nil {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		sleep(ctx, 20*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
