// Package bench has the benchmarks of the release programs as whole processes,
// called the way the client calls them:
//
//	go test ./internal/bench -bench . -benchtime 200x
//
// What is compared is measured in turns in the same benchmark, because a busy or
// a throttled machine changes from minute to minute; only ratios (x-…) mean
// something elsewhere. A ratio over its target fails the benchmark. They work in
// TMPDIR, which should lie on the disk that agents live on: most of a tick is
// waiting for it.
//
// Benchmarks of one package's work stand in that package;
//
//	go test -run '^$' -bench . ./...
//
// runs all of them.
package bench
