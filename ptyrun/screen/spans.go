package screen

import (
	"image/color"
	"math"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"heartbeat/hook/foreign"
)

// Hue is a colour as far as it means something: which one of a few it is like. How it
// looks is for who shows it, on a light or a dark ground.
type Hue string

// The hues. None is the ground's or the text's own colour, and what is like white or
// black.
const (
	None    Hue = ""
	Gray    Hue = "gray"
	Red     Hue = "red"
	Yellow  Hue = "yellow"
	Green   Hue = "green"
	Cyan    Hue = "cyan"
	Blue    Hue = "blue"
	Magenta Hue = "magenta"
)

// Style is how cells look.
type Style struct {
	Text, Back                               Hue
	Bold, Faint, Italic, Underlined, Crossed bool
	// Swapped is true where text and ground are exchanged.
	Swapped bool
}

// Span is text of cells beside each other that look the same. Links of a terminal are
// not kept: where they lead is what a program says.
type Span struct {
	Text  foreign.Text
	Style Style
}

// Spans returns the rows from the top, like Lines, with how they look.
func (s *Screen) Spans() (rows [][]Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.guarded(func() error {
		last := 0
		for y := range s.emu.Height() {
			rows = append(rows, s.row(y))
			if len(rows[y]) > 0 {
				last = y + 1
			}
		}
		rows = rows[:last]
		return nil
	})
	return rows
}

// row returns the spans of a row, without what is blank at its end.
func (s *Screen) row(y int) (spans []Span) {
	var text strings.Builder
	var style Style
	flush := func() {
		if text.Len() > 0 {
			spans = append(spans, Span{foreign.Text(text.String()), style})
			text.Reset()
		}
	}
	for x := range s.emu.Width() {
		cell := s.emu.CellAt(x, y)
		if cell == nil || cell.Content == "" && cell.Width == 0 && x > 0 { // the rest of a wide one
			continue
		}
		next, content := styleOf(cell.Style), cell.Content
		if content == "" || cell.Style.Attrs&uv.AttrConceal != 0 {
			content = " "
		}
		if next != style {
			flush()
			style = next
		}
		text.WriteString(content)
	}
	flush()
	for n := len(spans) - 1; n >= 0; n-- {
		if spans[n].Style.Back != None || spans[n].Style.Swapped {
			break
		}
		if spans[n].Text = foreign.Text(strings.TrimRight(spans[n].Text.Raw(), " ")); spans[n].Text != "" {
			break
		}
		spans = spans[:n]
	}
	return spans
}

func styleOf(s uv.Style) Style {
	has := func(attr uint8) bool { return s.Attrs&attr != 0 }
	return Style{
		Text: hueOf(s.Fg, None), Back: hueOf(s.Bg, Gray),
		Bold: has(uv.AttrBold), Faint: has(uv.AttrFaint), Italic: has(uv.AttrItalic), Crossed: has(uv.AttrStrikethrough),
		Underlined: s.Underline != uv.UnderlineNone, Swapped: has(uv.AttrReverse),
	}
}

// hueOf returns what a colour is like; extreme is for what is like white or black.
func hueOf(c color.Color, extreme Hue) Hue {
	if c == nil {
		return None
	}
	r16, g16, b16, _ := c.RGBA()
	r, g, b := float64(r16)/0xffff, float64(g16)/0xffff, float64(b16)/0xffff
	most, least := max(r, g, b), min(r, g, b)
	if most-least < 0.15*max(most, 0.4) {
		if most < 0.25 || most > 0.75 {
			return extreme
		}
		return Gray
	}
	var angle float64
	switch most {
	case r:
		angle = math.Mod((g-b)/(most-least)+6, 6)
	case g:
		angle = (b-r)/(most-least) + 2
	default:
		angle = (r-g)/(most-least) + 4
	}
	for _, h := range []struct {
		until float64
		hue   Hue
	}{{12, Red}, {70, Yellow}, {165, Green}, {200, Cyan}, {265, Blue}, {335, Magenta}} {
		if angle*60 < h.until {
			return h.hue
		}
	}
	return Red
}
