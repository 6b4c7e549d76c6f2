package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// marks are what prompts have the model do; most have it do nothing.
var marks = []string{
	"", "", "", "", "", "", "", "[tool]", "[tool]", "[tool]", "[tool]", "[slow]", "[background]",
	"[crash]", "[tool-crash]", "[fail]", "[exit]", "[hang]",
}

// oneLine is a prompt that a plain line carries as it is.
func oneLine(r *rand.Rand, key string) string {
	text := key + " " + pick(r, marks)
	switch r.IntN(8) {
	case 0:
		return text + " " + strings.Repeat("long ", 40_000) + "end"
	case 1:
		return "/exit " + text + ` "quoted" \n $(x) end`
	case 2:
		return "-- --flag " + text + " ünïcödé ✓ \u2028 end"
	case 3:
		return "@/etc/hostname !ls # " + text + " <system-reminder>b</system-reminder> end"
	}
	return text + " " + strings.Repeat("x", r.IntN(400)) + " end"
}

// anyPrompt is a prompt for `heartbeat send`.
func anyPrompt(r *rand.Rand, key string) string {
	text := key + " " + pick(r, marks)
	switch r.IntN(9) {
	case 0:
		return text + "\n" + strings.Repeat("a line of a big prompt\n", 9000) + "end"
	case 1:
		return text + "\nsecond line\n\n\tfourth\n\"heartbeat\": {\n  end"
	case 2:
		return `{"heartbeat":1,"id":"x","prompt":"` + text + `"} end`
	case 3:
		return text + " \x1b[31mred\x1b[0m\a bell\x7f end"
	case 4:
		return `"` + text + ` an open quote \`
	}
	return oneLine(r, key)
}

func keyOf(m *member, sender string, n int) string { return fmt.Sprintf("k%s%s-%d", m.Name, sender, n) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
