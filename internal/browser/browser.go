// Package browser tries the page in a headless Chromium, as people see it: each page at
// the width of a phone and of a desk, light and dark, what assistive programs find
// wrong with it (axe-core), what it shows when something changes, and its forms.
//
// It speaks the browser's own protocol over a pipe (--remote-debugging-pipe), which
// takes a page of code; libraries for it bring bindings for all of the protocol, which
// take longer to compile than these tests to run.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Browser is a running Chromium.
type Browser struct {
	cmd  *exec.Cmd
	out  *os.File
	gone chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	tabs    map[string]*Tab
}

type answer struct {
	result json.RawMessage
	err    error
}

// message is one of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Find returns the path of a Chromium, or "".
func Find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Start starts a browser that keeps everything in an empty folder and asks nobody but
// whom its pages ask.
func Start(path, folder string) (*Browser, error) {
	in, toIt, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromIt, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--disable-default-apps",
		"--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb", "--proxy-server=direct://", "--user-data-dir="+folder, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{in, out}
	cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_CONFIG_HOME="+folder, "XDG_CACHE_HOME="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = in.Close(), out.Close()
	b := &Browser{cmd: cmd, out: toIt, gone: make(chan struct{}), waiting: map[int]chan answer{}, tabs: map[string]*Tab{}}
	go b.read(fromIt)
	return b, nil
}

// Close ends the browser with all its processes.
func (b *Browser) Close() error {
	_ = b.out.Close()
	err := syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	_ = b.cmd.Wait()
	<-b.gone
	return err
}

// read takes what the browser says, until it ends.
func (b *Browser) read(in *os.File) {
	defer close(b.gone)
	defer in.Close()
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		tab, wait := b.tabs[m.Session], b.waiting[m.ID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && wait != nil && m.Error != nil:
			wait <- answer{err: errors.New(m.Error.Message)}
		case m.ID != 0 && wait != nil:
			wait <- answer{result: m.Result}
		case m.ID == 0 && tab != nil:
			tab.hears(m)
		}
	}
}

// do has the browser do something, and reads the answer into result, if that is not nil.
func (b *Browser) do(ctx context.Context, session, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	wait := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	text, err := json.Marshal(message{ID: b.last, Session: session, Method: method, Params: raw})
	b.waiting[b.last] = wait
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-b.gone:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case a := <-wait:
		if a.err != nil {
			return fmt.Errorf("%s: %w", method, a.err)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.result, result)
	}
}

// Tab is one page of a browser, with cookies of its own.
type Tab struct {
	b       *Browser
	session string

	mu     sync.Mutex
	loaded chan struct{}
	said   []string // errors that the page, or the browser about it, has written
}

// Open opens a tab that shares nothing with others.
func (b *Browser) Open(ctx context.Context) (*Tab, error) {
	var own struct{ BrowserContextID string }
	if err := b.do(ctx, "", "Target.createBrowserContext", nil, &own); err != nil {
		return nil, err
	}
	var target struct{ TargetID string }
	if err := b.do(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": own.BrowserContextID}, &target); err != nil {
		return nil, err
	}
	var to struct{ SessionID string }
	if err := b.do(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &to); err != nil {
		return nil, err
	}
	t := &Tab{b: b, session: to.SessionID, loaded: make(chan struct{}, 1)}
	b.mu.Lock()
	b.tabs[to.SessionID] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		if err := t.do(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Tab) do(ctx context.Context, method string, params map[string]any, result any) error {
	return t.b.do(ctx, t.session, method, params, result)
}

// hears takes down what happens in the tab.
func (t *Tab) hears(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case t.loaded <- struct{}{}:
		default:
		}
	case "Runtime.exceptionThrown":
		t.said = append(t.said, string(m.Params))
	case "Log.entryAdded":
		var e struct {
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(m.Params, &e) == nil && e.Entry.Level == "error" {
			t.said = append(t.said, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// Errors returns what went wrong in the tab since it was asked last.
func (t *Tab) Errors() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := t.said
	t.said = nil
	return said
}

// Go opens an address and waits until it is loaded.
func (t *Tab) Go(ctx context.Context, url string) error {
	return t.Loads(ctx, func() error {
		var r struct{ ErrorText string }
		if err := t.do(ctx, "Page.navigate", map[string]any{"url": url}, &r); err != nil || r.ErrorText != "" {
			return errors.Join(err, fmt.Errorf("%s: %q", url, r.ErrorText))
		}
		return nil
	})
}

// Loads does what makes the tab load a page, and waits for that.
func (t *Tab) Loads(ctx context.Context, do func() error) error {
	select {
	case <-t.loaded:
	default:
	}
	if err := do(); err != nil {
		return err
	}
	select {
	case <-t.loaded:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no page was loaded: %w", context.Cause(ctx))
	}
}

// Look says how wide the tab is, in the page's pixels, and whether it is dark.
func (t *Tab) Look(ctx context.Context, width int, dark bool) error {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	err := t.do(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	if err != nil {
		return err
	}
	return t.do(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Eval evaluates an expression of JavaScript in the page, whose policy does not hold
// for it, and reads its value, or what it promises, into result.
func (t *Tab) Eval(ctx context.Context, expression string, result any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := t.do(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	switch {
	case err != nil:
		return err
	case r.ExceptionDetails != nil:
		return fmt.Errorf("%s %s", r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
	case result == nil || r.Result.Value == nil:
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// Scripts says whether the page's scripts run.
func (t *Tab) Scripts(ctx context.Context, run bool) error {
	return t.do(ctx, "Emulation.setScriptExecutionDisabled", map[string]any{"value": !run}, nil)
}

// Click presses the mouse in the middle of the element that a selector finds.
func (t *Tab) Click(ctx context.Context, selector string) error {
	name, err := json.Marshal(selector)
	if err != nil {
		return err
	}
	var at []float64
	err = t.Eval(ctx, `(() => { const e = document.querySelector(`+string(name)+`); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, &at)
	if err != nil {
		return err
	}
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		event := map[string]any{"type": what, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}
		if err := t.do(ctx, "Input.dispatchMouseEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

// Type types a text where the cursor is.
func (t *Tab) Type(ctx context.Context, text string) error {
	return t.do(ctx, "Input.insertText", map[string]any{"text": text}, nil)
}

// Press presses a key, as KeyboardEvent names it, with Ctrl or without.
func (t *Tab) Press(ctx context.Context, key string, ctrl bool) error {
	event := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 && !ctrl {
		event["text"] = key
	}
	if ctrl {
		event["modifiers"] = 2
	}
	if err := t.do(ctx, "Input.dispatchKeyEvent", event, nil); err != nil {
		return err
	}
	return t.do(ctx, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Shot returns a picture of all of the page.
func (t *Tab) Shot(ctx context.Context) ([]byte, error) {
	var r struct{ Data string }
	var size struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	if err := t.do(ctx, "Page.getLayoutMetrics", nil, &size); err != nil {
		return nil, err
	}
	clip := map[string]any{"x": 0, "y": 0, "width": size.CSSContentSize.Width, "height": size.CSSContentSize.Height, "scale": 1}
	if err := t.do(ctx, "Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": clip}, &r); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(r.Data)
}
