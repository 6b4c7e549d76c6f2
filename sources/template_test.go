package sources

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func render(text string, data any) (string, error) {
	t, err := parseTemplate(text, data)
	if err != nil {
		return "", err
	}
	return t.Render(data)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want, err string
		data                  any
	}{
		{name: "file", text: "Process {{.Path}} ({{.Event}})", data: FileData{Path: "a b.md", Event: "created"}, want: "Process a b.md (created)"},
		{name: "nothing is escaped", text: "{{.Output}}", data: PollData{Output: "<&\"'\n"}, want: "<&\"'\n"},
		{name: "time", text: `{{.At.Format "15:04"}}`, data: CronData{At: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}, want: "03:04"},
		{name: "unknown field", text: "{{.Pth}}", data: FileData{}, err: "Pth"},
		{name: "unknown key", text: "{{.x}}", data: map[string]string{}, err: "x"},
		{name: "does not parse", text: "{{.Path", data: FileData{}, err: "unclosed action"},
		{name: "unknown function", text: "{{env `HOME`}}", data: FileData{}, err: "env"},
		{name: "endless", text: "{{range 1000000000}}xxxxxxxx{{end}}", data: FileData{}, err: "over 1 MiB"},
	} {
		got, err := render(c.text, c.data)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.err)
		}
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	if _, err := ParseFileTemplate("{{.Path}} {{.AbsPath}} {{.Name}} {{.Event}} {{index .Paths 0}}"); err != nil {
		t.Error(err)
	}
	if _, err := ParseCronTemplate("{{.At}} {{.Label}}"); err != nil {
		t.Error(err)
	}
	p, err := ParsePollTemplate("", SplitWhole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Render(PollData{Output: "x"}); got != "x" || err != nil {
		t.Errorf("an empty poll template renders %q, %v", got, err)
	}
	if _, err := ParseCronTemplate("{{.Path}}"); err == nil {
		t.Error("a cron prompt may use .Path")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		failures     int
		lowest, most time.Duration
	}{
		{0, s / 2, s},
		{1, s / 2, s},
		{2, s, 2 * s},
		{5, 8 * s, 16 * s},
		{10, 150 * s, 300 * s},
		{1 << 30, 150 * s, 300 * s},
	} {
		if got := Backoff(c.failures, s, 300*s, 0); got != c.lowest {
			t.Errorf("after %d failures at least %v, want %v", c.failures, got, c.lowest)
		}
		if got := Backoff(c.failures, s, 300*s, 0.999999); got > c.most || got < c.most-time.Second {
			t.Errorf("after %d failures at most %v, want %v", c.failures, got, c.most)
		}
	}
}

// TestATemplateIsSmall: each had all functions of its own, 25 MB for 10,000 agents. Those that
// define others, by the same names, have their own still.
func TestATemplateIsSmall(t *testing.T) {
	var all []*Template
	const n = 200
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	was := memory()
	for i := range n {
		one, err := ParseCronTemplate(fmt.Sprintf("%d at {{.Label}}", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if each := (memory() - was) / n; each > 1500 {
		t.Errorf("a template takes %d bytes", each)
	}
	for i := range n {
		one, err := ParseCronTemplate(fmt.Sprintf(`{{define "x"}}%d{{end}}{{template "x"}} at {{.Label}}`, i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	for i, one := range all {
		if text, err := one.Render(CronData{Label: "noon"}); err != nil || text != fmt.Sprintf("%d at noon", i%n) {
			t.Errorf("%d: %q, %v", i, text, err)
		}
	}
}
