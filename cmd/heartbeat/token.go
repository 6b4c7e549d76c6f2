package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/page/access"
)

// tokenFlag takes a token of `heartbeat page token`. It is never an argument, which every
// user of the machine sees, nor a variable, which each process of the user sees.
type tokenFlag struct {
	TokenFile string `placeholder:"FILE" help:"A file with a token of heartbeat page token, or - for stdin; without it a terminal is asked. Needed with approvals: {by: page}." complete:"file"`
}

// mostToken is the largest file that can be a token.
const mostToken = 4 << 10

// token reads the token: of the file, of stdin, or as a person types it, unseen.
func (c tokenFlag) token(a *app) (string, error) {
	var data []byte
	var err error
	switch {
	case c.TokenFile == "-":
		data, err = io.ReadAll(io.LimitReader(a.in, mostToken))
	case c.TokenFile != "":
		data, err = durable.Read(c.TokenFile, mostToken)
	case isTerminal(a.in):
		return a.typedToken()
	default:
		return "", errNoTokenGiven
	}
	if err == nil {
		data, err = config.Written(data)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// typedToken asks for the token. The terminal shows nothing of it, from the question on.
func (a *app) typedToken() (string, error) {
	before, err := term.MakeRaw(int(a.in.Fd()))
	if err != nil {
		return "", fmt.Errorf("cannot ask for the token: %w", err)
	}
	defer func() { _ = term.Restore(int(a.in.Fd()), before) }()
	text, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{a.in, a.stdio.err}, "").ReadPassword("token: ")
	if errors.Is(err, io.EOF) { // or Ctrl-C
		return "", errNoTokenGiven
	}
	return strings.TrimSpace(text), err
}

// tokenError is that nobody has proven to be a person.
type tokenError struct{ what string }

func (e tokenError) Error() string { return e.what }

// Hint says how to.
func (tokenError) Hint() string {
	return "heartbeat page token makes one; give it when a terminal is asked, or with --token-file - on stdin: heartbeat help approvals"
}

var (
	errNoTokenGiven error = tokenError{"only who has a token may (approvals: {by: page}), and none is given"}
	errWrongToken   error = tokenError{"only who has a token may (approvals: {by: page}), and this is not one, or it has ended"}
)

// provenBy returns what a token for the command line is called.
func provenBy(ctx context.Context, k *access.Keeper, token string) (string, error) {
	if token == "" {
		return "", errNoTokenGiven
	}
	t, err := k.FindCommand(ctx, token)
	if errors.Is(err, access.ErrNone) {
		return "", errWrongToken
	}
	return t.Name, err
}

// needsProof reports whether only who has a token may give an order, once there is one for the
// command line: who passes for a person alone could give one to itself.
func needsProof(f *config.Fleet, o access.Order) bool { return !o.Looks() && consent.ByPage(f) }

// hand carries out an order of a person, for a run or without one.
func hand(ctx context.Context, f *config.Fleet, k *access.Keeper, o access.Order, token string) (access.Done, error) {
	if needsProof(f, o) && k.HasCommand() {
		if _, err := provenBy(ctx, k, token); err != nil {
			return access.Done{}, err
		}
	}
	done, err := k.Do(ctx, o)
	hint := ""
	switch {
	case errors.Is(err, access.ErrNone):
		hint = "heartbeat page tokens lists them"
	case errors.Is(err, access.ErrMany) && o.Do == access.MakeLink:
		hint = "heartbeat page revoke --all, or wait ten minutes"
	case errors.Is(err, access.ErrMany):
		hint = "heartbeat page revoke NAME"
	}
	if hint != "" {
		err = &failure{exitError, hint, err}
	}
	return done, err
}
