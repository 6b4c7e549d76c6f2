package client

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/foreign"
)

// Tokens counts the tokens of calls of the model by the class in which they are billed.
// The classes do not overlap: what was sent again and read from the cache is CacheRead.
type Tokens struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// All is their sum.
func (t Tokens) All() int64 { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// Plus is the sum of two.
func (t Tokens) Plus(u Tokens) Tokens {
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.CacheRead + u.CacheRead, t.CacheWrite + u.CacheWrite}
}

// Minus takes away what was counted before.
func (t Tokens) Minus(u Tokens) Tokens {
	return Tokens{t.Input - u.Input, t.Output - u.Output, t.CacheRead - u.CacheRead, t.CacheWrite - u.CacheWrite}
}

// Weight returns the relative cost of tokens: at the list prices of all models, an
// output token costs five times as much as an input token, one that is written to the
// cache 1.25 times, one that is read from it a tenth (July 2026).
func (t Tokens) Weight() float64 {
	return float64(t.Input) + 5*float64(t.Output) + 0.1*float64(t.CacheRead) + 1.25*float64(t.CacheWrite)
}

// Spending is what a line of a transcript tells about the cost of the conversation. An
// agent can write it: impossible figures become zero.
type Spending struct {
	At time.Time
	// Asks is true for a question to the model, from whomever: a turn begins.
	Asks bool
	// AsksAgain is true for results of tools, which go to the model again. Cut is true for
	// the result of a tool that a person has interrupted, which does not.
	AsksAgain, Cut bool
	// Message is the id of the model's answer. Several lines may have it; the Tokens of
	// the last one count.
	Message string
	Tokens  Tokens
	// Calls is true where the answer calls tools, whose results follow.
	Calls bool
	// Fails is true if the client says, in place of the model, that there was no answer.
	Fails bool
	// Compacts is true where the client has had the conversation summed up: a call of
	// the model of which the transcript has no answer.
	Compacts bool
	// Cost is what the conversation has cost so far, in dollars; 0: it is not told.
	// Whole is what it has taken, by the client's own count: all its calls, also those
	// that the transcript does not have. Guessed is true where the client does not know
	// a model's price, and takes another one's.
	Cost    float64
	Whole   Tokens
	Guessed bool
}

// maxTokens is more than one call can use of any class.
const maxTokens = 20e6

// maxWhole is more than a conversation can use of any class with one model.
const maxWhole = 1e12

// spending: of 2.1.329 {"type":"assistant","message":{"id":…,"model":…,"usage":
// {"input_tokens":…}},"timestamp":…}, one line for each block of the answer, all
// with the usage of the whole; with model "<synthetic>" what the client says itself.
// {"type":"cost-state","totalCostUSD":…,"modelUsage":{MODEL:{"inputTokens":…}}} stands at
// the end of a client's life, and is of the conversation since its beginning.
func spending(line []byte) (s Spending, tells bool) {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	switch user := has(`"type":"user"`); {
	case user && has(`"type":"tool_result"`): // may be long, and its text is not needed
		s.Cut = has(notes[0])
		s.AsksAgain = !s.Cut
		return s, true
	case user, has(`"usage":`), has(`"cost-state"`):
		return readSpending(line)
	}
	return s, false
}

// spendingLine is what a line of the transcript holds about spending.
type spendingLine struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	Summary   bool            `json:"isCompactSummary"`
	Total     float64         `json:"totalCostUSD"`
	Guessed   bool            `json:"hasUnknownModelCost"`
	Models    json.RawMessage `json:"modelUsage"`
	Message   struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   struct {
			Input      float64 `json:"input_tokens"`
			Output     float64 `json:"output_tokens"`
			CacheRead  float64 `json:"cache_read_input_tokens"`
			CacheWrite float64 `json:"cache_creation_input_tokens"`
		} `json:"usage"`
	} `json:"message"`
}

func readSpending(line []byte) (s Spending, tells bool) {
	var r spendingLine
	if json.Unmarshal(line, &r) != nil {
		return s, false
	}
	s.At, _ = time.Parse(time.RFC3339Nano, r.Timestamp)
	switch {
	case r.Type == "cost-state":
		s.Cost, s.Guessed = within(r.Total, maxCost), r.Guessed
		var models map[string]struct {
			Input      float64 `json:"inputTokens"`
			Output     float64 `json:"outputTokens"`
			CacheRead  float64 `json:"cacheReadInputTokens"`
			CacheWrite float64 `json:"cacheCreationInputTokens"`
		}
		if len(r.Models) > 0 && foreign.Unmarshal(r.Models, &models) != nil {
			return s, false
		}
		for _, m := range models {
			s.Whole = s.Whole.Plus(Tokens{whole(m.Input), whole(m.Output), whole(m.CacheRead), whole(m.CacheWrite)})
		}
		return s, s.Cost > 0
	case r.Type == "user":
		said := texts(r.Message.Content)
		s.Compacts = r.Summary
		s.Asks = !r.Summary && len(said) > 0 && !slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(said[0], note) })
		return s, s.Asks || s.Compacts
	case r.Type == "assistant" && r.Message.Model == "<synthetic>":
		s.Fails = true
		return s, true
	case r.Type == "assistant" && r.Message.ID != "" && len(r.Message.ID) <= maxID:
		u := r.Message.Usage
		s.Message, s.Tokens = r.Message.ID, Tokens{counted(u.Input), counted(u.Output), counted(u.CacheRead), counted(u.CacheWrite)}
		s.Calls = bytes.Contains(r.Message.Content, []byte(`"type":"tool_use"`)) // in a text its quotes are escaped
		return s, true
	}
	return s, false
}

// notes begin what the client itself notes in the person's name, without asking the
// model.
var notes = []string{"[Request interrupted by user", "<command-name>", "<local-command-", "Caveat: "}

// maxID limits the length of the ids that are kept.
const maxID = 256

func whole(n float64) int64 { return int64(math.Round(within(n, maxWhole))) }

func counted(n float64) int64 { return int64(math.Round(within(n, maxTokens))) }

// subagents returns the folder with the transcripts of a conversation's subagents.
func subagents(transcript string) string {
	return filepath.Join(strings.TrimSuffix(transcript, ".jsonl"), "subagents")
}
