package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"heartbeat/hook/handover"
	"heartbeat/internal/promise"
	"heartbeat/internal/simulate"
	"heartbeat/internal/simulate/script"
)

var keys = regexp.MustCompile(`\bka[0-9]+[abt]-[0-9]+\b|\bcron a[0-9]+ [-+:.TZ0-9]+`)

func keyIn(text string) string { return keys.FindString(text) }

// plain is a text as it is compared. What the client does to its own tag nobody
// can undo exactly: so it is done to both sides.
func plain(text string) string { return promise.Text(strings.ReplaceAll(text, "&lt;", "<")) }

// replies are what the model can say to a prompt of a member; none: anything.
func (f *fleet) replies(m *member, prompt string) []string {
	if strings.Contains(prompt, "[background]") {
		return nil
	}
	reply := "done: " + script.First(prompt)
	all := []string{plain(strings.ToValidUTF8(reply[:min(len(reply), promise.MaxReply)], ""))}
	if strings.Contains(prompt, "[fail]") { // it went on when the service was back
		all = append(all, plain("done: "+handover.GoOnPrompt))
	}
	if f.StopHook && m.Gate { // the last turn of it is about the tests
		all = append(all, plain(gateReply))
	}
	return all
}

// outcome reads what came of the prompts: what models were given, that tools
// ran, and what heartbeat tells of the queues.
func (l *lab) outcome() (promise.Record, error) {
	given, err := l.given()
	if err != nil {
		return nil, err
	}
	ran, err := readRecord(l.path(toolsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	told, err := promise.Ask(l.asked).Queues()
	if err != nil {
		return nil, err
	}
	all := append(given, ran...)
	for _, m := range l.Members {
		all = append(all, promise.Teller{Agent: m.Name, Named: keyIn, Text: plain}.Facts(told[m.Name])...)
		if _, err := os.Stat(l.path("agents", m.Name, ".heartbeat", "outbox.1.jsonl")); errors.Is(err, fs.ErrNotExist) { // no reply was rotated away
			all = append(all, promise.Fact{At: time.Now(), Kind: promise.Declared, Agent: m.Name, Policy: m.Policy, Acknowledges: true})
		}
	}
	return append(fires(all), all...), nil
}

// cronAge is how long before its first turn a cron's prompt can have been
// queued at most: a person who triggers it does so with the same words.
const cronAge = 10 * time.Minute

// fires are the prompts that cron sent, which nobody else notes.
func fires(came promise.Record) (sent promise.Record) {
	known := map[string]bool{}
	for _, f := range came {
		if strings.HasPrefix(f.Prompt, "cron ") && !known[f.Prompt] {
			known[f.Prompt] = true
			agent, _, _ := strings.Cut(strings.TrimPrefix(f.Prompt, "cron "), " ")
			sent = append(sent, promise.Fact{
				At: f.At.Add(-cronAge), Kind: promise.Accepted, Agent: agent, Prompt: f.Prompt, What: string(byCron), Text: plain(f.Prompt),
			})
		}
	}
	return sent
}

// given reads the stand-in's log of what its model was asked, oldest first. A
// last line without its end is passed over.
func (f *fleet) given() (all promise.Record, err error) {
	file, err := os.Open(f.path("model.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for in := json.NewDecoder(file); ; {
		var r simulate.Request
		switch err := in.Decode(&r); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		for i, p := range r.Prompts {
			if i < len(r.Prompts)-1 {
				p = strings.TrimSuffix(p, "\n")
			}
			text, attempt := promise.Unmark(unframe(p))
			fact := promise.Fact{At: r.At, Kind: promise.Given, Session: r.SessionID, Prompt: keyIn(text), Text: plain(text), Attempt: attempt}
			fact.Agent, _, _ = strings.Cut(strings.TrimPrefix(r.Dir, f.path("agents")+"/"), "/")
			if fact.Prompt != "" || !ofTheClient(text) {
				all = append(all, fact)
			}
		}
	}
}

// unframe takes off what kick-off and client put before an entry.
func unframe(p string) string {
	if rest, ok := strings.CutPrefix(p, handover.KickoffPrompt("")); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(p, "Stop hook feedback:\n["); ok {
		if _, text, ok := strings.Cut(rest, "]: "); ok {
			return text
		}
	}
	return p
}

// ofTheClient reports whether a text is no entry: how a session starts that
// gets its first entry later, or goes on with one, an idle tick, a task's end.
func ofTheClient(text string) bool {
	for _, start := range []string{"Read CLAUDE.md", "Your tasks come one after another", "--- IDLE TICK ---", handover.GoOnPrompt, "<task-notification>", gateText, "Killed\n" + gateText} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}
