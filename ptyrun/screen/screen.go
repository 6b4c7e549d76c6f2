// Package screen turns terminal output into what the terminal shows.
package screen
