// Package e2e holds tests of whole programs: the real Claude Code client, or
// the stand-in (internal/simulate), in a pseudo-terminal, with real hooks,
// against a fake API.
//
// The test binary starts itself again in a network namespace that has only
// loopback, so nothing a client does leaves the machine; without the right to
// make one, tests that need the real client are skipped with the reason. The
// real client is the file that HEARTBEAT_CLAUDE names, or what
// .ci/client/install has installed. With CI=true a missing client or namespace
// is a failure.
//
// The client's behaviour that heartbeat relies on is written down in testdata
// as recorded from the real client (go test ./internal/e2e -update); both
// clients are held to it. What nothing of ours plays in, and what starts the
// client for each line of a table, is tried in part, by the sample (see
// internal/testbed), and whole with -full.
package e2e
