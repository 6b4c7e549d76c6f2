package hook

import (
	"fmt"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// denial is the answer to a PermissionRequest.
func denial(p *client.Event) []byte {
	answer, err := client.Claude.Hooks.Deny(fmt.Sprintf(client.DenialBegins+"%s: nobody is there to answer a permission dialog. "+
		"To allow it, a person adds %q to this agent's permissions.allow in heartbeat.yaml and runs: heartbeat apply",
		what(p), rule(p)))
	if err != nil {
		return nil // strings only: cannot happen
	}
	return answer
}

func refused(p *client.Event) string {
	return "permission refused: " + what(p) + "; allow it by " + rule(p)
}

// what describes the tool call that was refused.
func what(p *client.Event) string {
	if d := detail(p); d != "" {
		return p.Tool.Name + "(" + foreign.Short(d, 200) + ")"
	}
	return p.Tool.Name
}

// rule returns the allow rule that would allow the call.
func rule(p *client.Event) string {
	return foreign.Short(client.AllowRule(p.Tool.Name, p.Tool.Command), 120)
}

// detail returns the part of a tool's input by which a person recognises the call.
func detail(p *client.Event) string {
	for _, s := range []string{p.Tool.Command, p.Tool.Path, p.Tool.URL, p.Tool.Query} {
		if s != "" {
			return s
		}
	}
	return ""
}
