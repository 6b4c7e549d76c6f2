package durable

// Writing says whether a process has a file open for writing.
type Writing int

// What Writing can be.
const (
	NotWritten     Writing = iota // nobody has
	Written                       // somebody has
	WritingUnknown                // it cannot be told
)
