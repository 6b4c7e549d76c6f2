package service

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
)

const plistHead = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- By heartbeat service. Its install writes it again. -->
<plist version="1.0">
`

// Launchd renders the property list (launchd.plist(5)); the run's log goes into a
// file in logs. launchd cannot tell exit statuses apart, so it also restarts a
// fleet whose file has problems, every 30 seconds.
func (u *Unit) Launchd(logs string) (string, error) {
	p := plist{}
	p.open("dict")
	p.key("Label").text(u.label())
	p.key("ProgramArguments").open("array")
	for _, arg := range append([]string{u.Binary, "-f", u.File, "run"}, u.Args...) {
		p.text(arg)
	}
	p.close("array")
	if u.System {
		p.key("UserName").text(u.User)
	}
	p.key("EnvironmentVariables").open("dict")
	for _, kv := range u.Env {
		name, value, _ := strings.Cut(kv, "=")
		p.key(name).text(value)
	}
	p.close("dict")
	p.key("RunAtLoad").empty("true")
	p.key("KeepAlive").open("dict")
	p.key("SuccessfulExit").empty("false")
	p.close("dict")
	p.key("ThrottleInterval").number(30)
	p.key("ExitTimeOut").number(seconds(u.StopTimeout))
	log := filepath.Join(logs, u.Name()+".log")
	p.key("StandardOutPath").text(log)
	p.key("StandardErrorPath").text(log)
	p.close("dict")
	if p.err != nil {
		return "", fmt.Errorf("cannot write the property list: %w", p.err)
	}
	return plistHead + p.b.String() + "</plist>\n", nil
}

// plist is a property list under construction.
type plist struct {
	b     bytes.Buffer
	depth int
	err   error
}

func (p *plist) line(text string) {
	p.b.WriteString(strings.Repeat("  ", p.depth) + text + "\n")
}

func (p *plist) open(tag string) {
	p.line("<" + tag + ">")
	p.depth++
}

func (p *plist) close(tag string) {
	p.depth--
	p.line("</" + tag + ">")
}

func (p *plist) key(name string) *plist {
	p.element("key", name)
	return p
}

func (p *plist) text(value string)  { p.element("string", value) }
func (p *plist) number(value int64) { p.element("integer", fmt.Sprint(value)) }
func (p *plist) empty(tag string)   { p.line("<" + tag + "/>") }

// element writes text, with XML's special characters escaped. Text that XML cannot
// contain is an error.
func (p *plist) element(tag, text string) {
	for _, r := range text {
		if r == '\uFFFD' || r < ' ' && r != '\t' && r != '\n' && r != '\r' {
			p.err = fmt.Errorf("%q has characters that XML cannot hold", text)
		}
	}
	var escaped bytes.Buffer
	if err := xml.EscapeText(&escaped, []byte(text)); err != nil {
		p.err = err
	}
	p.line("<" + tag + ">" + escaped.String() + "</" + tag + ">")
}
