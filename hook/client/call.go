package client

import (
	"bytes"
	"encoding/json"
)

// Call is a call of a tool, as the transcript has it.
type Call struct{ ID, Name string }

// calls reads which tools a line of the main conversation calls, and the calls of
// which it has the results, by their ids. Measured in 2.1.329: a call is written
// before its tool runs, and the result when it has ended, also when the tool was
// refused or interrupted.
func calls(line []byte) (begun []Call, ended []string) {
	if !bytes.Contains(line, []byte(`"tool_`)) {
		return nil, nil
	}
	var r struct {
		Sidechain bool `json:"isSidechain"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	var blocks []struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		Name  string `json:"name"`
		UseID string `json:"tool_use_id"`
	}
	if json.Unmarshal(line, &r) != nil || r.Sidechain || json.Unmarshal(r.Message.Content, &blocks) != nil {
		return nil, nil
	}
	for _, b := range blocks {
		switch {
		case b.Type == "tool_use" && b.ID != "":
			begun = append(begun, Call{b.ID, b.Name})
		case b.Type == "tool_result" && b.UseID != "":
			ended = append(ended, b.UseID)
		}
	}
	return begun, ended
}
