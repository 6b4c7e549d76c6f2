// Package disk has small file systems of their own, whose power a test can cut: a copy of
// the image of a mounted one is what has reached the disk. That takes root, loop devices
// and the programs that make them.
package disk
