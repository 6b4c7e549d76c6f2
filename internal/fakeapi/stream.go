package fakeapi

import (
	"fmt"
	"maps"
	"net/http"
	"time"
)

// content is the answer's blocks in the API's form, and why it stopped.
func content(req *Request, a Answer) (list []map[string]any, stop string) {
	stop = "end_turn"
	if a.Empty {
		return []map[string]any{}, stop
	}
	if a.Text != "" || len(a.Tools) == 0 {
		list = append(list, map[string]any{"type": "text", "text": a.Text})
	}
	for i, t := range a.Tools {
		stop = "tool_use"
		if t.Input == nil { // null is none
			t.Input = map[string]any{}
		}
		list = append(list, map[string]any{
			"type": "tool_use", "id": toolID(req, i),
			"name": t.Name, "input": t.Input,
		})
	}
	return list, stop
}

func toolID(req *Request, i int) string { return fmt.Sprintf("toolu_%06d_%d", req.Number, i) }

func message(req *Request, list []map[string]any, stop any) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%06d", req.Number), "type": "message", "role": "assistant",
		"model": req.Model, "content": list, "stop_reason": stop, "stop_sequence": nil,
		"usage": req.Usage.fields(),
	}
}

func writeWhole(w http.ResponseWriter, req *Request, a Answer) {
	list, stop := content(req, a)
	w.Header().Set("Content-Type", "application/json")
	maps.Copy(w.Header(), a.Header)
	fmt.Fprint(w, compact(message(req, list, stop)))
}

// stream writes the answer as server-sent events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, req *Request, a Answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	send := func(event string, data map[string]any) {
		data["type"] = event
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, compact(data))
		flush.Flush() //nolint:errcheck // the client may be gone
	}
	if a.Hang == HangAfterHeaders {
		flush.Flush() //nolint:errcheck // the client may be gone
		s.wait(r, forever)
		return
	}
	list, stop := content(req, a)
	first := message(req, []map[string]any{}, nil)
	first["usage"] = req.Usage.begun().fields()
	send("message_start", map[string]any{"message": first})
	for i, block := range list {
		if !s.streamBlock(r, a, i, block, send) {
			return
		}
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]int{"output_tokens": req.Usage.Output},
	})
	send("message_stop", map[string]any{})
	s.sent(req)
}

// streamBlock sends one block in pieces. It says whether to go on.
func (s *Server) streamBlock(r *http.Request, a Answer, i int, block map[string]any, send func(string, map[string]any)) bool {
	start := map[string]any{}
	maps.Copy(start, block)
	var pieces []map[string]any
	if block["type"] == "text" {
		start["text"] = ""
		for _, p := range halves(a.Text) {
			pieces = append(pieces, map[string]any{"type": "text_delta", "text": p})
		}
	} else {
		start["input"] = map[string]any{}
		pieces = append(pieces, map[string]any{"type": "input_json_delta", "partial_json": compact(block["input"])})
	}
	send("content_block_start", map[string]any{"index": i, "content_block": start})
	for n, p := range pieces {
		if n > 0 && !s.goesOn(r, a, send) {
			return false
		}
		if !s.wait(r, a.Pause) {
			return false
		}
		send("content_block_delta", map[string]any{"index": i, "delta": p})
	}
	send("content_block_stop", map[string]any{"index": i})
	return true
}

// pingEvery is how often the API says in a stream that it is still there.
const pingEvery = 5 * time.Second

// goesOn is the middle of a text: where the answer hangs or breaks, it is false.
func (s *Server) goesOn(r *http.Request, a Answer, send func(string, map[string]any)) bool {
	switch a.Hang {
	case HangMidText:
		s.wait(r, forever)
		return false
	case HangPinging:
		for s.wait(r, pingEvery) {
			send("ping", map[string]any{})
		}
		return false
	case HangBeforeHeaders, HangAfterHeaders:
	}
	switch a.Break {
	case BreakCut:
		panic(http.ErrAbortHandler) // net/http closes the connection, and says nothing
	case BreakError:
		send("error", map[string]any{"error": map[string]string{"type": "overloaded_error", "message": "Overloaded"}})
		return false
	}
	return true
}

// halves cuts a text in two, on a rune boundary, so that every text is
// streamed in more than one piece.
func halves(text string) []string {
	runes := []rune(text)
	return []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}
