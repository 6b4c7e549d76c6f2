package sources

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// mostDigits bounds the numbers that are computed exactly: reading digits takes time.
const mostDigits = 400

// integerOf returns a whole number: of any of Go's types, of JSON, or in a text that is
// a number of JSON.
func integerOf(value any) (*big.Int, bool) {
	switch v := reflect.ValueOf(value); {
	case !v.IsValid():
		return nil, false
	case v.CanInt():
		return big.NewInt(v.Int()), true
	case v.CanUint():
		return new(big.Int).SetUint64(v.Uint()), true
	case v.Kind() == reflect.String:
		text := v.String()
		if !isNumber(text) || len(text) > mostDigits {
			return nil, false
		}
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return n, true
		}
	}
	f, ok := floatOf(value)
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return nil, false
	}
	return big.NewInt(int64(f)), true
}

// floatOf returns a number, of the same values.
func floatOf(value any) (float64, bool) {
	switch v := reflect.ValueOf(value); {
	case !v.IsValid():
		return 0, false
	case v.CanFloat():
		return v.Float(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.Kind() == reflect.String && isNumber(v.String()):
		f, _ := strconv.ParseFloat(v.String(), 64) // one that is too large is infinite
		return f, true
	}
	return 0, false
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && strings.IndexByte("-0123456789", text[0]) >= 0 && json.Valid([]byte(text)) &&
		strings.TrimRight(text, " \t\r\n") == text
}

// isNumeric reports whether a value is a number itself, and not a text that looks so.
func isNumeric(value any) bool {
	if _, ok := value.(json.Number); ok {
		return true
	}
	v := reflect.ValueOf(value)
	return v.IsValid() && (v.CanInt() || v.CanUint() || v.CanFloat())
}

// compare returns which of two values is less, and whether there is an order between
// them: between numbers, one of which may be written as text, and between texts.
func compare(a, b any) (order int, is bool) {
	if isNumeric(a) || isNumeric(b) {
		if m, ok := integerOf(a); ok {
			if n, ok := integerOf(b); ok {
				return m.Cmp(n), true
			}
		}
		x, one := floatOf(a)
		y, two := floatOf(b)
		return cmp.Compare(x, y), one && two
	}
	x, one := a.(string)
	y, two := b.(string)
	return strings.Compare(x, y), one && two
}

// same reports whether two values are equal: as numbers, or as text.
func same(a, b any) bool {
	if order, is := compare(a, b); is {
		return order == 0
	}
	return textOf(a) == textOf(b)
}
