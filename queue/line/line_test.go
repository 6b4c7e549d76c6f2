package line

import (
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
		want       Content
	}{
		{"plain text", "check the mail", false, Content{Kind: Text, Prompt: "check the mail"}},
		{"outer white space is trimmed", " \t check\r", false, Content{Kind: Text, Prompt: "check"}},
		{"a JSON string is unwrapped", `"a\nb"`, false, Content{Kind: Text, Prompt: "a\nb"}},
		{"white space in a JSON string stays", `"  a "`, false, Content{Kind: Text, Prompt: "  a "}},
		{"an envelope is opened", `{"heartbeat":1,"id":"7","source":"send","prompt":"hi"}`, false, Content{Kind: Text, ID: "7", Source: "send", Prompt: "hi"}},
		{"an envelope with blanks", "{ \"heartbeat\" : 1, \"prompt\" : \"hi\" }", false, Content{Kind: Text, Prompt: "hi"}},
		{"another object is plain text", `{"prompt":"hi","heartbeat":1}`, false, Content{Kind: Text, Prompt: `{"prompt":"hi","heartbeat":1}`}},
		{"an object with our key is not always ours", `{"heartbeat":"ok"}`, false, Content{Kind: Text, Prompt: `{"heartbeat":"ok"}`}},
		{"an envelope of another version is plain text", `{"heartbeat":2,"prompt":"x"}`, false, Content{Kind: Text, Prompt: `{"heartbeat":2,"prompt":"x"}`}},
		{"a number is plain text", "42", false, Content{Kind: Text, Prompt: "42"}},
		{"null is plain text", "null", false, Content{Kind: Text, Prompt: "null"}},
		{"an array is plain text", `["a"]`, false, Content{Kind: Text, Prompt: `["a"]`}},
		{"a quotation is plain text", `"Fix" the "bug"`, false, Content{Kind: Text, Prompt: `"Fix" the "bug"`}},
		{"an unknown escape is plain text", `"a\qb"`, false, Content{Kind: Text, Prompt: `"a\qb"`}},
		{"a lone surrogate", `"\ud800x"`, false, Content{Kind: Text, Prompt: "\uFFFDx"}},
		{"invalid UTF-8", "a\xffb", false, Content{Kind: Text, Prompt: "a\uFFFDb"}},
		{"NUL and ESC inside", "a\x00b\x1bc", false, Content{Kind: Text, Prompt: "a\x00b\x1bc"}},
		{"a byte order mark at the start", bom + `"a\nb"`, true, Content{Kind: Text, Prompt: "a\nb"}},
		{"a byte order mark later is text", bom + "x", false, Content{Kind: Text, Prompt: bom + "x"}},
		{"empty", "", false, Content{}},
		{"blank", " \t\r", false, Content{}},
		{"an empty JSON string", `""`, false, Content{}},
		{"a blank JSON string", `"  \n "`, false, Content{}},
		{"a blank envelope", `{"heartbeat":1,"prompt":" "}`, false, Content{}},
		{"only NULs", "\x00\x00\x00", false, Content{}},
		{"what a power cut leaves", "\x00\x00rest of a line", false, Content{Kind: Fragment}},
		{"the start of a JSON string", `"abc`, false, Content{Kind: Fragment}},
		{"a quote", `"`, false, Content{Kind: Fragment}},
		{"a cut escape", `"abc\`, false, Content{Kind: Fragment}},
		{"a fragment and a whole string", `"abc"def"`, false, Content{Kind: Fragment}},
		{"the start of an envelope", `{"heartbeat":1,"id":"7","pro`, false, Content{Kind: Fragment}},
		{"a brace", `{`, false, Content{Kind: Fragment}},
		{"a cut first key", `{"hear`, false, Content{Kind: Fragment}},
		{"an envelope glued to another", `{"heartbeat":1,"prompt":"a{"heartbeat":1,"prompt":"b"}`, false, Content{Kind: Fragment}},
		{"another cut object is plain text", `{"ts":1,"con`, false, Content{Kind: Text, Prompt: `{"ts":1,"con`}},
	} {
		if got := Decode([]byte(c.line), c.first); got != c.want {
			t.Errorf("%s: Decode(%q) = %+v, want %+v", c.name, c.line, got, c.want)
		}
	}
}

// Every proper prefix of an envelope is torn or nothing: never a prompt.
func TestNoPrefixOfAnEnvelopeIsHandedOver(t *testing.T) {
	t.Parallel()
	line, err := Encode(Envelope{Heartbeat: 1, ID: "7", Source: "a/b@c", Prompt: "say \"hi\" \\ {\"heartbeat\"} ü"})
	if err != nil {
		t.Fatal(err)
	}
	line = line[:len(line)-1]
	for n := 1; n < len(line); n++ {
		if got := Decode(line[:n], false); got.Kind != Fragment {
			t.Errorf("Decode(%q) = %+v", line[:n], got)
		}
	}
}

func TestDecodeUndoesEncode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prompt := rapid.String().Draw(t, "prompt")
		e := Envelope{Heartbeat: 1, ID: "x", Source: "send", Prompt: prompt}
		line, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(line), "\n") != 1 {
			t.Fatalf("not one line: %q", line)
		}
		got := Decode(line[:len(line)-1], false)
		if strings.TrimSpace(prompt) == "" {
			if got.Kind != Blank {
				t.Fatalf("a blank prompt gives %+v", got)
			}
			return
		}
		if got != (Content{Kind: Text, ID: "x", Source: "send", Prompt: prompt}) {
			t.Fatalf("%q gives %+v", prompt, got)
		}
	})
}

func FuzzDecodeLine(f *testing.F) {
	for _, s := range []string{"plain", `"a\nb"`, `{"heartbeat":1,"prompt":"x"}`, "\xef\xbb\xbf\"x\"", `"\ud800"`, "\x00", `{"heartbeat`} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, line []byte, first bool) {
		got := Decode(line, first)
		if (got.Kind == Text) != (got.Prompt != "") {
			t.Fatalf("Decode(%q) = %+v", line, got)
		}
		if got.Kind == Text && (!utf8.ValidString(got.Prompt) || strings.TrimSpace(got.Prompt) == "") {
			t.Fatalf("Decode(%q) gives the prompt %q", line, got.Prompt)
		}
	})
}
