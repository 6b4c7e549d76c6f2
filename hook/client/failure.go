package client

import (
	"cmp"
	"strings"
)

// Fault says whose fault a failure of a turn is.
type Fault int

// The faults.
const (
	UnclearFault Fault = iota // not known: a person has to look
	RequestFault              // the entry's own: it is refused however often it is given
	ServiceFault              // the service's: it passes
	SuspectFault              // perhaps the entry's: the client cannot tell
	AccountFault              // that of the account
	SettingFault              // the configuration's: a person has to look
)

// Failures that the client reports under other names. The words are its own, except
// the last.
const (
	limited        = "rate_limit"
	serviceFailed  = "server_error"
	loginFailed    = "authentication_failed"
	billingFailed  = "billing_error"
	accountStopped = "account_on_hold"
	misconfigured  = "configuration"
)

// failureKind says what ended a turn. The client 2.1.329 says "unknown" for every
// status for which it has no better word, and "invalid_request" also for logins,
// accounts and networks: an entry would be blamed for them, and given up. What it
// shows the person tells them apart; texts that it could not be made to show were
// read in its program.
func failureKind(e *Event) string {
	kind := cmp.Or(e.Error, "unknown")
	if kind != "unknown" && kind != "invalid_request" {
		return kind
	}
	for _, f := range failureTexts {
		if strings.Contains(e.LastMessage, f.text) {
			return f.kind
		}
	}
	if _, rest, ok := strings.Cut(e.LastMessage, "API Error: "); ok && kind == "unknown" && len(rest) > 3 && rest[3] == ' ' {
		return cmp.Or(failureStatuses[rest[:3]], kind)
	}
	return kind
}

// failureStatuses are those that say nothing about the request itself.
var failureStatuses = map[string]string{
	"402": billingFailed,
	"407": serviceFailed, // a proxy on the way
	"408": serviceFailed,
	"409": serviceFailed,
	"425": serviceFailed,
	"426": serviceFailed,
	"429": limited,
	"451": serviceFailed, // of the network's region
	"499": serviceFailed,
}

var failureTexts = []struct{ text, kind string }{
	// The answer does not come from the API: a gateway, a proxy, a captive portal.
	{"API returned an empty or malformed response", serviceFailed},
	{"Request blocked before it reached Anthropic's API", serviceFailed},
	{"Request timed out", serviceFailed},

	{"Usage credits ran out", billingFailed},
	{"belongs to a disabled organization", accountStopped},
	{"rganization has been disabled", accountStopped},

	{"has disabled API key authentication", loginFailed},
	{"Could not refresh your login", loginFailed}, // the disk is full, the keychain locked
	{"Failed to refresh OAuth token", loginFailed},
	{"ogin expired", loginFailed},
	{"Your apiKeyHelper script is failing", loginFailed},
	{"Authentication error ·", loginFailed},
	{"organization's gateway", loginFailed}, // refused the request, does not take this login, wants another sign-in
	{"Invalid auth token ·", loginFailed},

	{"Invalid ANTHROPIC_CUSTOM_HEADERS", misconfigured},
	{"Invalid request header from the environment", misconfigured},
	{"is not available with the Claude Pro plan", misconfigured},
	{"Auto mode is unavailable for your plan", misconfigured},
	{"isn't available with thinking turned off", misconfigured},
	{"The configured advisor model is not compatible", misconfigured},
	{"does not support this model; version", misconfigured},
	{"is older than the minimum version required", misconfigured},
	{"or later is required for your organization", misconfigured},
}
