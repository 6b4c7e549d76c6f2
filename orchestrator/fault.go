package orchestrator

// fault is whose fault an API failure is.
type fault int

const (
	unclearFault fault = iota // not known, or the configuration's: a person has to look
	requestFault              // the entry's own: it is refused however often it is given
	serviceFault              // the service's: it passes
	suspectFault              // perhaps the entry's: the client cannot tell
	accountFault              // that of the account
)

// faultOf judges the error field of a StopFailure. The client 2.1.329 knows
// these words and unknown, which it says of whatever it cannot tell.
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
	}
	return unclearFault
}

// passing reports whether an API failure of a kind passes: what it interrupts
// goes on once the service or the account is there again.
func passing(kind string) bool {
	f := faultOf(kind)
	return f == serviceFault || f == accountFault
}
