// Fleetsim runs the real scheduler over the real configuration and real
// inboxes on disk, in real time, for thousands of agents. Only the sessions
// are made up: each takes entries as a client's hooks do, and lasts as long as
// a random number says. It prints how late fires are, what the fleet costs and
// how fairly the slots are shared, beside the targets:
//
//	go run ./internal/fleetsim [-agents 10000] [-minutes 3] [-dir FOLDER]
//
// Each scenario runs in a process of its own, so that its memory is its own.
// The folder should lie on the disk that agents live on: a fire waits for it.
// A missed target is printed as MISSED and the exit status is 1.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/orchestrator"
)

// settings are the flags.
type settings struct {
	agents   int
	slots    int           // max-sessions
	minutes  int           // how long fires are watched
	session  time.Duration // the mean time that an entry takes
	settle   time.Duration // how long sessions may go on after the last fire
	dir      string        // scratch, on the disk to measure
	scenario string        // "" for all
	programs string        // the folder with heartbeat, which is asked what became of the fires
	asJSON   bool
	profile  string // a file for the CPU profile of one scenario

	ready time.Duration // see lead; 0: startTime
	look  time.Duration // see settleLook; 0: that
}

func main() {
	s := settings{}
	flag.IntVar(&s.agents, "agents", 10_000, "agents to declare")
	flag.IntVar(&s.slots, "max-sessions", 100, "sessions at once")
	flag.IntVar(&s.minutes, "minutes", 3, "minutes to watch of the scenarios spread and jitter")
	flag.DurationVar(&s.session, "session", 3*time.Second, "mean time that an entry takes")
	flag.DurationVar(&s.settle, "settle", 10*time.Minute, "how long the sessions may go on after the last fire")
	flag.StringVar(&s.dir, "dir", "", "where to work (a new folder in it; default: the temporary folder)")
	flag.StringVar(&s.scenario, "scenario", "", "one scenario only: "+strings.Join(names(), ", "))
	flag.BoolVar(&s.asJSON, "json", false, "print JSON instead of a table")
	flag.StringVar(&s.profile, "cpuprofile", "", "with -scenario: write a CPU profile to this file")
	flag.Parse()
	if flag.NArg() > 0 || s.agents < 1 || s.slots < 5 || s.minutes < 1 {
		flag.Usage()
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	missed, err := s.simulate(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleetsim:", err)
	}
	if missed > 0 || err != nil {
		os.Exit(1)
	}
}

// childEnv holds, in the process of one scenario, the folder to work in.
const childEnv = "FLEETSIM_FOLDER"

// built is the folder of the program, below the one to work in.
const built = "bin"

// simulate runs what is asked for and returns how many targets were missed.
func (s settings) simulate(ctx context.Context) (missed int, err error) {
	if folder := os.Getenv(childEnv); folder != "" {
		s.dir, s.programs = folder, filepath.Join(folder, built)
		orchestrator.CollectGarbage(s.agents) // as heartbeat run does
		r, err := s.run(ctx, scenarios[s.scenario])
		if err != nil {
			return 0, err
		}
		return 0, json.NewEncoder(os.Stdout).Encode(r)
	}
	if s.scenario != "" {
		if _, ok := scenarios[s.scenario]; !ok {
			return 0, fmt.Errorf("cannot run scenario %q: the scenarios are %s", s.scenario, strings.Join(names(), ", "))
		}
	}
	if s.dir, err = os.MkdirTemp(s.dir, "heartbeat-fleetsim-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(s.dir)
	// As testbed.Build does, from the build cache.
	err = os.Mkdir(filepath.Join(s.dir, built), 0o700)
	if err == nil {
		cmd := exec.Command("go", "run", "-exec=cp", "-buildvcs=false", "-ldflags=-s -w", "heartbeat/cmd/heartbeat", filepath.Join(s.dir, built, "heartbeat"))
		cmd.Stderr = os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		return 0, fmt.Errorf("cannot build heartbeat: %w", err)
	}
	var all []Result
	for _, name := range names() {
		if s.scenario != "" && name != s.scenario {
			continue
		}
		r, err := s.apart(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("cannot run scenario %q: %w", name, err)
		}
		all = append(all, *r)
	}
	return s.report(os.Stdout, all)
}

// apart runs a scenario in a process of its own.
func (s settings) apart(ctx context.Context, name string) (*Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "fleetsim: %s, %d agents\n", name, s.agents)
	if err := s.liveYear(ctx, scenarios[name]); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-scenario", name,
		"-agents", fmt.Sprint(s.agents), "-max-sessions", fmt.Sprint(s.slots), "-minutes", fmt.Sprint(s.minutes),
		"-session", s.session.String(), "-settle", s.settle.String(), "-cpuprofile", s.profile)
	cmd.Env = append(os.Environ(), childEnv+"="+s.dir)
	cmd.Stderr = os.Stderr
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	r := &Result{}
	return r, json.Unmarshal(out.Bytes(), r)
}
