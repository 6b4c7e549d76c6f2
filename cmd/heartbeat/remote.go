package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"heartbeat/orchestrator/remote"
)

// local are the commands that are about this machine, and what to do instead.
var local = map[string]string{
	"run":        "it stays in the foreground of its machine: heartbeat service install --host HOST",
	"alive":      "it is for the session that runs it",
	"launch":     "it runs a command here",
	"simulate":   "it stands in for a client here",
	"init":       "it writes a file here; edit one there by ssh",
	"help":       "it is the same everywhere",
	"explain":    "it is the same everywhere",
	"schema":     "it is the same everywhere",
	"completion": "it is the same everywhere",
	"man":        "it is the same everywhere",
	"__complete": "it is for the shell here",
}

// remotely runs a command line on the hosts that it names.
func remotely(args []string, p parsed, std stdio, out *output) int {
	hosts := p.cli.Host
	if why := local[p.name]; why != "" {
		return out.finish(nil, usagef("heartbeat help remote", "--host does not go with %s: %s", p.name, why))
	}
	if err := checkPerson(p.command); err != nil { // there nobody can tell whose process asks
		return out.finish(nil, err)
	}
	for _, host := range hosts {
		if err := remote.Check(host); err != nil {
			return out.finish(nil, usagef("heartbeat help remote", "--host: %w", err))
		}
	}
	status, isStatus := p.command.(*statusCmd)
	args = withoutHost(args)
	if len(hosts) > 1 {
		if !isStatus || status.Watch {
			return out.finish(nil, usagef("heartbeat help remote", "only status takes several hosts, and without --watch"))
		}
		stop := out.beat(p.cli.beatEvery())
		res, err := askHosts(context.Background(), hosts, args, out.json)
		stop()
		return out.finish(res, err)
	}
	call := remote.Call{
		Host: hosts[0], Args: args, Input: p.name == "send" || readsToken(p.command),
		Terminal: !out.json && staysOpen(p.command) && isTerminal(std.in) && isTerminal(std.out),
	}
	code, err := call.Run(std.in, std.out, std.err)
	if err != nil {
		return out.finish(nil, err)
	}
	return code
}

// readsToken reports whether a command reads a token from stdin.
func readsToken(c command) bool {
	switch c := c.(type) {
	case *approvalCmd:
		return c.TokenFile == "-"
	case *pageCmd:
		return c.TokenFile == "-"
	}
	return false
}

// staysOpen reports whether a command shows or takes something until it is left: it
// gets a terminal, whose end is its end.
func staysOpen(c command) bool {
	switch c := c.(type) {
	case *attachCmd, *editCmd:
		return true
	case *statusCmd:
		return c.Watch
	case *screenCmd:
		return c.Watch
	case *logsCmd:
		return c.Follow
	case *eventsCmd:
		return c.Follow
	case *repliesCmd:
		return c.Follow
	}
	return false
}

// withoutHost removes --host from a command line.
func withoutHost(args []string) []string {
	kept := []string{}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(kept, args[i:]...)
		case args[i] == "--host":
			i++
		case !strings.HasPrefix(args[i], "--host="):
			kept = append(kept, args[i])
		}
	}
	return kept
}

// hostAnswer is what one host has said.
type hostAnswer struct {
	Host string `json:"host"`
	// Data is as the command's, Error as an envelope's.
	Data     json.RawMessage `json:"data"`
	Error    *errorDoc       `json:"error"`
	Warnings []string        `json:"warnings,omitempty"`
	text     []byte
}

// hostAnswers are in the order in which the hosts were named.
type hostAnswers []hostAnswer

// askHosts asks all hosts at once. A host that does not answer does not hide the
// others.
func askHosts(ctx context.Context, hosts, args []string, asJSON bool) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	answers := make(hostAnswers, len(hosts))
	failed := make([]error, len(hosts))
	var asking sync.WaitGroup
	for i, host := range hosts {
		asking.Go(func() {
			answers[i], failed[i] = askHost(ctx, remote.Call{Host: host, Args: args}, asJSON)
		})
	}
	asking.Wait()
	if failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil }); len(failed) > 0 {
		// Each is said below its host.
		return answers, &failure{
			status: exitError, hint: hintOf(failed[0]), err: fmt.Errorf("cannot ask %d of %s", len(failed), count(len(hosts), "host")),
		}
	}
	return answers, nil
}

func askHost(ctx context.Context, call remote.Call, asJSON bool) (hostAnswer, error) {
	answer := hostAnswer{Host: call.Host, Data: json.RawMessage("null")}
	out, status, err := call.Ask(ctx)
	if err == nil && asJSON {
		err = answer.read(out)
	}
	if err == nil && status != exitOK && answer.Error == nil {
		err = fmt.Errorf("cannot ask %q: heartbeat ended there with status %d", call.Host, status)
	}
	if err != nil {
		answer.Error = &errorDoc{Code: "host", Message: err.Error(), Hint: hintOf(err)}
		return answer, err
	}
	answer.text = out
	if answer.Error != nil {
		return answer, fmt.Errorf("cannot ask %q: %s", call.Host, answer.Error.Message)
	}
	return answer, nil
}

// read takes the envelope, the last line.
func (h *hostAnswer) read(out []byte) error {
	out = bytes.TrimSpace(out)
	e := struct {
		Data     json.RawMessage `json:"data"`
		Error    *errorDoc       `json:"error"`
		Warnings []string        `json:"warnings"`
	}{}
	if err := json.Unmarshal(out[bytes.LastIndexByte(out, '\n')+1:], &e); err != nil {
		return fmt.Errorf("cannot read what %q has answered: %w", h.Host, err)
	}
	if len(e.Data) > 0 {
		h.Data = e.Data
	}
	h.Error, h.Warnings = e.Error, e.Warnings
	return nil
}

func (h hostAnswers) text(p *page) {
	for i, answer := range h {
		if i > 0 {
			p.printf("\n")
		}
		p.coloured(p.cyan, answer.Host)
		p.printf("\n")
		if answer.Error != nil {
			p.coloured(p.red, "    "+answer.Error.Message)
			p.printf("\n")
		}
		p.whole("    ", string(answer.text))
	}
}
