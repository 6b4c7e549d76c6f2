package client

import (
	"testing"
	"time"
)

// TestWhatALimitIsSaidToBe: the words for people, as clients say them.
func TestWhatALimitIsSaidToBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]LimitWords{
		// Seen with 2.1.329.
		"You've hit your limit · resets 10pm (UTC)": {Hour: 22, Zone: "UTC"},
		// Read in its program.
		"You've hit your session limit · resets 12:05am (Europe/Rome) · progress saved":                {Minute: 5, Zone: "Europe/Rome", Window: 5 * time.Hour},
		"You've hit your weekly limit · resets Nov 25, 10:30pm (America/New_York)":                     {Month: time.November, Day: 25, Hour: 22, Minute: 30, Zone: "America/New_York", Window: 7 * 24 * time.Hour},
		"You've hit your Opus limit · resets Jan 2, 2027, 9am (Asia/Kolkata)":                          {Month: time.January, Day: 2, Year: 2027, Hour: 9, Zone: "Asia/Kolkata", Window: 7 * 24 * time.Hour, Model: true},
		"You're out of usage credits · resets 12pm (Asia/Kathmandu)":                                   {Hour: 12, Zone: "Asia/Kathmandu"},
		"You've hit your 5-hour limit · resets 10pm (UTC)":                                             {Hour: 22, Zone: "UTC", Window: 5 * time.Hour}, // so since 2.1.312
		"You've hit your 5-hour limit · resets 3\u202fpm (UTC)":                                        {},                                             // 2.1.329 takes the blank out
		"Claude usage limit reached. Your limit will reset at 3pm (America/Los_Angeles).":              {Hour: 15, Zone: "America/Los_Angeles"},
		"You've hit your org's monthly spend limit · your weekly limit resets 1:59pm (UTC) · raise it": {Hour: 13, Minute: 59, Zone: "UTC", Window: 7 * 24 * time.Hour},
		"You've hit your limit · resets 11:59pm":                                                       {Hour: 23, Minute: 59},
	} {
		got, ok := limitOf(text)
		if ok != (want != LimitWords{}) || ok && got != want {
			t.Errorf("%q: %+v, %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "resets ", "You've hit your limit", "API Error: Request rejected (429) · slow down", "resets at noon (UTC)", "resets 13pm (UTC)",
		"resets 0am (UTC)", "resets 10:7pm (UTC)", "resets 10:99pm (UTC)", "resets Nov (UTC)", "resets Nov 25 (UTC)", "resets 25, 10pm (UTC)",
		"resets 2027 10pm (UTC)", "You've hit your monthly limit — raise it below, or it resets next month.",
	} {
		if got, ok := limitOf(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// FuzzLimit: nothing that a text holds makes a time that no clock shows.
func FuzzLimit(f *testing.F) {
	f.Add("You've hit your limit · resets Nov 25, 2027, 10:30pm (UTC)")
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := limitOf(text)
		if ok && (l.Hour > 23 || l.Minute > 59 || l.Hour < 0 || l.Minute < 0 || l.Day > 31 || l.Month > 12 || (l.Month == 0) != (l.Day == 0)) {
			t.Errorf("%q: %+v", text, l)
		}
	})
}

// TestWhatARefusalIs: only the client's own mark makes one; an agent's reply that
// quotes the words does not.
func TestWhatARefusalIs(t *testing.T) {
	t.Parallel()
	const words = "You've hit your limit · resets 10pm (UTC)"
	got := refused([]byte(`{"type":"assistant","isSidechain":false,"isApiErrorMessage":true,"apiErrorStatus":429,"error":"rate_limit","message":{"model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"` + words + `"}]}}`))
	if got == nil || *got != (Refusal{429, "rate_limit", words}) {
		t.Errorf("%+v", got)
	}
	for _, line := range []string{
		`{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"` + words + `"}]}}`,
		`{"type":"user","isApiErrorMessage":true,"message":{"role":"user","content":"` + words + `"}}`,
		`{"type":"assistant","isSidechain":true,"isApiErrorMessage":true,"message":{"content":"` + words + `"}}`,
		`{"type":"assistant","message":{"content":"\"isApiErrorMessage\":true"}}`, `{`, `"isApiErrorMessage"`,
	} {
		if got := refused([]byte(line)); got != nil {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
