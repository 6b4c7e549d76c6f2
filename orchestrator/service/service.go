// Package service connects heartbeat with the machine's service manager: it tells
// systemd what a run is doing (sd_notify(3)), renders the units of systemd and
// launchd, and is the first process of a container.
package service
