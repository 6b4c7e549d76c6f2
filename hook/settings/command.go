package settings

import (
	"path"
	"strconv"
	"strings"

	"heartbeat/hook/ask"
	"heartbeat/hook/client"
)

// The client takes a hook's exit status 2 as "stderr is a prompt". A Go program exits with 2
// when its runtime cannot begin or go on, and /bin/sh where it cannot fork. So our program ends
// with another status (ask.StatusPrompt) after it has handed a prompt over, and the shell
// around it makes 2 of that one and 0 of whatever else happens, also to itself: it runs the trap
// at each of its ends.
const ahead = "r=0; trap 'exit $r' 0; "

var behind = " hook; test $? = " + strconv.Itoa(ask.StatusPrompt) + " && r=" + strconv.Itoa(client.StatusPrompt)

// Command returns the hook command line for a binary, whose path is quoted for /bin/sh if
// necessary. The client shows it to the model with every prompt, so it is short.
func Command(binary string) string { return ahead + Quote(binary) + behind }

// Ours reports whether a hook's command line is one of ours, as it is now or as an earlier
// version wrote it.
func Ours(command string) bool {
	_, ours := Program(command)
	return ours
}

// Program returns the program of a hook's command line that is one of ours: the absolute path
// of a binary called heartbeat-stop or heartbeat, in any folder, and the word "hook", with what
// Command writes around them, or with or without variables and exec before them. heartbeat-rs's
// hand-wired "heartbeat-stop --inbox …" is the user's.
func Program(command string) (binary string, ours bool) {
	if inner, ok := strings.CutPrefix(command, ahead); ok {
		if inner, ok = strings.CutSuffix(inner, behind); ok {
			command = inner + " hook"
		}
	}
	words := shellWords(command)
	for len(words) > 0 && isAssignment(words[0]) {
		words = words[1:]
	}
	if len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) < 2 || words[1] != "hook" || !path.IsAbs(words[0]) {
		return "", false
	}
	base := path.Base(words[0])
	return words[0], base == "heartbeat-stop" || base == "heartbeat"
}

// isAssignment reports whether a word gives a variable its value.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (name[0] < '0' || name[0] > '9')
}

// Aborts reports whether a hook's command line makes our binary abort when its runtime cannot
// begin or go on.
func Aborts(command string) bool { return strings.Contains(command, "GOTRACEBACK=crash") }

const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// Quote makes one shell word of a string.
func Quote(word string) string {
	if word != "" && strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellWords splits a simple command like /bin/sh. It returns nil for anything that
// is more than words: expansions, redirections, lists.
func shellWords(command string) []string {
	var words []string
	var word strings.Builder
	open := false // a word has begun
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == ' ' || c == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		case c == '\'':
			end := strings.IndexByte(command[i+1:], '\'')
			if end < 0 {
				return nil
			}
			word.WriteString(command[i+1 : i+1+end])
			i += end + 1
			open = true
		case c == '"':
			text, length := doubleQuoted(command[i+1:])
			if length < 0 {
				return nil
			}
			word.WriteString(text)
			i += length
			open = true
		case c == '\\' && i+1 < len(command) && command[i+1] != '\n':
			i++
			word.WriteByte(command[i])
			open = true
		case strings.IndexByte("\\\n\r$`;&|<>()*?[]{}#~!", c) >= 0:
			return nil
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}

// doubleQuoted reads up to the closing quote and returns the text and the number of
// bytes read, including the quote, or -1 if it expands something or never ends.
func doubleQuoted(s string) (string, int) {
	var text strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return text.String(), i + 1
		case '$', '`':
			return "", -1
		case '\\':
			if i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0 {
				i++
			}
			text.WriteByte(s[i])
		default:
			text.WriteByte(s[i])
		}
	}
	return "", -1
}
