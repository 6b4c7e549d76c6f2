package probe

import (
	"net/http"
	"slices"

	"heartbeat/hook/client"
	"heartbeat/internal/fakeapi"
)

// asked has the model do things, one after the other, when it is asked something that
// contains match.
func asked(match string, does ...fakeapi.Answer) fakeapi.Rule {
	return fakeapi.Rule{Match: match, Answer: does[0], Then: does[1:]}
}

// says is an answer in words, and runs and starts ones that call a tool.
func says(text string) fakeapi.Answer { return fakeapi.Answer{Text: text} }

// fills is an answer in words that fills some of a context window.
func fills(text string) fakeapi.Answer {
	return fakeapi.Answer{Text: text, Usage: fakeapi.Usage{Input: 40_000, Output: 5}}
}

func runs(command string) fakeapi.Answer {
	return fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash(command)}}
}

// triesBeside is an answer that calls each of the client's tools beside the prompt, the one
// last after which others would ask a person.
func triesBeside() (a fakeapi.Answer) {
	for _, b := range slices.Backward(client.Claude.Beside) {
		a.Tools = append(a.Tools, fakeapi.ToolUse{Name: b.Tool, Input: b.Input})
	}
	return a
}

func starts(command string) fakeapi.Answer {
	return fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.BackgroundBash(command)}}
}

// refusals are what the service says, for the client's kinds of failures (2.1.329). It
// says that there is no use in asking again.
var refusals = map[string]fakeapi.Answer{
	"rate_limit":            {Status: 429, ErrorType: "rate_limit_error", Message: "slow down", Header: http.Header{"X-Should-Retry": {"false"}}},
	"server_error":          {Status: 529, ErrorType: "overloaded_error", Message: "Overloaded", Header: http.Header{"X-Should-Retry": {"false"}}},
	"authentication_failed": {Status: 401, ErrorType: "authentication_error", Message: "invalid x-api-key", Header: http.Header{"X-Should-Retry": {"false"}}},
}
