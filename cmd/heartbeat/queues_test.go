package main

import (
	"strings"
	"testing"

	"heartbeat/config"
)

// Queues and dead letters are listed and dealt with over the whole fleet: an id
// says whose they are.
func TestQueuesOfTheWholeFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", threeAgents)
	w.ok("apply")
	if out := w.ok("inbox"); out != "nothing is queued\n" {
		t.Errorf("inbox: %s", out)
	}
	if out := w.ok("dead-letter"); out != "there are no dead letters\n" {
		t.Errorf("dead-letter: %s", out)
	}
	if out := w.ok("dead-letter", "retry", "--all"); out != "there was nothing to do\n" {
		t.Errorf("dead-letter retry --all: %s", out)
	}
	for _, sent := range []string{"clerk one", "clerk two", "quiet three", "clerk both", "quiet both"} {
		agent, id, _ := strings.Cut(sent, " ")
		w.ok("send", agent, "--id", id, "prompt "+id)
	}
	const list = `AGENT  ID     STATE   SOURCE  PROMPT
clerk  one    queued  send    prompt one
clerk  two    queued  send    prompt two
clerk  both   queued  send    prompt both
quiet  three  queued  send    prompt three
quiet  both   queued  send    prompt both
`
	if out := w.ok("inbox"); out != list {
		t.Errorf("inbox:\n%s", out)
	}
	if out := w.ok("inbox", "show", "three"); !strings.Contains(out, "    prompt three\n") {
		t.Errorf("inbox show:\n%s", out)
	}
	for _, c := range []struct {
		args, says string
		status     int
	}{
		{"inbox drop one both", `cannot tell which "both" is meant: agents clerk, quiet have one`, exitError},
		{"inbox drop one four", `cannot find "four" in the queues of 3 agents`, exitError},
		{"inbox nobody", `cannot find agent "nobody"`, exitError},
		{"inbox list nobody", `cannot find agent "nobody"`, exitError},
		{"inbox drop", "drop needs an id", exitUsage},
		{"dead-letter retry", "retry needs an id", exitUsage},
		{"inbox clerk burn", `"burn" is not an action`, exitUsage},
	} {
		if o := w.run(strings.Fields(c.args)...); o.status != c.status || !strings.Contains(o.stderr, c.says) || o.stdout != "" {
			t.Errorf("%s: %+v", c.args, o)
		}
	}
	if out := w.ok("inbox"); out != list {
		t.Errorf("what failed has changed something:\n%s", out)
	}
	if out := w.ok("inbox", "drop", "three", "one", "two"); out != "clerk: 2 entries dropped\nquiet: 1 entry dropped\n" {
		t.Errorf("inbox drop: %s", out)
	}
	lines := strings.Split(w.ok("dead-letter"), "\n")
	if !strings.HasPrefix(lines[0], "AGENT  ID     REASON   GIVEN  AT ") || !strings.HasPrefix(lines[3], "quiet  three  dropped  ") || !strings.HasPrefix(lines[5], "heartbeat dead-letter show ID says why; ") {
		t.Errorf("dead-letter:\n%s", strings.Join(lines, "\n"))
	}
	if out := w.ok("dead-letter", "show", "two", "three"); !strings.Contains(out, "    prompt two\n") || !strings.Contains(out, "    prompt three\n") ||
		!strings.Contains(out, "\nwhy:      A person dropped it from the queue.\n") || !strings.Contains(out, "    heartbeat dead-letter retry two ") {
		t.Errorf("dead-letter show:\n%s", out)
	}
	if out := w.ok("dead-letter", "retry", "three"); out != "quiet: 1 entry queued again\n" {
		t.Errorf("dead-letter retry: %s", out)
	}
	if out := w.ok("dead-letter", "retry", "--all"); out != "clerk: 2 entries queued again\n" {
		t.Errorf("dead-letter retry --all: %s", out)
	}
	var data struct {
		Agents []struct {
			Agent   string
			Entries []struct{ ID string }
		}
	}
	if w.into(&data, "inbox"); len(data.Agents) != 2 || len(data.Agents[0].Entries) != 3 || len(data.Agents[1].Entries) != 2 {
		t.Errorf("as JSON: %+v", data)
	}

	// TAB knows the ids.
	for words, want := range map[string]string{
		"dead-letter clerk retry ":   "",
		"inbox clerk drop o":         "one\tclerk: queued\n",
		"inbox quiet drop t":         "three\tquiet: queued\n",
		"inbox drop th":              "three\tquiet: queued\n",
		"inbox drop quiet t":         "three\tquiet: queued\n",
		"dead-letter ret":            "retry\t\n",
		"logs cl":                    "clerk\t" + w.dir + "/agents/clerk\n",
		"trigger clerk ":             "",
		"__complete nothing-of-this": "",
	} {
		if out := w.ok(append([]string{"__complete"}, strings.Split(words, " ")...)...); out != want {
			t.Errorf("TAB after %q offers %q, want %q", words, out, want)
		}
	}
}

func TestTriggersAreOffered(t *testing.T) {
	t.Parallel()
	f := &config.Fleet{Agents: []*config.Agent{
		{Name: "clerk", Triggers: []config.Trigger{{Name: "mails"}}}, {Name: "builder", Triggers: []config.Trigger{{Name: "tickets"}}},
	}}
	if found := idOffers("trigger", f, []string{"trigger", "builder"}); len(found) != 1 || found[0].Word != "tickets" {
		t.Errorf("of one agent: %+v", found)
	}
	if found := idOffers("trigger", f, nil); len(found) != 2 {
		t.Errorf("of all: %+v", found)
	}
}

// TestRetryAllNamesWhatStays: with nothing but dead letters whose text is gone it said "0
// entries queued again" and succeeded, and beside others it was silent about them.
func TestRetryAllNamesWhatStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	askingOfLess(t, w)
	w.ok("answer", "triage", "end")
	stays := func(o outcome, stdout string) {
		t.Helper()
		if o.status != exitError || o.stdout != stdout || !strings.Contains(o.stderr, `cannot queue dead letter "three" again: its text went with the inbox`) ||
			!strings.Contains(o.stderr, `cannot queue dead letter "four" again: `) || !strings.Contains(o.stderr, "hint: heartbeat send triage") {
			t.Errorf("%+v", o)
		}
	}
	stays(w.run("dead-letter", "retry", "--all"), "")
	stays(w.run("dead-letter", "triage", "retry", "--all"), "")
	w.ok("send", "triage", "--id", "five", "prompt five")
	w.ok("inbox", "drop", "five")
	stays(w.run("dead-letter", "retry", "--all"), "triage: 1 entry queued again\n")
}
