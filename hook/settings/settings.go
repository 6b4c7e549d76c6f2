// Package settings renders, merges and removes our entries in Claude Code's
// settings.json. It works on bytes and touches no disk; everything that is
// not ours keeps its bytes, order and indentation.
package settings
