package client

import (
	"testing"
)

// TestWhatAFailureIsCalled: an entry was blamed for a proxy, a login that had run
// out and an organization that was disabled, and dead-lettered for them.
func TestWhatAFailureIsCalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ error, message, want string }{
		// Seen with 2.1.329.
		{"unknown", "API Error: 408 timeout", serviceFailed},
		{"unknown", "API Error: 409 conflict", serviceFailed},
		{"unknown", "API Error: 407 proxy auth", serviceFailed},
		{"unknown", "API Error: 402 payment required", billingFailed},
		{"unknown", "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. Response: content-type html", serviceFailed},
		{"unknown", "API Error: 400 Output blocked by content filtering policy", "unknown"},
		{"invalid_request", "Your ANTHROPIC_API_KEY belongs to a disabled organization · Update or unset the environment variable", accountStopped},
		{"unknown", "API Error: 400 This organization has been disabled.", accountStopped},
		{"invalid_request", "Request too large (max 32MB).", "invalid_request"},
		{"invalid_request", "API Error: Opus 5.5's safeguards flagged this message", "invalid_request"},
		{"server_error", "API Error: 502 Bad Gateway.", "server_error"},
		{"authentication_failed", "Please run /login · API Error: 403 not allowed", "authentication_failed"},
		// Read in its program.
		{"invalid_request", "Your apiKeyHelper script is failing · This usually means you need to re-authenticate with your provider", loginFailed},
		{"invalid_request", "Login expired · Run /login to sign in again, or re-authenticate your Anthropic profile", loginFailed},
		{"invalid_request", "Could not refresh your login: the disk that holds the Claude Code config directory (~/.claude by default), or your disk quota on it, is full", loginFailed},
		{"invalid_request", "API Error: Request blocked before it reached Anthropic's API (HTTP 403) · the network", serviceFailed},
		{"unknown", "API Error: Usage credits ran out before the response was finished.", billingFailed},
		{"invalid_request", "API Error: Claude Code 2.1.1 does not support this model; version 2.1.300 or newer is required", misconfigured},
		// Nothing to go by.
		{"unknown", "API Error: 422 unprocessable", "unknown"},
		{"unknown", "API Error: 40", "unknown"},
		{"unknown", "API Error: 4080 tokens", "unknown"},
		{"unknown", "API Error", "unknown"},
		{"", "", "unknown"},
		{"invalid_request", "API Error: 408 of an entry's own", "invalid_request"},
		{"rate_limit", "API Error: 402", "rate_limit"},
	} {
		if got := failureKind(&Event{Error: tt.error, LastMessage: tt.message}); got != tt.want {
			t.Errorf("%s, %q: %s, want %s", tt.error, tt.message, got, tt.want)
		}
	}
}

// TestEachFailureHasAKnownWord that is told by its text or its status.
func TestEachFailureHasAKnownWord(t *testing.T) {
	t.Parallel()
	for _, f := range failureTexts {
		if Claude.Hooks.Faults[f.kind] == UnclearFault {
			t.Errorf("%q is called %s", f.text, f.kind)
		}
	}
	for status, kind := range failureStatuses {
		if Claude.Hooks.Faults[kind] == UnclearFault {
			t.Errorf("%s is called %s", status, kind)
		}
	}
}
