package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// breaker does faults, and what people do at any time.
type breaker struct {
	*lab
	keeper *keeper
	r      *rand.Rand
	wg     sync.WaitGroup // of those that take a while
	busy   chan struct{}  // room for them
	disk   chan struct{}  // one disk is full at a time
	only   []string       // the names of the acts; none: all
}

// schedulerActs end the scheduler.
func (b *breaker) schedulerActs() []act {
	return []act{
		{"kill-scheduler", 2, b.killScheduler},
		{"term-scheduler", 1, func(context.Context, *rand.Rand) { b.keeper.hit(faultTerm, syscall.SIGTERM) }},
		{"kill-both", 1, b.killBoth},
	}
}

// act is something the breaker does; weight is how often, of all.
type act struct {
	name   string
	weight int
	do     func(ctx context.Context, r *rand.Rand)
}

func (b *breaker) acts() []act {
	return []act{
		{"kill-client", 6, b.kill(classClient)},
		{"kill-hook", 8, b.kill(classHook)},
		{"kill-shim", 4, b.kill(classShim)},
		{"kill-tool", 2, b.kill(classTool)},
		{"term", 3, b.signal(faultTerm, syscall.SIGTERM, classClient, classShim, classHook)},
		{"signal", 1, b.signal(faultSignal, syscall.SIGQUIT, classShim)},
		{"signal", 1, b.signal(faultSignal, syscall.SIGINT, classHook, classClient, classShim)},
		{"signal", 1, b.signal(faultSignal, syscall.SIGHUP, classHook, classClient, classShim)},
		{"stop", 4, b.stop(classClient, classShim, classHook, classScheduler)},
		{"kill-agent", 2, b.killAgent},
		{"disk", 2, b.fill},
		{"reload", 3, b.reload},
		{"bad-reload", 1, b.badReload},
		{"pause", 2, b.pause},
		{"retry", 2, b.retryDead},
		{"trigger", 2, b.trigger},
		{"recover", 2, b.recover},
		{"attach", 2, b.attach},
		{"look", 3, b.look},
	}
}

// run breaks things until ctx ends, and puts them right again. After half of
// the time the scheduler is left alone, so that there is one that lives long.
func (b *breaker) run(ctx context.Context, mean, calm time.Duration) {
	b.busy, b.disk = make(chan struct{}, 6), make(chan struct{}, 1)
	calmFrom := time.Now().Add(calm)
	for pause(ctx, b.r, mean) {
		all := b.acts()
		if time.Now().Before(calmFrom) {
			all = append(all, b.schedulerActs()...)
		}
		if len(b.only) > 0 {
			all = slices.DeleteFunc(all, func(a act) bool { return !slices.Contains(b.only, a.name) })
		}
		do, seed := b.choose(all), b.r.Uint64()
		select {
		case b.busy <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		b.wg.Go(func() {
			defer func() { <-b.busy }()
			do(ctx, rand.New(rand.NewPCG(b.Seed, seed)))
		})
	}
	b.wg.Wait()
}

// choose picks an act by its weight; with none to choose from it does nothing.
func (b *breaker) choose(from []act) func(context.Context, *rand.Rand) {
	if len(from) == 0 {
		return func(context.Context, *rand.Rand) {}
	}
	total := 0
	for _, a := range from {
		total += a.weight
	}
	at, i := b.r.IntN(total), 0
	for ; at >= from[i].weight; i++ {
		at -= from[i].weight
	}
	return from[i].do
}

// find waits for a process of one of the classes to be there.
func (b *breaker) find(ctx context.Context, r *rand.Rand, classes ...class) (process, bool) {
	want := pick(r, classes)
	for range 40 {
		var fit []process
		for _, p := range b.processes() {
			if p.class == want {
				fit = append(fit, p)
			}
		}
		if len(fit) > 0 {
			return pick(r, fit), true
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-ctx.Done():
			return process{}, false
		}
	}
	return process{}, false
}

func (b *breaker) kill(c class) func(context.Context, *rand.Rand) {
	return b.signal(faultKill, syscall.SIGKILL, c)
}

func (b *breaker) signal(kind faultKind, sig syscall.Signal, classes ...class) func(context.Context, *rand.Rand) {
	return func(ctx context.Context, r *rand.Rand) {
		p, ok := b.find(ctx, r, classes...)
		if !ok {
			return
		}
		b.send(p, kind, sig)
	}
}

func (b *breaker) send(p process, kind faultKind, sig syscall.Signal) {
	f := kind.on(p.agent, p.class)
	f.Note = fmt.Sprintf("%s to process %d", sig, p.pid)
	if p.class == classShim {
		b.shimHit.Store(f.At.UnixNano())
	}
	if p.signal(sig) {
		b.record.over(f)
	}
}

// killAgent kills all processes of an agent at once.
func (b *breaker) killAgent(ctx context.Context, r *rand.Rand) {
	of, ok := b.find(ctx, r, classClient)
	if !ok {
		return
	}
	for _, p := range b.processes() {
		if p.agent == of.agent && p.class != classScheduler {
			b.send(p, faultKill, syscall.SIGKILL)
		}
	}
}

// killBoth kills the scheduler and a shim at once: nobody is left who knows
// that there is a client.
func (b *breaker) killBoth(ctx context.Context, r *rand.Rand) {
	if p, ok := b.find(ctx, r, classShim); ok {
		b.send(p, faultKill, syscall.SIGKILL)
	}
	b.killScheduler(ctx, r)
}

func (b *breaker) killScheduler(_ context.Context, _ *rand.Rand) {
	b.keeper.hit(faultKill, syscall.SIGKILL)
}

// stop stops a process for some seconds.
func (b *breaker) stop(classes ...class) func(context.Context, *rand.Rand) {
	return func(ctx context.Context, r *rand.Rand) {
		p, ok := b.find(ctx, r, classes...)
		if !ok {
			return
		}
		f := faultStop.on(p.agent, p.class)
		b.stops.Add(1)
		defer b.stops.Add(-1)
		if !p.signal(syscall.SIGSTOP) {
			return
		}
		time.Sleep(time.Duration(200+r.IntN(3800)) * time.Millisecond)
		p.signal(syscall.SIGCONT)
		b.record.over(f)
	}
}

// fill fills an agent's disk, or that of the state directory, for some
// seconds.
func (b *breaker) fill(_ context.Context, r *rand.Rand) {
	select {
	case b.disk <- struct{}{}:
		defer func() { <-b.disk }()
	default:
		return
	}
	var disks []*member
	for _, m := range b.Members {
		if m.Disk {
			disks = append(disks, m)
		}
	}
	if len(disks) == 0 {
		return
	}
	agent, dir := "", b.path("state")
	if i := r.IntN(len(disks) + 1); i < len(disks) {
		agent, dir = disks[i].Name, b.dirOf(disks[i])
		lines := b.lines[agent]
		lines.Lock()
		defer lines.Unlock()
	} else if len(b.LeftOut) > 0 {
		return
	}
	f := faultDisk.on(agent, "")
	free, err := fillDisk(dir)
	if err != nil {
		return // the last piece of room was gone already
	}
	time.Sleep(time.Duration(1000+r.IntN(5000)) * time.Millisecond)
	free()
	b.record.over(f)
}

// reload changes the fleet's file: other time-outs, more or fewer sessions,
// another schedule, guests gone or there again.
func (b *breaker) reload(_ context.Context, r *rand.Rand) {
	v := b.plainVariant()
	v.sessions += r.IntN(3) - 1
	v.cron = pick(r, []string{"* * * * *", "*/2 * * * *", "@every 1m"})
	v.timeouts, v.without = map[string]string{}, map[string]bool{}
	for _, m := range b.Members {
		if r.IntN(4) == 0 {
			v.timeouts[m.Name] = pick(r, []string{"9s", "10s"})
		}
		v.without[m.Name] = m.Guest && r.IntN(2) == 0
	}
	b.declareNow(v)
}

func (b *breaker) declareNow(v variant) {
	b.config.Lock()
	defer b.config.Unlock()
	f := faultReload.on("", "")
	b.write(b.declare(v))
	b.keeper.reload()
	b.record.over(f)
}

func (b *breaker) write(text string) {
	path := b.path("heartbeat.yaml")
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		panic("cannot write the fleet's file: " + err.Error())
	}
}

// badReload puts a file with problems in place for a second.
func (b *breaker) badReload(_ context.Context, r *rand.Rand) {
	b.config.Lock()
	defer b.config.Unlock()
	f := faultBadReload.on("", "")
	good := b.declare(b.plainVariant())
	b.write(pick(r, []string{
		"", "version: 1\nagents: {", strings.Replace(good, "dir:", "dri:", 1), strings.Replace(good, "a00:", "a01:", 1), "\x00\x01",
	}))
	b.keeper.reload()
	time.Sleep(time.Second)
	b.write(good)
	b.keeper.reload()
	b.record.over(f)
}

// command is what a person does with one agent; a scheduler that is not there
// refuses it.
func (b *breaker) command(kind faultKind, m *member, args ...string) {
	f := kind.on(m.Name, "")
	o := b.heartbeat(nil, 0, args...)
	f.Note = fmt.Sprintf("status %d", o.status)
	b.record.over(f)
}

func (b *breaker) pause(_ context.Context, r *rand.Rand) {
	m := pick(r, b.Members)
	b.command(faultPause, m, "pause", m.Name)
	time.Sleep(time.Duration(500+r.IntN(4000)) * time.Millisecond)
	b.command(faultPause, m, "resume", m.Name)
}

func (b *breaker) retryDead(_ context.Context, r *rand.Rand) {
	m := pick(r, b.Members)
	lines := b.lines[m.Name]
	if lines.TryRLock() {
		defer lines.RUnlock()
		b.command(faultRetry, m, "dead-letter", m.Name, "retry", "--all")
	}
}

func (b *breaker) trigger(_ context.Context, r *rand.Rand) {
	m := pick(r, b.Members)
	if m.Trigger == "cron" {
		b.command(faultTrigger, m, "trigger", m.Name)
	}
}

// recover is refused while the fleet runs, and does no harm when it does not.
func (b *breaker) recover(_ context.Context, r *rand.Rand) {
	m := pick(r, b.Members)
	b.command(faultRecover, m, "recover", m.Name)
}

// attach is a person who looks at a session for some seconds.
func (b *breaker) attach(_ context.Context, r *rand.Rand) {
	m := pick(r, b.Members)
	f := faultAttach.on(m.Name, "")
	cmd := exec.Command(b.path("bin", "heartbeat"), "-f", b.path("heartbeat.yaml"), "attach", m.Name, "--read-only")
	cmd.Env = b.env()
	if err := cmd.Start(); err != nil {
		b.surprise("cannot attach: %v", err)
		return
	}
	end := time.AfterFunc(time.Duration(300+r.IntN(2500))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGINT) })
	defer end.Stop()
	late := time.AfterFunc(patience, func() {
		b.surprise("attach does not leave within %s of SIGINT", patience)
		_ = cmd.Process.Kill()
	})
	defer late.Stop()
	_ = cmd.Wait() // there may be no session to look at
	b.record.over(f)
}

func (b *breaker) look(_ context.Context, r *rand.Rand) {
	m := pick(r, b.Members)
	args := pick(r, [][]string{{"status"}, {"inbox", m.Name}, {"dead-letter", m.Name}, {"history"}, {"events"}, {"logs", m.Name}, {"next"}, {"screen", m.Name}})
	b.command(faultLook, m, args...)
}
