package client

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// StopRecord is what the transcript says about a Stop, once all of its hooks have
// ended. Measured in 2.1.329: hookErrors has "[COMMAND]: TEXT" of exit 2, the
// reason of a block, and, as failedHookErrorIndexes says, what failed hooks said. A
// hook that blocks has no duration, nor has one that the client does not wait for.
type StopRecord struct {
	Hooks []struct {
		Command  string   `json:"command"`
		Duration *float64 `json:"durationMs"`
	} `json:"hookInfos"`
	Errors    []string `json:"hookErrors"`
	Failed    []int    `json:"failedHookErrorIndexes"`
	Contexts  []string `json:"hookAdditionalContext"`
	Prevented bool     `json:"preventedContinuation"`
}

const stopSummary = "stop_hook_summary"

// stopped reads a line of the main conversation.
func stopped(line []byte) (*StopRecord, string) {
	var r struct {
		Subtype   string `json:"subtype"`
		Sidechain bool   `json:"isSidechain"`
		PromptID  string `json:"promptId"`
		StopRecord
	}
	switch {
	case json.Unmarshal(line, &r) != nil || r.Sidechain:
		return nil, ""
	case r.Subtype == stopSummary:
		return &r.StopRecord, r.PromptID
	}
	return nil, r.PromptID
}

// Stopping is what became of a Stop.
type Stopping struct {
	// Others are the command lines of the other hooks that continued the client;
	// UnknownHook for one that cannot be determined.
	Others []string
	// Continued is true if the client continued, because of any hook.
	Continued bool
	// Alone is true if it did and none of our hooks was called: the administrator's
	// hooks come first (2.1.329).
	Alone bool
	// CutBy is the hook that stopped the client although another one continued it.
	CutBy string
}

// UnknownHook names a Stop hook whose command line is not known.
const UnknownHook = "unknown Stop hook"

// Judge says what became of a Stop. mine is what our own hook said at it, or "";
// ours recognises our hooks by their command line.
func (r *StopRecord) Judge(mine string, ours func(command string) bool) Stopping {
	said := slices.Clone(r.Contexts)
	for i, text := range r.Errors {
		if !slices.Contains(r.Failed, i) {
			said = append(said, text)
		}
	}
	st := Stopping{Continued: len(said) > 0 && !r.Prevented}
	if len(said) > 0 && r.Prevented {
		st.CutBy = r.other(ours)
	}
	if !st.Continued {
		return st
	}
	st.Alone = true
	for _, h := range r.Hooks {
		st.Alone = st.Alone && !ours(h.Command)
	}
	own := slices.IndexFunc(said, func(text string) bool { return r.saidBy(ours, text) })
	if mine != "" && own < 0 {
		if own = slices.IndexFunc(said, func(text string) bool { return saidAs(text, mine) }); own < 0 && len(said) == 1 {
			return st // what we said is there, and nothing else
		}
	}
	for i, text := range said {
		switch {
		case i == own:
		case mine != "" && own < 0:
			st.Others = []string{UnknownHook}
		default:
			st.Others = AppendNew(st.Others, r.whoSaid(text, ours)...)
		}
	}
	return st
}

// saidAs reports whether a text of the record is one that we said, by exit 2 or by
// a block.
func saidAs(text, mine string) bool {
	text, mine = strings.TrimSpace(plainTags(text)), strings.TrimSpace(plainTags(mine))
	return text == mine || strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]: "+mine)
}

// saidBy reports whether one of our hooks said a text by exit 2, at this or an
// earlier Stop.
func (r *StopRecord) saidBy(ours func(string) bool, text string) bool {
	for _, h := range r.Hooks {
		if ours(h.Command) && strings.HasPrefix(text, "["+h.Command+"]: ") {
			return true
		}
	}
	return false
}

// whoSaid names the hook that said a text by exit 2, or those that may have, none
// of which is ours: a text that blocks, or adds to the context, does not say whose
// it is.
func (r *StopRecord) whoSaid(text string, ours func(string) bool) []string {
	var silent []string
	blocked := false // it may be ours, as JSON
	for _, h := range r.Hooks {
		if strings.HasPrefix(text, "["+h.Command+"]: ") {
			return []string{h.Command}
		}
		named := slices.ContainsFunc(r.Errors, func(e string) bool { return strings.HasPrefix(e, "["+h.Command+"]: ") })
		switch {
		case ours(h.Command):
			blocked = blocked || h.Duration == nil && !named
		case h.Duration == nil && !named:
			silent = append(silent, h.Command)
		}
	}
	switch {
	case len(silent) > 0:
		return silent
	case blocked:
		return nil
	}
	return []string{r.other(ours)}
}

// other returns the hook that is not ours, if there is exactly one.
func (r *StopRecord) other(ours func(string) bool) string {
	other := ""
	for _, h := range r.Hooks {
		switch {
		case ours(h.Command):
		case other != "":
			return UnknownHook
		default:
			other = h.Command
		}
	}
	return cmp.Or(other, UnknownHook)
}

// AppendNew appends values that a list does not have yet.
func AppendNew(all []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
