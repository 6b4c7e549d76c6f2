package sources

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"text/template"
)

// functions take the place of text/template's own, which fail for what they did not
// expect: a prompt must not be lost because a field holds null or a word where a number
// was. They find no order between such values, and nothing at such an index.
var functions = template.FuncMap{
	"eq": func(args ...any) bool { return equalsAny(args) },
	"ne": func(args ...any) bool { return !equalsAny(args) },
	"lt": ordered(func(order int) bool { return order < 0 }),
	"le": ordered(func(order int) bool { return order <= 0 }),
	"gt": ordered(func(order int) bool { return order > 0 }),
	"ge": ordered(func(order int) bool { return order >= 0 }),

	"index": index, "slice": slice, "len": length,
	"printf": printf,
	"print":  func(args ...any) string { return fmt.Sprint(allSeen(args)...) },
	"println": func(args ...any) string {
		return fmt.Sprintln(allSeen(args)...)
	},
	"html":     func(args ...any) string { return template.HTMLEscaper(allSeen(args)...) },
	"js":       func(args ...any) string { return template.JSEscaper(allSeen(args)...) },
	"urlquery": func(args ...any) string { return template.URLQueryEscaper(allSeen(args)...) },

	fieldFunction: fieldOf, shownFunction: shown, headerFunction: header, eachFunction: each,
}

// arities are how many values a function of text/template has to be given: at least,
// and at most (-1: any number).
var arities = map[string][2]int{
	"eq": {2, -1}, "ne": {2, 2}, "lt": {2, 2}, "le": {2, 2}, "gt": {2, 2}, "ge": {2, 2},
	"and": {1, -1}, "or": {1, -1}, "not": {1, 1}, "index": {1, -1}, "slice": {1, 4}, "len": {1, 1}, "printf": {1, -1},
}

func equalsAny(args []any) bool {
	for _, arg := range args[min(1, len(args)):] {
		if same(args[0], arg) {
			return true
		}
	}
	return false
}

func ordered(holds func(order int) bool) func(args ...any) bool {
	return func(args ...any) bool {
		if len(args) != 2 {
			return false
		}
		order, is := compare(args[0], args[1])
		return is && holds(order)
	}
}

func allSeen(args []any) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = seen(arg)
	}
	return all
}

// index returns what is below a value: {{index .Paths 0}}, {{index .JSON "a b"}}.
func index(value any, keys ...any) any {
	for _, key := range keys {
		if list, ok := value.([]string); ok {
			value = anyOf(list)
		}
		value, _ = below(value, key)
	}
	return seen(value)
}

func anyOf(list []string) List {
	all := make(List, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

// slice cuts a text or a list; bounds that it does not have are its ends.
func slice(value any, bounds ...any) any {
	v := reflect.ValueOf(seen(value))
	if kind := v.Kind(); kind != reflect.String && kind != reflect.Slice {
		return seen(value)
	}
	from, to := 0, v.Len()
	for i, bound := range bounds[:min(2, len(bounds))] {
		n, ok := integerOf(bound)
		if !ok || !n.IsInt64() {
			continue
		}
		at := int(min(max(n.Int64(), 0), int64(v.Len())))
		if i == 0 {
			from = at
		} else {
			to = at
		}
	}
	return v.Slice(min(from, to), to).Interface()
}

// length is that of a text, a list or an object; other values of JSON have that of their
// text.
func length(value any) (int, error) {
	v := reflect.ValueOf(seen(value))
	_, onJSON := value.(fielder)
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Array:
		return v.Len(), nil
	case reflect.Struct:
		if !onJSON {
			return 0, fmt.Errorf("len of type %T", value)
		}
	}
	return len(textOf(value)), nil
}

// directive is one of printf's, such as %04d: its flags, its width, its verb.
var directive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%([-+# 0]*)(\d{0,4})(?:\.\d{0,4})?([a-zA-Z%])`)
})

const verbs = "vsqdboOxXcUeEfFgGt"

// printf formats as Go does. A value that a verb cannot show is shown as text, and one
// that is not given as nothing.
func printf(format any, args ...any) string {
	return directive().ReplaceAllStringFunc(textOf(format), func(one string) string {
		verb := one[len(one)-1]
		switch {
		case verb == '%':
			return "%"
		case strings.IndexByte(verbs, verb) < 0:
			return one
		}
		var value any
		if len(args) > 0 {
			value, args = args[0], args[1:]
		}
		if fit, ok := fitting(verb, value); ok {
			return fmt.Sprintf(one, fit)
		}
		if strings.IndexByte("svqxX", verb) < 0 {
			parts := directive().FindStringSubmatch(one)
			one = "%" + strings.Trim(parts[1], "+# 0") + parts[2] + "s"
		}
		return fmt.Sprintf(one, textOf(value))
	})
}

// fitting returns a value in the type that a verb can show.
func fitting(verb byte, value any) (any, bool) {
	switch {
	case strings.IndexByte("dboOcU", verb) >= 0, strings.IndexByte("xX", verb) >= 0 && isNumeric(value):
		n, ok := integerOf(value)
		switch {
		case !ok:
			return nil, false
		case n.IsInt64():
			return n.Int64(), true
		}
		return n, strings.IndexByte("cU", verb) < 0
	case strings.IndexByte("eEfFgG", verb) >= 0:
		return floatOf(value)
	case verb == 't':
		is, ok := value.(bool)
		return is, ok
	}
	list, ok := value.([]string) // which %q and %v show as Go does
	return list, ok
}

// formatFault says what is wrong with a format for a number of values, or "".
func formatFault(format string, values int) string {
	wanted := 0
	for _, one := range directive().FindAllString(format, -1) {
		switch verb := one[len(one)-1]; {
		case verb == '%':
		case !strings.Contains(verbs, string(verb)):
			return fmt.Sprintf("printf does not know %s", one)
		default:
			wanted++
		}
	}
	switch {
	case strings.Contains(directive().ReplaceAllString(format, ""), "%"):
		return "printf does not know what the % in its format is for: write %% for the sign itself"
	case wanted != values:
		return fmt.Sprintf("printf has %d values for a format of %d", values, wanted)
	}
	return ""
}
