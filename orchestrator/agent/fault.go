package agent

import (
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/session"
)

// faultOf classifies an API failure by its word.
func faultOf(kind string) client.Fault { return client.Claude.Hooks.Faults[kind] }

// Passing reports whether an API failure of a kind is temporary: interrupted work continues
// once the service or the account works again, or the configuration is right.
func Passing(kind string) bool {
	f := faultOf(kind)
	return f == client.ServiceFault || f == client.AccountFault || f == client.SettingFault
}

// Limited reports whether a session ended at a usage limit of its account.
func Limited(o session.Outcome) bool {
	return o.Why == hook.EndAPIFailure && o.Detail == client.Claude.Hooks.Limited
}

// NeedsPerson reports whether a session ended because of a problem of its account that only a
// person can solve: a login, a bill.
func NeedsPerson(o session.Outcome) bool { return OfAccount(o) && !Limited(o) }

// OfAccount reports whether a session ended because of a problem of its account.
func OfAccount(o session.Outcome) bool {
	return o.Why == hook.EndAPIFailure && faultOf(o.Detail) == client.AccountFault
}
