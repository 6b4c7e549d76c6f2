package service

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"heartbeat/orchestrator"
	"heartbeat/orchestrator/status"
)

// Scheduler is what the service manager is told about.
type Scheduler interface {
	// Alive returns nil if the scheduler demonstrably lives, see
	// orchestrator.Scheduler.
	Alive(ctx context.Context) error
	Vitals() orchestrator.Vitals
}

// statusEvery is how often the status line is checked; it is sent when it has
// changed.
const statusEvery = 5 * time.Second

// Manager is the service manager that started this process, reached through
// $NOTIFY_SOCKET. Without one all of its methods do nothing.
type Manager struct{ Log *slog.Logger }

// Ready says that the run is fully working.
func (m Manager) Ready() { m.tell(daemon.SdNotifyReady) }

// Reloading says that the configuration is being loaded again; Ready ends it.
func (m Manager) Reloading() {
	state := daemon.SdNotifyReloading
	// In the same datagram: Type=notify-reload compares it with the time of its
	// request (sd_notify(3)).
	if now := daemon.SdNotifyMonotonicUsec(); now != "" {
		state += "\n" + now
	}
	m.tell(state)
}

// Stopping says that the run has begun to end.
func (m Manager) Stopping() { m.tell(daemon.SdNotifyStopping) }

// Follow keeps the service manager informed until ctx ends: a status line, and the
// watchdog's sign of life, at least every half of its interval. Both are sent only
// while the scheduler lives; the watchdog ends a wedged one.
func (m Manager) Follow(ctx context.Context, s Scheduler) {
	if !m.there() {
		return
	}
	every, patience := statusEvery, 30*time.Second
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.Log.Warn("cannot serve the service manager's watchdog", "err", err)
	}
	if interval > 0 {
		every, patience = min(every, interval/2), interval/4
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	told := ""
	for {
		if err := aliveWithin(ctx, s, patience); err == nil {
			if interval > 0 {
				m.tell(daemon.SdNotifyWatchdog)
			}
			if line := statusLine(s.Vitals()); line != told {
				m.tell("STATUS=" + line)
				told = line
			}
		} else if ctx.Err() == nil {
			m.Log.Error("the service manager gets no sign of life", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func aliveWithin(ctx context.Context, s Scheduler, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Alive(ctx)
}

// there reports whether there is a service manager.
func (m Manager) there() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

func (m Manager) tell(state string) {
	if !m.there() {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.Log.Warn("cannot tell the service manager", "what", state, "err", err)
	}
}

// statusLine says on one line what the agents are doing.
func statusLine(v orchestrator.Vitals) string {
	total := 0
	var states []string
	for _, s := range status.States() {
		n := v.Agents[s]
		total += n
		if n > 0 && s != status.Idle {
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
	}
	line := fmt.Sprintf("%d of %d session slots taken; %d agents", v.Sessions, v.Slots, total)
	if v.Stopping {
		line = "stopping; " + line
	}
	if len(states) > 0 {
		line += ": " + strings.Join(states, ", ")
	}
	return line
}
