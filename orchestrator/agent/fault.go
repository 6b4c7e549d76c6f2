package agent

import (
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/session"
)

// fault says whose fault an API failure is.
type fault int

const (
	unclearFault fault = iota // not known: a person has to look
	requestFault              // the entry's own: it is refused however often it is given
	serviceFault              // the service's: it passes
	suspectFault              // perhaps the entry's: the client cannot tell
	accountFault              // that of the account
	settingFault              // the configuration's: a person has to look
)

// faultOf judges an API failure by its word: in the words of the client 2.1.329,
// except "configuration" (see hook). The client says unknown for whatever it cannot
// determine.
func faultOf(kind string) fault {
	switch kind {
	case "invalid_request", "max_output_tokens":
		return requestFault
	case "server_error", "overloaded":
		return serviceFault
	case "rate_limit", "authentication_failed", "billing_error", "oauth_org_not_allowed", "account_on_hold",
		"verification_required", "cloud_credential_error":
		return accountFault
	case "unknown":
		return suspectFault
	case "model_not_found", "configuration":
		return settingFault
	}
	return unclearFault
}

// Passing reports whether an API failure of a kind passes: what it interrupts
// goes on once the service or the account is there again, or the configuration
// is right.
func Passing(kind string) bool {
	f := faultOf(kind)
	return f == serviceFault || f == accountFault || f == settingFault
}

// Limited reports whether a session ended at a usage limit of its account, and
// NeedsPerson whether at a fault of it that only a person can mend: a login, a bill.
func Limited(o session.Outcome) bool {
	return o.Why == hook.EndAPIFailure && o.Detail == client.Claude.Hooks.Limited
}

// NeedsPerson is said at Limited.
func NeedsPerson(o session.Outcome) bool { return OfAccount(o) && !Limited(o) }

// OfAccount reports whether a session ended by a fault of its account.
func OfAccount(o session.Outcome) bool {
	return o.Why == hook.EndAPIFailure && faultOf(o.Detail) == accountFault
}
