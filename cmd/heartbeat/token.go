package main

import (
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
func provenBy(k *access.Keeper, token string) (string, error) {
	if token == "" {
		return "", errNoTokenGiven
	}
	t, err := k.FindCommand(token)
	if errors.Is(err, access.ErrNone) {
		return "", errWrongToken
	}
	return t.Name, err
}

// mayHand refuses who has no token to make or end some of a fleet whose approvals need one,
// once it has one for the command line: who passes for a person alone could give one to
// itself.
func (c tokenFlag) mayHand(a *app, f *config.Fleet, k *access.Keeper) error {
	if has, err := k.HasCommand(); err != nil || !has || !consent.ByPage(f) {
		return err
	}
	token, err := c.token(a)
	if err == nil {
		_, err = provenBy(k, token)
	}
	return err
}
