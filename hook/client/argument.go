package client

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxArgument is the largest text that is put into argv; the kernel's own limit for
// one argument is 131,072 bytes (execve(2), MAX_ARG_STRLEN).
const maxArgument = 100_000

// carriedByArgument is Client.Carries of Claude Code. 2.1.329 was given each
// existing code point, alone and after characters that may preserve it: it strips
// control characters and most invisible ones, keeps joiners and variation selectors
// only where they have a meaning, turns a line separator into a newline, and acts
// on a few words of its own. Whatever is not known to be carried does not fit; a
// Stop hook carries everything.
func carriedByArgument(text string) bool {
	if len(text) > maxArgument || !utf8.ValidString(text) || minded(text) {
		return false
	}
	runes := []rune(text)
	for i, r := range runes {
		if !carried(runes[:i], r, runes[i+1:]) {
			return false
		}
	}
	return true
}

// minded reports whether a text has a word that the client acts on: it adds a
// newline to ultracode, a backslash to its own tags.
func minded(text string) bool {
	lower := strings.ToLower(text)
	return strings.Contains(lower, "ultracode") || strings.Contains(lower, "pasted_content")
}

const (
	nonJoiner, joiner          = '\u200c', '\u200d'
	textSelector, emojSelector = '\ufe0e', '\ufe0f'
	keycap                     = '\u20e3'
)

// carried judges a character by itself or, if that is not enough, by its
// neighbours.
func carried(before []rune, r rune, after []rune) bool {
	next := rune(-1)
	if len(after) > 0 {
		next = after[0]
	}
	switch r {
	case '\n', '\t':
		return true
	case nonJoiner:
		return joins(before)
	case joiner:
		return joins(before) || shows(before) && pictographic(next)
	case textSelector, emojSelector:
		return selectable(before, next)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs, unicode.Co) &&
		!unicode.In(r, invisible...)
}

// invisible are the letters and marks that the client strips.
var invisible = []*unicode.RangeTable{
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	{R16: []unicode.Range16{{0x180b, 0x180f, 1}}, R32: []unicode.Range32{{0x1107f, 0x1107f, 1}, {0x16fe4, 0x16fe4, 1}}},
}

// joining are the scripts in which a joiner changes how letters look.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Tibetan, unicode.Myanmar, unicode.Khmer,
}

// joins reports whether a joiner may follow: a letter of such a script with its marks.
func joins(before []rune) bool {
	for _, r := range slices.Backward(before) {
		if !unicode.Is(unicode.M, r) {
			return unicode.Is(unicode.Lo, r) && unicode.In(r, joining...)
		}
	}
	return false
}

// shows reports whether the text ends with an emoji, with or without a skin tone or
// a selector.
func shows(before []rune) bool {
	n := len(before)
	if n > 1 && (tone(before[n-1]) || before[n-1] == textSelector || before[n-1] == emojSelector) {
		n--
	}
	return n > 0 && pictographic(before[n-1])
}

// selectable reports whether a variation selector may follow: after an emoji, or
// after what a keycap follows.
func selectable(before []rune, next rune) bool {
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	return pictographic(last) || tone(last) || strings.ContainsRune("0123456789#*", last) && next == keycap
}

func tone(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// pictographic reports whether a character is an emoji by itself. The other code
// points that the client takes for emoji are not assigned.
func pictographic(r rune) bool {
	return strings.ContainsRune(pictographs, r) || unicode.Is(morePictographs, r) && !tone(r)
}

const pictographs = "©®‼⁉™ℹ↔↕↖↗↘↙↩↪⌚⌛⌨⏏⏩⏪⏫⏬⏭⏮⏯⏰⏱⏲⏳⏸⏹⏺Ⓜ▪▫▶◀◻◼◽◾☀☁☂☃☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸☹☺♀♂♈♉♊♋♌♍♎♏♐♑♒♓♟♠♣♥♦♨♻♾♿" +
	"⚒⚓⚔⚕⚖⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏⛑⛓⛔⛩⛪⛰⛱⛲⛳⛴⛵⛷⛸⛹⛺⛽✂✅✈✉✊✋✌✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓❔❕❗❣❤➕➖➗➡➰➿⤴⤵⬅⬆⬇⬛⬜⭐⭕〰〽㊗㊙"

var morePictographs = &unicode.RangeTable{R32: []unicode.Range32{
	{0x1f300, 0x1f321, 1},
	{0x1f324, 0x1f393, 1},
	{0x1f396, 0x1f397, 1},
	{0x1f399, 0x1f39b, 1},
	{0x1f39e, 0x1f3f0, 1},
	{0x1f3f3, 0x1f3f5, 1},
	{0x1f3f7, 0x1f4fd, 1},
	{0x1f4ff, 0x1f53d, 1},
	{0x1f549, 0x1f54e, 1},
	{0x1f550, 0x1f567, 1},
	{0x1f56f, 0x1f570, 1},
	{0x1f573, 0x1f57a, 1},
	{0x1f587, 0x1f587, 1},
	{0x1f58a, 0x1f58d, 1},
	{0x1f590, 0x1f590, 1},
	{0x1f595, 0x1f596, 1},
	{0x1f5a4, 0x1f5a5, 1},
	{0x1f5a8, 0x1f5a8, 1},
	{0x1f5b1, 0x1f5b2, 1},
	{0x1f5bc, 0x1f5bc, 1},
	{0x1f5c2, 0x1f5c4, 1},
	{0x1f5d1, 0x1f5d3, 1},
	{0x1f5dc, 0x1f5de, 1},
	{0x1f5e1, 0x1f5e1, 1},
	{0x1f5e3, 0x1f5e3, 1},
	{0x1f5e8, 0x1f5e8, 1},
	{0x1f5ef, 0x1f5ef, 1},
	{0x1f5f3, 0x1f5f3, 1},
	{0x1f5fa, 0x1f64f, 1},
	{0x1f680, 0x1f6c5, 1},
	{0x1f6cb, 0x1f6d2, 1},
	{0x1f6d5, 0x1f6d7, 1},
	{0x1f6dc, 0x1f6e5, 1},
	{0x1f6e9, 0x1f6e9, 1},
	{0x1f6eb, 0x1f6ec, 1},
	{0x1f6f0, 0x1f6f0, 1},
	{0x1f6f3, 0x1f6fc, 1},
	{0x1f7e0, 0x1f7eb, 1},
	{0x1f90c, 0x1f93a, 1},
	{0x1f93c, 0x1f945, 1},
	{0x1f947, 0x1f9ff, 1},
	{0x1fa70, 0x1faff, 1},
}}
