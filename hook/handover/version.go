package handover

import (
	"heartbeat/hook/client"
)

// versionLook is how much of the end of a transcript is searched for its client's
// version, which each message names.
const versionLook = 4 << 20

// VersionOf returns the version of the client that wrote the end of a transcript, "" if
// that does not say.
func VersionOf(transcript string) (version string) {
	tape := Tape{Path: transcript, Offset: max(0, TranscriptSize(transcript)-versionLook)}
	tape.Read(func(line []byte) {
		if v := client.Claude.Transcript.Version(line); v != "" {
			version = v
		}
	})
	return version
}
