package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"heartbeat/internal/simulate/script"
)

// by ends the client with a signal once ready says so.
func by(sig syscall.Signal, ready func(*Lab, *Terminal)) func(*Lab, *Terminal) {
	return func(l *Lab, term *Terminal) {
		ready(l, term)
		term.Signal(sig)
		term.WaitExit(patience)
	}
}

// asked waits until the model has got n requests.
func asked(n int) func(*Lab, *Terminal) {
	return func(l *Lab, _ *Terminal) {
		l.Until("a model call", func() bool { return l.requests() >= n })
		l.Quiet(1)
	}
}

// appears waits for a file in the workspace.
func appears(name string) func(*Lab, *Terminal) {
	return func(l *Lab, _ *Terminal) {
		l.Until(name, func() bool {
			_, err := os.Stat(filepath.Join(l.Work, name))
			return err == nil
		})
	}
}

// trapping is a command that runs until SIGTERM and tells so in two files.
const trapping = `trap 'echo > terminated; exit' TERM; echo > running; while :; do sleep 0.1; done`

// How sessions end from outside (6).
func endScenarios() []scenario {
	hanging := []turn{{match: "begin", steps: []script.Step{hang()}}}
	waiting := replies{"Stop": {{Gate: "never"}}}
	inHook := calls("Stop", 1)
	return []scenario{
		{name: "end-idle-hup", drive: by(syscall.SIGHUP, stops(1))},
		{name: "end-idle-int", drive: by(syscall.SIGINT, stops(1))},
		{name: "end-idle-kill", drive: by(syscall.SIGKILL, stops(1))},
		{name: "end-streaming-term", model: hanging, drive: by(syscall.SIGTERM, asked(1))},
		{name: "end-streaming-hup", model: hanging, drive: by(syscall.SIGHUP, asked(1))},
		{name: "end-in-hook-term", hooks: waiting, drive: by(syscall.SIGTERM, inHook)},
		{name: "end-in-hook-hup", hooks: waiting, drive: by(syscall.SIGHUP, inHook)},
		{
			name: "end-in-hook-kill", hooks: waiting, drive: by(syscall.SIGKILL, inHook),
			check: func(l *Lab) {
				// The hook is an orphan: it lives, and ends with the test.
				if l.Calls("Stop")[0].Took() > 0 {
					l.t.Error("the hook ended with its client")
				}
			},
		},
		{
			name:     "end-in-tool-term",
			settings: allow("Bash"),
			model:    []turn{{match: "begin", steps: []script.Step{bash(trapping), say("never")}}},
			drive:    by(syscall.SIGTERM, appears("running")),
			check:    func(l *Lab) { appears("terminated")(l, nil) },
		},
		{
			// 21 P: nothing is known of what the model had been asked.
			name:  "end-by-kill-at-once",
			model: []turn{{match: "begin", steps: []script.Step{hang()}}},
			drive: func(l *Lab, term *Terminal) {
				l.Until("a model call", func() bool { return l.requests() == 1 })
				term.Signal(syscall.SIGKILL)
				term.WaitExit(patience)
			},
		},
		{
			// Without a timeout of its own a SessionEnd hook has 1.5 s.
			name:  "end-hook-default-timeout",
			hooks: replies{"SessionEnd": {{Delay: 2 * patience}}},
			drive: by(syscall.SIGTERM, stops(1)),
			check: func(l *Lab) {
				l.Within("the hook's end", l.Calls("SessionEnd")[0].Took(), time.Second, patience)
			},
		},
		{
			name:     "end-hook-waited-for",
			settings: only("SessionEnd", 30, "-"),
			hooks:    replies{"SessionEnd": {{Delay: 4 * time.Second}}},
			drive:    by(syscall.SIGTERM, stops(1)),
		},
		{
			name: "end-by-hang-up",
			drive: func(l *Lab, term *Terminal) {
				stops(1)(l, term)
				term.HangUp()
				term.WaitExit(patience)
			},
		},
		{name: "end-by-exit", drive: typing("/exit", "\r")},
		{name: "end-by-control-d", drive: typing("\x04", "\x04")},
		{name: "end-by-control-c", drive: typing("\x03", "\x03")},
	}
}

// typing types keys with pauses once the first turn is over, and waits for the
// end.
func typing(keys ...string) func(*Lab, *Terminal) {
	return func(l *Lab, term *Terminal) {
		stops(1)(l, term)
		for _, k := range keys {
			term.Type(k)
			time.Sleep(200 * time.Millisecond) // a person's pace
		}
		term.WaitExit(patience)
	}
}

// Turns that end without a Stop (6, 21 M).
func interruptScenarios() []scenario {
	return []scenario{
		{
			name:  "escape-in-turn",
			model: []turn{{match: "begin", steps: []script.Step{hang()}}},
			drive: func(l *Lab, term *Terminal) {
				asked(1)(l, term)
				term.Type("\x1b")
				l.Quiet(3)
				term.Submit("next")
				stops(1)(l, term)
			},
		},
		{
			name: "clear-when-idle",
			drive: func(l *Lab, term *Terminal) {
				stops(1)(l, term)
				term.Submit("/clear")
				calls("SessionStart", 2)(l, term)
				term.Submit("next")
				stops(2)(l, term)
			},
		},
	}
}
