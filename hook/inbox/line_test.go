package inbox

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestALineIsDecoded(t *testing.T) {
	t.Parallel()
	const bom = "\xef\xbb\xbf"
	for _, c := range []struct {
		name, line string
		first      bool
		want       decoded
	}{
		{"plain text", "check the mail", false, decoded{kind: text, prompt: "check the mail"}},
		{"outer white space is trimmed", " \t check\r", false, decoded{kind: text, prompt: "check"}},
		{"a JSON string is unwrapped", `"a\nb"`, false, decoded{kind: text, prompt: "a\nb"}},
		{"white space in a JSON string stays", `"  a "`, false, decoded{kind: text, prompt: "  a "}},
		{"an envelope is opened", `{"heartbeat":1,"id":"7","source":"send","prompt":"hi"}`, false, decoded{kind: text, id: "7", source: "send", prompt: "hi"}},
		{"an envelope with blanks", "{ \"heartbeat\" : 1, \"prompt\" : \"hi\" }", false, decoded{kind: text, prompt: "hi"}},
		{"another object is plain text", `{"prompt":"hi","heartbeat":1}`, false, decoded{kind: text, prompt: `{"prompt":"hi","heartbeat":1}`}},
		{"an object with our key is not always ours", `{"heartbeat":"ok"}`, false, decoded{kind: text, prompt: `{"heartbeat":"ok"}`}},
		{"an envelope of another version is plain text", `{"heartbeat":2,"prompt":"x"}`, false, decoded{kind: text, prompt: `{"heartbeat":2,"prompt":"x"}`}},
		{"a number is plain text", "42", false, decoded{kind: text, prompt: "42"}},
		{"null is plain text", "null", false, decoded{kind: text, prompt: "null"}},
		{"an array is plain text", `["a"]`, false, decoded{kind: text, prompt: `["a"]`}},
		{"a quotation is plain text", `"Fix" the "bug"`, false, decoded{kind: text, prompt: `"Fix" the "bug"`}},
		{"an unknown escape is plain text", `"a\qb"`, false, decoded{kind: text, prompt: `"a\qb"`}},
		{"a lone surrogate", `"\ud800x"`, false, decoded{kind: text, prompt: "\uFFFDx"}},
		{"invalid UTF-8", "a\xffb", false, decoded{kind: text, prompt: "a\uFFFDb"}},
		{"NUL and ESC inside", "a\x00b\x1bc", false, decoded{kind: text, prompt: "a\x00b\x1bc"}},
		{"a byte order mark at the start", bom + `"a\nb"`, true, decoded{kind: text, prompt: "a\nb"}},
		{"a byte order mark later is text", bom + "x", false, decoded{kind: text, prompt: bom + "x"}},
		{"empty", "", false, decoded{}},
		{"blank", " \t\r", false, decoded{}},
		{"an empty JSON string", `""`, false, decoded{}},
		{"a blank JSON string", `"  \n "`, false, decoded{}},
		{"a blank envelope", `{"heartbeat":1,"prompt":" "}`, false, decoded{}},
		{"only NULs", "\x00\x00\x00", false, decoded{}},
		{"what a power cut leaves", "\x00\x00rest of a line", false, decoded{kind: torn}},
		{"the start of a JSON string", `"abc`, false, decoded{kind: torn}},
		{"a quote", `"`, false, decoded{kind: torn}},
		{"a cut escape", `"abc\`, false, decoded{kind: torn}},
		{"a fragment and a whole string", `"abc"def"`, false, decoded{kind: torn}},
		{"the start of an envelope", `{"heartbeat":1,"id":"7","pro`, false, decoded{kind: torn}},
		{"a brace", `{`, false, decoded{kind: torn}},
		{"a cut first key", `{"hear`, false, decoded{kind: torn}},
		{"an envelope glued to another", `{"heartbeat":1,"prompt":"a{"heartbeat":1,"prompt":"b"}`, false, decoded{kind: torn}},
		{"another cut object is plain text", `{"ts":1,"con`, false, decoded{kind: text, prompt: `{"ts":1,"con`}},
	} {
		if got := decode([]byte(c.line), c.first); got != c.want {
			t.Errorf("%s: decode(%q) = %+v, want %+v", c.name, c.line, got, c.want)
		}
	}
}

// Every proper prefix of an envelope is torn or nothing: never a prompt.
func TestNoPrefixOfAnEnvelopeIsHandedOver(t *testing.T) {
	t.Parallel()
	line, err := encode(envelope{Heartbeat: 1, ID: "7", Source: "a/b@c", Prompt: "say \"hi\" \\ {\"heartbeat\"} ü"})
	if err != nil {
		t.Fatal(err)
	}
	line = line[:len(line)-1]
	for n := 1; n < len(line); n++ {
		if got := decode(line[:n], false); got.kind != torn {
			t.Errorf("decode(%q) = %+v", line[:n], got)
		}
	}
}

func TestDecodeUndoesEncode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prompt := rapid.String().Draw(t, "prompt")
		e := envelope{Heartbeat: 1, ID: "x", Source: "send", Prompt: prompt}
		line, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(line), "\n") != 1 {
			t.Fatalf("not one line: %q", line)
		}
		got := decode(line[:len(line)-1], false)
		if strings.TrimSpace(prompt) == "" {
			if got.kind != blank {
				t.Fatalf("a blank prompt gives %+v", got)
			}
			return
		}
		if got != (decoded{kind: text, id: "x", source: "send", prompt: prompt}) {
			t.Fatalf("%q gives %+v", prompt, got)
		}
	})
}

func FuzzDecodeLine(f *testing.F) {
	for _, s := range []string{"plain", `"a\nb"`, `{"heartbeat":1,"prompt":"x"}`, "\xef\xbb\xbf\"x\"", `"\ud800"`, "\x00", `{"heartbeat`} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, line []byte, first bool) {
		got := decode(line, first)
		if (got.kind == text) != (got.prompt != "") {
			t.Fatalf("decode(%q) = %+v", line, got)
		}
		if got.kind == text && (!utf8.ValidString(got.prompt) || strings.TrimSpace(got.prompt) == "") {
			t.Fatalf("decode(%q) gives the prompt %q", line, got.prompt)
		}
	})
}

func FuzzInFlight(f *testing.F) {
	e := &Entry{Raw: []byte("hello"), Start: 0, End: 6}
	ours, err := json.Marshal((&lane{}).newFlight(e, 7).InFlight)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ours)
	f.Add([]byte(`{"entry_id":"x","start_offset":0,"end_offset":6,"raw_line":"hello","delivered_at":"2026-01-01T00:00:00.123456789+00:00"}`))
	f.Add([]byte(`{"partial":`))
	f.Add([]byte(`{"end_offset":9223372036854775807,"raw_line":"x","start_offset":-1}`))
	// Whatever stands in the record: it does not panic, acknowledges nothing,
	// and the queue goes on.
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t).unsynced()
		r.put("inbox.jsonl", "hello\nworld\n")
		r.put(FlightFile, string(data))
		if _, err := r.InFlight(); err != nil {
			t.Fatalf("InFlight: %v", err)
		}
		if c := r.get(CursorFile); c != "" && c != "0" {
			t.Fatalf("the cursor moved to %q", c)
		}
		if _, _, err := r.Recover(Interruption{Policy: Retry}); err != nil {
			t.Fatalf("Recover: %v", err)
		}
		if f, err := r.InFlight(); err != nil || f != nil {
			t.Fatalf("in flight after recovery: %+v, %v", f, err)
		}
		got := join(r.drain())
		if !strings.Contains(got, "hello|world") {
			t.Fatalf("drained %q", got)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "0", "6", " 6\n", "abc", "-1", "0x10", "18446744073709551616", "+6", "3"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	// Whatever stands in the cursor: nothing from a line's middle, nothing
	// silent.
	f.Fuzz(func(t *testing.T, data []byte, known bool) {
		r := newRig(t).unsynced()
		r.put("inbox.jsonl", "first\nsecond\nthird\n")
		if known {
			r.offer()
			r.advance(Taken)
			r.ack()
		}
		r.put(CursorFile, string(data))
		got := r.nextOrOperator()
		switch got {
		case "first", "second", "third", "needs a person":
		case "":
			// Everything is done, or heartbeat-rs took the last line before
			// its newline came; a rest of it is a dead letter.
			c := parseCursor(data)
			if c == nil || *c != 19 && (known || *c != 18 && len(r.dead()) == 0) {
				t.Fatalf("cursor %q: nothing is left", data)
			}
		default:
			t.Fatalf("cursor %q: %q was handed over", data, got)
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"dev":1,"ino":2,"generation":3,"cursor":6,"tail":"x"}`))
	f.Add([]byte(`{"generation":9223372036854775807,"cursor":9223372036854775807,"tail":"0000000000000000000000000000000000000000000000000000000000000000"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t).unsynced()
		r.put("inbox.jsonl", "first\nsecond\n")
		r.put(CursorFile, "6")
		r.put(metaFile, string(data))
		switch got := r.nextOrOperator(); got {
		case "first", "second", "needs a person":
		default:
			t.Fatalf("sidecar %q: %q was handed over", data, got)
		}
	})
}

func FuzzDeadLetter(f *testing.F) {
	f.Add([]byte("{\"entry_id\":\"x\",\"raw_line\":\"a\"}\n{\"torn"))
	f.Add([]byte("\n\n{}\nnull\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t).unsynced()
		r.put(DeadFile, string(data))
		for range r.DeadLetters() {
			continue
		}
		r.echo("{\"heartbeat\n") // a fragment
		r.next()
		var last DeadEntry
		for d, err := range r.DeadLetters() {
			if err != nil {
				t.Fatal(err)
			}
			last = d
		}
		if last.Reason != Torn || last.RawLine != `{"heartbeat` {
			t.Fatalf("behind %q the record is %+v", data, last)
		}
	})
}
