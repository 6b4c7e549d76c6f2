package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxID bounds ids and sources.
const maxID = 512

// check rejects a letter that could not be found or handed over later.
func (l Letter) check() error {
	if strings.TrimFunc(strings.ToValidUTF8(l.Prompt, "\uFFFD"), unicode.IsSpace) == "" {
		return errors.New("cannot queue a blank prompt: there is nothing to hand over")
	}
	for name, s := range map[string]string{"id": l.ID, "source": l.Source} {
		if len(s) > maxID || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("cannot queue an entry with the %s %.80q: it must be printable text of at most %d bytes",
				name, s, maxID)
		}
	}
	return nil
}

// deliveryID names one line of one file of the lane.
func (q *lane) deliveryID(generation, start int64, raw []byte) string {
	return deliveryID(q.urgent, generation, start, raw)
}

func deliveryID(urgent bool, generation, start int64, raw []byte) string {
	h := sha256.New()
	var n []byte
	if urgent {
		n = append(n, "urgent\x00"...)
	}
	n = strconv.AppendInt(n, generation, 10)
	n = append(n, 0)
	n = strconv.AppendInt(n, start, 10)
	n = append(n, 0)
	h.Write(n)
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:6])
}
