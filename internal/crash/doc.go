// Package crash proves the queue from outside: it steps through the release
// binaries with ptrace and kills them before every system call that changes
// something, cuts the power of real file systems, lets processes race, and
// points the hook at directories that are broken in every way we know of. A
// model of the client decides from exit status and output alone what was
// handed over, and every run is judged by internal/promise from the record that
// this model and the senders keep, never by heartbeat's own files alone.
//
// There is nothing here but tests. `go test ./internal/crash` runs a sample of
// some 700 kills, every point of every form among them, and 60 power cuts;
//
//	go test ./internal/crash -full -v -timeout 60m -run 'Kill'
//
// makes some 25,000 kills: every point of every form, policy and follow-up,
// hook kill × recover kill, and 10,000 random ones (`-kills N`). Without -run it
// also cuts the power at every point on three file systems. README.md has the
// figures, CLAUSES.md what each promise of the queue is proved by.
//
// In the place of the shim, which begins a session before there is a client, stands
// orchestrator/session/sessiontest; in that of the scheduler, which has work checked,
// orchestrator/proving/provingtest. How a queue is kept nothing here knows: queued is by
// `heartbeat send` and `echo`, judged by the exports and `heartbeat inbox`. The part of a
// scheduler that has work checked is killed, and its power cut, in its own room (proving);
// whole schedulers are killed at random, among agents that lie (internal/e2e,
// liars_linux_test.go).
//
// Stepping needs ptrace, the power cuts need root, loop devices and mkfs.ext4,
// mkfs.xfs and mkfs.btrfs. What is missing is skipped with its reason; where
// CI is "true" a missing ptrace is a failure.
//
// Killing says nothing about syncing: the page cache survives. Only the power
// cuts do, and a copied image shows one order of persistence for each file
// system.
package crash
