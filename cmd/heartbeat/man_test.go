package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The manual page has every command, flag and topic, and roff reads it without a
// warning.
func TestTheManualPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := w.ok("man")
	p, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range leaves(p.Model.Node) {
		if c.Hidden {
			continue
		}
		_, section, found := strings.Cut(page, "\n.SS \""+escaped(c.Name))
		section, _, _ = strings.Cut(section, "\n.SS ")
		if !found || !strings.Contains(section, "\nExamples:\n") {
			t.Errorf("%s is not there, or has no examples", c.Name)
		}
		for _, f := range c.Flags {
			if !f.Hidden && !strings.Contains(section, escaped("--"+f.Name)) {
				t.Errorf("%s lacks --%s", c.Name, f.Name)
			}
		}
	}
	topics, err := readTopics()
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		if !strings.Contains(page, "\n.B \""+escaped(topic.Name)+"\"\n") {
			t.Errorf("the topic %s is not there", topic.Name)
		}
	}
	known := []string{".TH ", ".SH ", ".SS ", ".PP", ".TP", ".B ", ".I ", ".RS ", ".RE", ".nf", ".fi"}
lines:
	for line := range strings.Lines(page) {
		for _, request := range known {
			if strings.HasPrefix(line, request) {
				continue lines
			}
		}
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") || strings.Contains(line, "\t") {
			t.Errorf("this line would be a request: %s", line)
		}
	}
	if path, err := exec.LookPath("mandoc"); err == nil {
		lint := exec.CommandContext(t.Context(), path, "-Tlint", "-Wwarning")
		lint.Stdin = strings.NewReader(page)
		if out, err := lint.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("mandoc: %v: %s", err, out)
		}
	}
}

func TestRoffHasNoMeaningInText(t *testing.T) {
	t.Parallel()
	var r roff
	r.paragraphs(".sp is no request\n'nor this\n\n    .TH \"x\" \\fB\n\n    a-b\nbehind")
	const want = ".PP\n\\&.sp is no request\n\\(aqnor this\n.PP\n.RS \"4\"\n.nf\n\\&.TH \"x\" \\efB\n\na\\-b\n.fi\n.RE\n.PP\nbehind\n"
	if got := r.b.String(); got != want {
		t.Errorf("%q", got)
	}
}
