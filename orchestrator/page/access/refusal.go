package access

import (
	"net/http"
	"time"
)

// Reason is why a request is not served: one of a closed list.
type Reason string

// The reasons.
const (
	NoConnection Reason = "no-connection" // nobody knows who asks
	OtherHost    Reason = "other-host"    // it asks for a name that this page does not have
	NoToken      Reason = "no-token"
	WrongToken   Reason = "wrong-token"
	TooManyTries Reason = "too-many-tries"
	OnlyLooks    Reason = "only-looks" // the token's role is look
	OtherOrigin  Reason = "other-page" // another page in the browser sends it
	NoForm       Reason = "no-form"    // it is not what a form of ours sends
	NotAPerson   Reason = "no-person"  // a process of a session asks
	OtherUser    Reason = "other-user" // another user of this machine asks, over TCP
	NotKept      Reason = "not-kept"   // the tokens cannot be changed
	TooLong      Reason = "too-long"   // the form is larger than any of ours
	StaleForm    Reason = "stale-form" // the form is another token's
	BadLink      Reason = "bad-link"   // a link that is not good (any more)
	NoRoom       Reason = "no-room"    // too many tokens
)

// Refusal is the answer to a request that is not served.
type Refusal struct {
	Reason Reason
	// Code is the answer's status. Text says what is wrong, and what to do.
	Code int
	Text string
	// After is when to try again, or 0.
	After time.Duration

	unseen bool // nobody can tell who asks
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

var texts = map[Reason]Refusal{
	NoConnection: {Code: http.StatusInternalServerError, Text: "Nobody can tell who asks."},
	OtherHost:    {Code: http.StatusMisdirectedRequest, Text: "The page is not served by this name: use an address of numbers, localhost, or the name that page: address in the fleet's file says."},
	NoToken:      {Code: http.StatusUnauthorized, Text: "This browser is not signed in. Type heartbeat page link on the fleet's machine, and open the address here."},
	WrongToken:   {Code: http.StatusUnauthorized, Text: "This browser is not signed in any more: its 90 days are over, or somebody has signed it out. Type heartbeat page link on the fleet's machine, and open the address here."},
	TooManyTries: {Code: http.StatusTooManyRequests, Text: "This token or link is not good, and too many wrong ones came from this address to say more. A good one works at once: type heartbeat page link on the fleet's machine for one."},
	OnlyLooks:    {Code: http.StatusForbidden, Text: "This browser can look, and not control. Type heartbeat page link --role act on the fleet's machine, and open the address here."},
	OtherOrigin:  {Code: http.StatusForbidden, Text: "Another page has sent this, so nothing was done."},
	NoForm:       {Code: http.StatusBadRequest, Text: "That form is not one of this page, so nothing was done."},
	NotAPerson:   {Code: http.StatusForbidden, Text: "A session of an agent asks, and only a person may."},
	OtherUser:    {Code: http.StatusForbidden, Text: "Another user of this machine than the one that runs the fleet sends this, so nothing was done. A proxy may act for others if page: proxies in the fleet's file names its address; heartbeat help page has more."},
	NotKept:      {Code: http.StatusServiceUnavailable, Text: "The page's tokens cannot be changed; the scheduler's log says why."},
	TooLong:      {Code: http.StatusRequestEntityTooLarge, Text: "The form is too large, so nothing was done."},
	StaleForm:    {Code: http.StatusForbidden, Text: "The form was drawn for another token, so nothing was done: load the page again."},
	BadLink:      {Code: http.StatusForbidden, Text: "This link was used already, or is older than ten minutes. Type heartbeat page link on the fleet's machine for another one."},
	NoRoom:       {Code: http.StatusConflict, Text: "There are too many tokens already: heartbeat page tokens lists them, heartbeat page revoke ends some."},
}

// refuse returns the refusal for a reason.
func refuse(why Reason) *Refusal {
	r := texts[why]
	r.Reason = why
	return &r
}
