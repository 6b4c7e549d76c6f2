package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
)

// nap is a result of a command that takes a while.
type nap struct {
	Slept string `json:"slept"`
}

func (n nap) text(p *page) { p.printf("%s\n", n.Slept) }

// testOutput is an output on buffers.
func testOutput(asJSON bool) (o *output, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &output{json: asJSON, started: time.Now(), w: stdout, err: stderr, warnings: []string{}}, stdout, stderr
}

func TestLinesOfALongCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, stdout, _ := testOutput(true)
		stop := o.beat(10 * time.Second)
		time.Sleep(15 * time.Second)
		o.setStep("half of it")
		time.Sleep(10500 * time.Millisecond)
		stop()
		o.warn("careful")
		if status := o.finish(nap{"25s"}, nil); status != 0 {
			t.Errorf("status %d", status)
		}
		o.pulse() // a tick that was already on its way
		time.Sleep(time.Minute)
		want := `{"status":"running","heartbeat":true,"elapsed_ms":10000}
{"status":"running","heartbeat":true,"elapsed_ms":20000,"step":"half of it"}
{"ok":true,"data":{"slept":"25s"},"error":null,"warnings":["careful"],"meta":{"duration_ms":25500}}
`
		if d := cmp.Diff(want, stdout.String()); d != "" {
			t.Error(d)
		}
	})
}

func TestFinish(t *testing.T) {
	t.Parallel()
	parked := &failure{status: exitLater, hint: "wait", err: errors.New("cannot finish: parked")}
	tests := []struct {
		name                  string
		err                   error
		status                int
		textOut, textErr, doc string
	}{
		{"success", nil, 0, "all\n", "", `null`},
		{"error", errors.New("cannot do: why <&>"), 1, "all\n", "heartbeat: cannot do: why <&>\n", `{"code":"error","message":"cannot do: why <&>","hint":""}`},
		{"hint", parked, 75, "all\n", "heartbeat: cannot finish: parked\nhint: wait\n", `{"code":"parked","message":"cannot finish: parked","hint":"wait"}`},
		{"wrapped", fmt.Errorf("cannot run: %w", parked), 75, "all\n", "heartbeat: cannot run: cannot finish: parked\nhint: wait\n", `{"code":"parked","message":"cannot run: cannot finish: parked","hint":"wait"}`},
		{"one of several", errors.Join(errors.New("a"), hinted{}), 1, "all\n", "heartbeat: a\n  b\nhint: from the domain\n", `{"code":"error","message":"a\nb","hint":"from the domain"}`},
		{"child", childStatus(7), 7, "all\n", "", `{"code":"child-exited","message":"the command exited with status 7","hint":""}`},
		{"terminal escapes", errors.New("cannot read \x1b[2J"), 1, "all\n", "heartbeat: cannot read \uFFFD[2J\n", `{"code":"error","message":"cannot read \u001b[2J","hint":""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, stdout, stderr := testOutput(false)
			if got := o.finish(nap{"all"}, tt.err); got != tt.status || stdout.String() != tt.textOut || stderr.String() != tt.textErr {
				t.Errorf("text: status %d, stdout %q, stderr %q", got, stdout.String(), stderr.String())
			}
			o, stdout, stderr = testOutput(true)
			if got := o.finish(nap{"all"}, tt.err); got != tt.status || stderr.Len() != 0 {
				t.Errorf("JSON: status %d, stderr %q", got, stderr.String())
			}
			var e struct{ Error json.RawMessage }
			if err := json.Unmarshal(stdout.Bytes(), &e); err != nil || string(e.Error) != tt.doc {
				t.Errorf("error object: %s, %v; want %s", e.Error, err, tt.doc)
			}
		})
	}
}

// hinted is an error of a room that knows a hint.
type hinted struct{}

func (hinted) Error() string { return "b" }
func (hinted) Hint() string  { return "from the domain" }

func TestAResultThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		o, _, stderr := testOutput(asJSON)
		o.w = brokenWriter{}
		if got := o.finish(nap{"all"}, nil); got != exitError || !strings.Contains(stderr.String(), "cannot print the result: broken") {
			t.Errorf("status %d, stderr %q", got, stderr.String())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

var _ io.Writer = brokenWriter{}

func TestTable(t *testing.T) {
	t.Parallel()
	p := &page{palette: palette{green: "<", reset: ">", dim: "("}}
	p.table([]string{"NAME", "STATE", "WHY"}, [][]cell{
		{{text: "a"}, {"ok", "<"}, {text: "fine"}},
		{{text: "你好吗"}, {text: "running"}, {text: "two\nlines"}},
		{{text: "e\u0301\u200d"}, {text: "ok"}, {}},
	})
	want := "(NAME>    (STATE>    (WHY>\n" +
		"a       <ok>       fine\n" +
		"你好吗  running  two lines\n" +
		"e\u0301\u200d       ok\n"
	if d := cmp.Diff(want, p.buf.String()); d != "" {
		t.Error(d)
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"shorter", 5, "shor…"},
		{"你好吗", 6, "你好吗"},
		{"你好吗", 5, "你好…"},
		{"你好吗", 4, "你…"},
		{"", 3, ""},
	} {
		if got := shorten(tt.text, tt.n); got != tt.want || width(got) > tt.n {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"send x": false, "send x -o json": true, "-ojson send": true, "-o=json": true, "--output json": true,
		"--output=json": true, "-o json -o text": false, "launch -- x -o json": false, "send -o": false,
	} {
		if got := wantsJSON(strings.Fields(line)); got != want {
			t.Errorf("wantsJSON(%q) = %v", line, got)
		}
	}
}

// TestADurationHasAUnit: "10" meant ten seconds for every flag, and nothing in the fleet's
// file. Only launch takes bare seconds, as heartbeat-rs's program does.
func TestADurationHasAUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "90": 90 * time.Second, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "1d": 24 * time.Hour} {
		if got, err := parseSeconds(text); err != nil || got != want {
			t.Errorf("parseSeconds(%q) = %v, %v; want %v", text, got, err, want)
		}
		if got, err := config.ParseDuration(text); (err == nil) != (text != "90") || err == nil && got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "-5s", "soon", "99999999999999"} {
		for name, parse := range map[string]func(string) (time.Duration, error){"parseSeconds": parseSeconds, "ParseDuration": config.ParseDuration} {
			if got, err := parse(text); err == nil {
				t.Errorf("%s(%q) = %v, want an error", name, text, got)
			}
		}
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	parser, err := newParser(&cli{}, stdio{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	names := func(kind string, _ []string) offers {
		var found offers
		for w := range strings.SplitSeq(map[string]string{
			"agent": "triage,builder", "session": "s1,triage,builder", "trigger": "cron-1", "entry": "e1", "dead-letter": "d1,d2",
		}[kind], ",") {
			if w != "" {
				found = append(found, offer{w, ""})
			}
		}
		if strings.Contains(kind, ",") {
			for w := range strings.SplitSeq(kind, ",") {
				found = append(found, offer{w, ""})
			}
		}
		return found
	}
	for line, want := range map[string]string{
		"va|":                       "validate",
		"__|":                       "",
		"send |":                    "triage builder",
		"send tri|":                 "triage",
		"send triage |":             "",
		"send --id x b|":            "builder",
		"send --id |":               "",
		"send --i|":                 "--id --in",
		"-f other.yaml send b|":     "builder",
		"apply triage b|":           "builder",
		"inbox triage |":            "list show drop",
		"dead-letter triage pur|":   "purge",
		"dead-letter |":             "triage builder list show retry purge",
		"dead-letter retry |":       "d1 d2 triage builder",
		"dead-letter retry d|":      "d1 d2",
		"dead-letter retry d1 |":    "d1 d2",
		"dead-letter triage show |": "d1 d2",
		"dead-letter list |":        "triage builder",
		"dead-letter triage list |": "",
		"inbox drop |":              "e1 triage builder",
		"inbox drop triage |":       "e1",
		"inbox triage drop e|":      "e1",
		"cancel triage --entry |":   "e1",
		"trigger triage |":          "cron-1",
		"logs triage |":             "s1 triage builder",
		"recover --on-orphan ret|":  "retry",
		"recover --on-orphan=ret|":  "--on-orphan=retry",
		"-o |":                      "text json",
		"--log-level=d|":            "--log-level=debug",
		"completion |":              "bash zsh fish",
		"launch --shi|":             "",
		"launch --interactive --g|": "--grace",
		"launch -- s|":              "",
		"simulate --|":              "",
	} {
		words := strings.Split(strings.TrimSuffix(line, "|"), " ")
		var got []string
		for _, o := range complete(parser.Model.Node, words, names) {
			got = append(got, o.Word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
