// Soak runs a fleet of simulated agents while it breaks what it can, and then
// checks the promise (README, "The promise") from records that heartbeat did
// not write:
//
//	go run ./internal/soak --agents 10 --for 10m [--seed S]
//
// Senders note each prompt before they send it and again when it is accepted;
// the stand-in client notes each request to its model, and its tools that they
// ran; every fault is noted with its time. All of that lies outside of the
// agents' directories, ends up in one record, and is judged by internal/promise.
// README.md beside this file says what is broken, what is checked beside that,
// and what is covered elsewhere.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	agents int
	length time.Duration
	settle time.Duration
	rate   float64       // prompts per second, over all agents
	every  time.Duration // mean time between faults
	only   string
	seed   uint64
	dir    string
	output string
	judge  string
	// programs is a folder with others than are built here, plant what is put between the
	// hooks and their clients.
	programs, plant string
	// stopHook puts a Stop hook that is not heartbeat's into the user's settings.
	stopHook bool
}

func main() {
	if filepath.Base(os.Args[0]) == hookName {
		os.Exit(plantedHook())
	}
	s := settings{}
	flag.IntVar(&s.agents, "agents", 10, "agents in the fleet")
	flag.DurationVar(&s.length, "for", time.Minute, "how long prompts and faults come; settling is added")
	flag.DurationVar(&s.settle, "settle", time.Minute, "how long the fleet may stand still before it is drained, when the faults have stopped")
	flag.Float64Var(&s.rate, "rate", 4, "prompts per second, over all agents")
	flag.DurationVar(&s.every, "every", 700*time.Millisecond, "mean time between faults")
	flag.StringVar(&s.only, "only", "", "only these faults, by their names in faults.go, with commas between them")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64()>>16, "of the plan: who sends what, what is broken when")
	flag.StringVar(&s.dir, "dir", "", "where to work (a new folder in it; default: the temporary folder)")
	flag.StringVar(&s.output, "o", "text", "text or json")
	flag.StringVar(&s.judge, "judge", "", "judge the record in this file, of soak or fleetsim, and do nothing else")
	flag.StringVar(&s.programs, "programs", "", "the folder with heartbeat and heartbeat-stop to try (default: they are built)")
	flag.StringVar(&s.plant, "plant", "", "put a defect between hooks and clients, which the judge has to find: "+plantNames())
	flag.BoolVar(&s.stopHook, "stop-hook", false, "the user's settings have a Stop hook: for some agents it blocks once for each prompt, for the others never")
	flag.Parse()
	if flag.NArg() > 0 || s.agents < 1 || s.length <= 0 || s.rate <= 0 || s.every <= 0 || s.output != "text" && s.output != "json" || s.plant != "" && plants[s.plant] == "" {
		flag.Usage()
		os.Exit(2)
	}
	if s.judge == "" && !insideNamespace() {
		os.Exit(inNamespace())
	}
	os.Exit(s.main())
}

func (s settings) main() int {
	r, err := s.soak()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 1
	}
	if s.output == "json" {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		err = r.print(os.Stdout)
	}
	if err != nil || len(r.Findings) > 0 {
		return 1
	}
	return 0
}

// soak does the run, or only judges a record. The folder is kept when anything
// is broken.
func (s settings) soak() (*report, error) {
	if s.judge != "" {
		return judge(s.judge)
	}
	dir, err := os.MkdirTemp(s.dir, "heartbeat-soak-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	r, err := s.run(dir, stop)
	if err != nil {
		return nil, fmt.Errorf("%w\nthe evidence is in %s", err, dir)
	}
	if len(r.Findings) > 0 {
		return r, nil
	}
	return r, os.RemoveAll(dir)
}
