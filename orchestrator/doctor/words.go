package doctor

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// words splits the first simple command of a hook's command line roughly as
// /bin/sh does. Variables stay as they are written; closed reports whether
// its standard input comes from elsewhere than the client.
func words(command string) (list []string, closed bool) {
	var word strings.Builder
	open, quote := false, byte(0)
	flush := func() {
		if open {
			list = append(list, word.String())
		}
		word.Reset()
		open = false
	}
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case c == quote && quote != 0:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case c == '\\' && i+1 < len(command):
			i++
			word.WriteByte(command[i])
			open = true
		case c == ' ' || c == '\t':
			flush()
		case c == '<':
			flush()
			return list, true
		case strings.IndexByte(";&|>\n()", c) >= 0:
			flush()
			return withoutDescriptor(list, c), stdinLater(command[i:])
		default:
			word.WriteByte(c)
			open = true
		}
	}
	flush()
	return list, false
}

// withoutDescriptor drops the 2 of "2>file".
func withoutDescriptor(list []string, c byte) []string {
	if n := len(list); c == '>' && n > 0 && (list[n-1] == "1" || list[n-1] == "2") {
		return list[:n-1]
	}
	return list
}

// stdinLater reports whether a later redirection of the same command closes
// its input, as in "cmd 2>log </dev/null".
func stdinLater(rest string) bool {
	at := strings.IndexByte(rest, '<')
	return at >= 0 && !strings.ContainsAny(rest[:at], ";|\n(")
}

// program is the first word that is no assignment, with the words behind it.
func program(list []string) (name string, args []string) {
	for i, w := range list {
		if at := strings.IndexByte(w, '='); at > 0 && !strings.ContainsAny(w[:at], "/-. ") {
			continue
		}
		if w == "exec" || w == "env" {
			continue
		}
		return w, list[i+1:]
	}
	return "", nil
}

// wired reads a command line of heartbeat-rs's form:
// "heartbeat-stop --inbox FILE [--mode M] [--idle-interval S]", also with the
// words "hook stop" before the flags. It returns nil for anything else.
func wired(command string) *Wired {
	list, closed := words(command)
	name, args := program(list)
	base := filepath.Base(name)
	if base != "heartbeat-stop" && base != "heartbeat" {
		return nil
	}
	w := &Wired{Idle: 2 * time.Second, StdinClosed: closed}
	for i := 0; i < len(args); i++ {
		flag, value, split := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") {
			continue
		}
		if !split && i+1 < len(args) {
			i++
			value = args[i]
		}
		w.set(flag, value)
	}
	if w.Inbox == "" {
		return nil // the generated form, or another command of ours
	}
	return w
}

func (w *Wired) set(flag, value string) {
	switch flag {
	case "inbox":
		w.Inbox = value
	case "mode":
		w.Persist = value == "persist"
		w.BadFlags = w.BadFlags || !w.Persist && value != "drain"
	case "idle-interval":
		d, err := time.ParseDuration(value)
		if n, e := strconv.ParseUint(value, 10, 31); e == nil {
			d, err = time.Duration(n)*time.Second, nil
		}
		w.Idle = d
		w.BadFlags = w.BadFlags || err != nil || d < 0
	}
}
