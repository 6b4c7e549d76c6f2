package e2e

import (
	"net/http"
	"path/filepath"
	"time"

	"heartbeat/internal/fakeapi"
)

// behaviour is what the model does with a prompt, for either client.
type behaviour struct {
	match      string
	times      int // 0: always
	bash       string
	background string
	reply      string
	delay      time.Duration
	fail       string // an error kind as StopFailure names it
	hang       bool
}

// failures are the API's answers behind the kinds of StopFailure that the
// client 2.1.329 gives up on at once.
var failures = map[string]fakeapi.Answer{
	"server_error": {
		Status: 500, ErrorType: "api_error", Message: "made up", Header: http.Header{"X-Should-Retry": {"false"}},
	},
	"rate_limit": {
		Status: 429, ErrorType: "rate_limit_error", Message: "made up", Header: http.Header{"X-Should-Retry": {"false"}},
	},
}

func (b behaviour) rule() fakeapi.Rule {
	r := fakeapi.Rule{Match: b.match, Times: b.times}
	said := fakeapi.Answer{Text: b.reply, Delay: b.delay}
	switch {
	case b.fail != "":
		r.Answer = failures[b.fail]
	case b.hang:
		r.Answer = fakeapi.Answer{Hang: fakeapi.HangAfterHeaders}
	case b.bash != "":
		r.Answer, r.Then = fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash(b.bash)}}, []fakeapi.Answer{said}
	case b.background != "":
		r.Answer, r.Then = fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.BackgroundBash(b.background)}}, []fakeapi.Answer{said}
	default:
		r.Answer = said
	}
	return r
}

func (b behaviour) scripted() map[string]any {
	var steps []map[string]any
	switch {
	case b.fail != "":
		steps = append(steps, map[string]any{"fail": b.fail})
	case b.hang:
		steps = append(steps, map[string]any{"hang": true})
	case b.bash != "":
		steps = append(steps, map[string]any{"tool": "Bash", "command": b.bash})
	case b.background != "":
		steps = append(steps, map[string]any{"background": b.background})
	}
	if b.delay > 0 {
		steps = append(steps, map[string]any{"delay": b.delay.String()})
	}
	if b.fail == "" && !b.hang {
		steps = append(steps, map[string]any{"reply": b.reply})
	}
	rule := map[string]any{"match": b.match, "steps": steps}
	if b.times > 0 {
		rule["times"], rule["once-file"] = b.times, "used-"+b.match
	}
	return rule
}

// teach gives the model behind the client its behaviours, the first that
// matches counts; everything else is answered with "ok".
func (f *fleet) teach(bs ...behaviour) {
	f.t.Helper()
	var rules []map[string]any
	for _, b := range append(bs, behaviour{reply: "ok"}) {
		if f.client.real {
			f.API.Add(b.rule())
			continue
		}
		r := b.scripted()
		if name, ok := r["once-file"].(string); ok {
			r["once-file"] = filepath.Join(f.Dir, name)
		}
		rules = append(rules, r)
	}
	if !f.client.real {
		f.WriteJSON(filepath.Join(f.Dir, "script.json"), map[string]any{"think": "20ms", "rules": rules})
	}
}

// turns gives the model behind the client what it does in whole turns.
func (f *fleet) turns(turns ...turn) {
	f.t.Helper()
	if f.client.real {
		f.API.Add(apiRules(turns)...)
		return
	}
	f.WriteJSON(filepath.Join(f.Dir, "script.json"), simulateScript(turns))
}
