package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

var servedAt = regexp.MustCompile(`http://[0-9.:]+/metrics`)

// TestMetricsOfARunningFleet: what is shown is what has happened.
func TestMetricsOfARunningFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background("--metrics", ":0")
	url := servedAt.FindString(r.stderr.String())
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("the log does not say where:\n%s", r.stderr)
	}
	get := func(path string) (int, string) {
		t.Helper()
		res, err := http.Get(strings.TrimSuffix(url, "/metrics") + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := get(path); status != http.StatusOK || body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	w.ok("trigger", "triage")
	until(t, "the entry is done", func() bool { a := w.agent("triage"); return a.Acknowledged == 1 && a.State == "idle" })
	_, body := get("/metrics")
	for _, line := range []string{
		`heartbeat_fires_total{agent="triage",trigger="cron-1"} 1`, `heartbeat_entries_acknowledged_total{agent="triage"} 1`,
		`heartbeat_sessions_ended_total{agent="triage",reason="drained"} 1`, `heartbeat_agent_state{agent="triage",state="idle"} 1`,
		`heartbeat_queued_entries{agent="triage"} 0`, `heartbeat_fire_lateness_seconds_count 0`,
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(body, "What is new?") {
		t.Error("a prompt is shown")
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestAQueueFileThatCannotBeReadIsTold (doctor and status said it; the metrics never, and a
// notice came when doctor next ran by itself, hours later) of an agent that does nothing,
// until the file is gone.
func TestAQueueFileThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	const unreadable = "heartbeat_queue_unreadable{agent=\"triage\"} 1\n"
	for _, file := range testbed.SampleOf(t, []string{"outbox.jsonl", ".waiting.jsonl"}, 2) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", simulated+"notify: {desk: {command: [tee, -a, told.txt]}}\n")
			r := w.background("--metrics", ":0")
			url := servedAt.FindString(r.stderr.String())
			shows := func() bool {
				res, err := http.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				return err == nil && strings.Contains(string(body), unreadable)
			}
			if shows() {
				t.Error("all its files can be read")
			}
			path := filepath.Join(w.dir, "agents/triage/.heartbeat", file)
			if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
			until(t, "the metrics show it", shows)
			until(t, "somebody is told", func() bool {
				told, err := os.ReadFile(filepath.Join(w.dir, "told.txt"))
				return err == nil && strings.Contains(string(told), "cannot read \""+path+"\"")
			})
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			until(t, "the metrics show it no more", func() bool { return !shows() })
			if code := r.stop(); code != 0 {
				t.Errorf("exit status %d", code)
			}
		})
	}
}

// TestAnAddressThatCannotBeHad: the hint names another one (it named the one
// that was taken).
func TestAnAddressThatCannotBeHad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	l, err := net.Listen("tcp", "127.0.0.1:9464")
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	for _, addr := range []string{":9464", ":" + taken, l.Addr().String(), "203.0.113.7:9464", "9464x", ":99999"} {
		if addr == ":9464" && taken != "9464" {
			continue
		}
		o := w.run("run", "--once", "--metrics="+addr)
		hint := regexp.MustCompile(`hint: heartbeat run --metrics (\S+) \(it is free\)`).FindStringSubmatch(o.stderr)
		if o.status != exitError || !strings.Contains(o.stderr, "cannot serve metrics on") || hint == nil || hint[1] == addr || hint[1] == ":"+taken {
			t.Errorf("%q: %+v", addr, o)
		}
	}
	o := w.run("run", "--once", "--metrics", "0.0.0.0:0")
	if o.status != 0 || !strings.Contains(o.stderr, "can be read by everybody") {
		t.Errorf("everybody can read it, and nobody is told: %+v", o)
	}
}
