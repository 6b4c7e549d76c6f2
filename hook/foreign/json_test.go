package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestWhatJSONMayHold: what is counted, whatever stands in strings, and that no text is worth
// more memory than its bound.
func TestWhatJSONMayHold(t *testing.T) {
	t.Parallel()
	repeat := func(unit string, n int) string { return "[" + strings.Repeat(unit+",", n-1) + unit + "]" }
	for name, c := range map[string]struct {
		text string
		many bool
	}{
		"one value":                {`"a"`, false},
		"a long text":              {`"` + strings.Repeat(`,[{\"\\`, 1<<17) + `"`, false},
		"what clients write":       {`{"a":[1,2,{"b":"c,d"}],"e":null}`, false},
		"numbers":                  {repeat("1", MostValues+1), true},
		"nearly as many":           {repeat("1", MostValues-2), false},
		"empty objects":            {repeat("{}", MostValues), true},
		"objects of empty keys":    {repeat(`{"":0}`, MostValues/2+1), true},
		"an object of many":        {"{" + strings.TrimSuffix(strings.Repeat(`"k":0,`, MostValues+1), ",") + "}", true},
		"nested lists":             {strings.Repeat("[", MostDepth+1) + strings.Repeat("]", MostDepth+1), true},
		"as deep as may be":        {strings.Repeat("[", MostDepth) + strings.Repeat("]", MostDepth), false},
		"no JSON, with no end":     {strings.Repeat("[", 1<<20), true},
		"a text with no end":       {`"` + strings.Repeat("[", 1<<20), false},
		"an escape at the end":     {`"\`, false},
		"values one after another": {strings.Repeat("1 ", MostValues+1), false}, // the decoder takes one
	} {
		err := CheckJSON([]byte(c.text))
		if errors.Is(err, ErrMany) != c.many || (err != nil) != c.many {
			t.Errorf("%s: %v", name, err)
		}
		var v any
		if err := Unmarshal([]byte(c.text), &v); json.Valid([]byte(c.text)) && (err == nil) == c.many {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAListIsRead as json.Unmarshal reads it, but one with too many elements is not.
func TestAListIsRead(t *testing.T) {
	t.Parallel()
	type element struct{ A any }
	for text, want := range map[string]string{
		`[]`: `[]`, ` [ {"a":1} , {"a":[2]} ] `: `[{1} {[2]}]`, `[{"a":"x"}, null]`: `[{x} {<nil>}]`,
		`{}`: "not a list", `null`: "not a list", `"a"`: "not a list", ``: "EOF", `[{"a":1}`: "EOF", `[1]`: "cannot unmarshal", `[,]`: "invalid",
		"[" + strings.Repeat("{},", MostValues) + "{}]": "too many values",
	} {
		all, err := List[element]([]byte(text))
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && fmt.Sprint(all) != want {
			t.Errorf("%.20s: %v, %v, want %s", text, all, err, want)
		}
	}
	if all, err := List[int]([]byte("[" + strings.Repeat("1,", MostValues-1) + "1]")); len(all) != MostValues || err != nil {
		t.Errorf("%d, %v", len(all), err)
	}
}
