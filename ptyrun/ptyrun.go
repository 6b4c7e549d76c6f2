// Package ptyrun runs one child in a PTY and leaves nothing behind: it
// starts it in a process session of its own, drains and logs its terminal,
// knows its activity, and ends its whole tree.
package ptyrun
