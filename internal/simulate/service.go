package simulate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/simulate/script"
)

// service is the API that answers in a script's place, with --api: what the model
// sees, and what it costs, is then known by somebody else than the stand-in.
type service struct {
	url, key, token string
	retries         int
	// said is the conversation, as each request has it; owned by the job.
	said []spoken
}

// spoken is a message of a request.
type spoken struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// serviceAnswer is the service's.
type serviceAnswer struct {
	ID      string         `json:"id"`
	Content []serviceBlock `json:"content"`
	Usage   tokens         `json:"usage"`
}

type serviceBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

// defaultRetries is how often the client repeats a request that was refused, and
// maxAnswer bounds what is read of an answer.
const (
	defaultRetries = 10
	maxAnswer      = 16 << 20
)

// openService is the service that the client's environment names.
func (s *session) openService() (*service, error) {
	c := &service{url: s.setting("ANTHROPIC_BASE_URL"), key: s.setting("ANTHROPIC_API_KEY"), token: s.setting("CLAUDE_CODE_OAUTH_TOKEN"), retries: defaultRetries}
	if c.url == "" {
		return nil, errors.New("--api asks the API at ANTHROPIC_BASE_URL, which is not set")
	}
	if n, err := strconv.Atoi(s.setting("CLAUDE_CODE_MAX_RETRIES")); err == nil && n >= 0 {
		c.retries = n
	}
	return c, nil
}

// hears adds to the conversation what the next request brings: it follows the
// results of tools in one message.
func (c *service) hears(prompts, system []string) {
	var blocks []any
	for _, p := range prompts {
		blocks = append(blocks, textBlock{"text", p})
	}
	if n := len(c.said); n > 0 && c.said[n-1].Role == "user" && blocks != nil {
		if results, ok := c.said[n-1].Content.([]any); ok {
			c.said[n-1].Content = append(results, blocks...)
			blocks = nil
		}
	}
	if blocks != nil {
		c.said = append(c.said, spoken{"user", blocks})
	}
	if len(system) > 0 {
		c.said = append(c.said, spoken{"system", strings.Join(system, "\n\n")})
	}
}

// answerByService is answer where the service says what the model does.
func (s *session) answerByService(ctx context.Context, prompts, system []string) (reply string, acted bool, err error) {
	s.request(append(s.job.carried, prompts...), system)
	s.job.carried = nil
	done := s.thinking()
	defer done()
	for {
		if err := s.compact(ctx); err != nil {
			return "", acted, err
		}
		a, err := s.askService(ctx, s.service.said)
		if err != nil {
			return "", acted, err
		}
		s.meter.told(a.ID, a.Usage)
		s.service.said = append(s.service.said, spoken{"assistant", a.Content})
		var results []any
		for _, b := range a.Content {
			if b.Type == "text" {
				reply = s.say(ctx, b.Text)
				continue
			}
			acted = true
			err := s.useTool(ctx, callOf(b))
			results = append(results, s.job.result)
			if err != nil {
				return "", acted, err
			}
		}
		if results == nil || ctx.Err() != nil {
			return reply, acted, ctx.Err()
		}
		s.service.said = append(s.service.said, spoken{"user", results})
		s.requestAgain(ctx, nil)
	}
}

// compactAt is from how many percent of its context window on the client has a
// conversation summed up (2.1.329).
const compactAt = 95

// sumUp asks for what a conversation goes on from when it is full, wentOn begins it.
const (
	sumUp  = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far."
	wentOn = "This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\nSummary:\n"
)

// compact has a full conversation summed up, and goes on from the summary and what was
// said last: its answer is in no transcript.
func (s *session) compact(ctx context.Context) error {
	s.meter.mu.Lock()
	full := s.meter.usage.context()*100 >= s.script.Window()*compactAt
	s.meter.mu.Unlock()
	n := len(s.service.said)
	if !full || n < 2 {
		return nil
	}
	last := s.service.said[n-1]
	a, err := s.askService(ctx, append(s.service.said[:n-1:n-1], spoken{"user", []any{textBlock{"text", sumUp}}}))
	if err != nil {
		return err
	}
	s.meter.adds(a.Usage)
	var text strings.Builder
	text.WriteString(wentOn)
	for _, b := range a.Content {
		text.WriteString(b.Text)
	}
	s.record("system", field{"subtype", "compact_boundary"}, field{"content", "Conversation compacted"})
	s.userText(text.String(), field{"isCompactSummary", true})
	s.meter.mu.Lock()
	s.meter.usage = tokens{}
	s.meter.mu.Unlock()
	s.service.said = []spoken{{"user", []any{textBlock{"text", text.String()}}}, last}
	return nil
}

// callOf is the use of a tool that the service asks for.
func callOf(b serviceBlock) toolCall {
	var in struct {
		bashInput
		Prompt string `json:"prompt"`
	}
	_ = json.Unmarshal(b.Input, &in) // what does not fit is not there
	step := script.Step{Tool: b.Name, Description: in.Description}
	_ = json.Unmarshal(b.Input, &step.Input)
	switch {
	case b.Name == "Agent":
		step.Subagent = &in.Prompt
	case b.Name == "Bash" && in.Background:
		step.Tool, step.Background = "", in.Command
	case b.Name == "Bash":
		step.Command = in.Command
	}
	c := newCall(step)
	c.id = b.ID
	return c
}

// askService sends a request, and repeats it as the client does.
func (s *session) askService(ctx context.Context, conversation []spoken) (serviceAnswer, error) {
	for try := 0; ; try++ {
		a, again, err := s.askServiceOnce(ctx, conversation)
		if err == nil || !again || try >= s.service.retries || ctx.Err() != nil {
			return a, err
		}
		sleep(ctx, min(600*time.Millisecond<<try, 38*time.Second))
	}
}

// askServiceOnce sends a request once. again is true where the client tries it another time.
func (s *session) askServiceOnce(ctx context.Context, conversation []spoken) (a serviceAnswer, again bool, err error) {
	body := encode(map[string]any{"model": s.args.model, "max_tokens": 32_000, "messages": conversation})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.service.url+"/v1/messages?beta=true", bytes.NewReader(body))
	if err != nil {
		return a, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Claude-Code-Session-Id", s.sessionID())
	if s.service.key != "" {
		req.Header.Set("X-Api-Key", s.service.key)
	} else {
		req.Header.Set("Authorization", "Bearer "+s.service.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if ctx.Err() != nil {
		return a, false, ctx.Err()
	}
	if err != nil {
		return a, true, s.apiFails(script.Step{Fail: "server_error"})
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	s.limitsIn(resp.Header)
	switch {
	case ctx.Err() != nil:
		return a, false, ctx.Err()
	case resp.StatusCode >= 400:
		failure, again := s.refusedWith(resp, answer)
		return a, again, failure
	case err == nil:
		err = json.Unmarshal(answer, &a)
	}
	if err != nil { // the connection broke
		return a, true, s.apiFails(script.Step{Fail: "server_error"})
	}
	return a, false, nil
}

// unified begins the names of the headers about a subscription's limits.
const unified = "Anthropic-Ratelimit-Unified-"

// limitsIn has the status line told of the limits that an answer's headers name. With a
// key the client tells it nothing of them.
func (s *session) limitsIn(h http.Header) {
	if s.service.key != "" {
		return
	}
	limits := map[string]any{}
	for name, short := range map[string]string{"five_hour": "5h", "seven_day": "7d"} {
		used, err := strconv.ParseFloat(h.Get(unified+short+"-Utilization"), 64)
		resets, also := strconv.ParseInt(h.Get(unified+short+"-Reset"), 10, 64)
		if err == nil && also == nil {
			limits[name] = map[string]any{"used_percentage": used * 100, "resets_at": resets}
		}
	}
	if len(limits) == 0 {
		return
	}
	s.meter.mu.Lock()
	s.script.Limits = limits
	s.meter.mu.Unlock()
	s.spent()
}

// refusedWith is what the client makes of an answer that is an error. A subscription's
// limit is not tried again.
func (s *session) refusedWith(resp *http.Response, body []byte) (f *apiFailure, again bool) {
	var told struct {
		Error struct{ Message string }
	}
	_ = json.Unmarshal(body, &told) // a proxy says something else
	kind := kindOf(resp.StatusCode, told.Error.Message)
	f = s.apiFails(script.Step{Fail: kind, Message: told.Error.Message})
	again = kind == "rate_limit" || kind == "server_error" || kind == "authentication_failed"
	if resp.Header.Get("X-Should-Retry") == "false" {
		again = false
	}
	resets, err := strconv.ParseInt(resp.Header.Get(unified+"Reset"), 10, 64)
	if kind == "rate_limit" && s.service.key == "" && err == nil && resp.Header.Get(unified+"Status") == "rejected" {
		name := "limit"
		if resp.Header.Get(unified+"Representative-Claim") == "seven_day" {
			name = "weekly limit"
		}
		f.message, again = "You've hit your "+name+" · resets "+s.clock(time.Unix(resets, 0)), false
	}
	return f, again
}

// kindOf is the client's word for an error of the service.
func kindOf(status int, message string) string {
	for kind, known := range statuses {
		if known == status && kind != "billing_error" && kind != "invalid_request" {
			return kind
		}
	}
	switch {
	case status == http.StatusForbidden:
		return "authentication_failed"
	case status >= 500:
		return "server_error"
	case strings.Contains(message, "credit balance"):
		return "billing_error"
	case strings.Contains(message, "too long"):
		return "invalid_request"
	}
	return "unknown"
}

// recall is the conversation that a transcript has, for a session that goes on with it.
func (c *service) recall(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		var r struct {
			Type    string
			Message struct {
				Role, Model string
				Content     json.RawMessage
			}
		}
		if json.Unmarshal(line, &r) == nil && cmp.Or(r.Message.Role, r.Type) == r.Type && r.Message.Content != nil && r.Message.Model != synthetic {
			c.said = append(c.said, spoken{r.Type, r.Message.Content})
		}
		if err != nil {
			return
		}
	}
}

// subagentSays is a subagent's answer to its task, and what that has cost; false: there
// is none.
func (s *session) subagentSays(task string) (message string, u tokens, text string, ok bool) {
	a, err := s.askService(s.life, []spoken{{"user", task}})
	if err != nil {
		return "", u, fmt.Sprintf("it failed: %v", err), false
	}
	for _, b := range a.Content {
		text += b.Text
	}
	s.meter.adds(a.Usage)
	return a.ID, a.Usage, text, true
}
