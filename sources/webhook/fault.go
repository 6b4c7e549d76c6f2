package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Fault is why a request is refused that its sender wanted to become a prompt, from a
// closed list.
type Fault string

// The faults.
const (
	NoSecret       Fault = "no-secret"
	WrongSecret    Fault = "wrong-secret"
	WrongSignature Fault = "wrong-signature"
	ChangedBody    Fault = "changed-body"
	NoTimestamp    Fault = "no-timestamp"
	OldSignature   Fault = "old-signature"
	NoPost         Fault = "no-post"
	WebPage        Fault = "web-page"
	TooLarge       Fault = "too-large"
	Incomplete     Fault = "incomplete"
	Compressed     Fault = "compressed"
	NotUTF8        Fault = "not-utf-8"
	NotJSON        Fault = "not-json"
	ManyValues     Fault = "many-values"
	Unfit          Fault = "unfit"
)

// faults say of each what is wrong with the request, what to check, and whether anybody
// can send such a request: nothing in it shows that its sender has to do with the trigger.
var faults = map[Fault]struct {
	what, check string
	anybody     bool
}{
	NoSecret:       {"no signature, and no secret", "write the secret of the trigger's secret-file into the settings of the hook at the sender", true},
	WrongSecret:    {"another secret than that of secret-file", "give the sender and secret-file the same secret; no reload is needed", false},
	WrongSignature: {"signed with another secret than that of secret-file, or changed on the way", "give the sender and secret-file the same secret (no reload is needed); a proxy between them must not change the body", false},
	ChangedBody:    {"signed with the right secret, and changed after that", "have the sender, or the proxy before heartbeat, send the body exactly as it was signed, spaces and line ends too", false},
	NoTimestamp:    {"webhook-signature without webhook-id and webhook-timestamp", "have the proxy before heartbeat pass on all headers", false},
	OldSignature:   {"signed more than 5 minutes before or after what the clock here says", "compare the clocks of both machines; a request that is sent again has to be signed again", false},
	NoPost:         {"another method than POST", "choose the method POST where the hook is set up", true},
	WebPage:        {"sent by a web page in a browser (Origin, Sec-Fetch-Site)", "have a program send them; if one does, take those headers out", true},
	TooLarge:       {"a body over 1 MiB", "have fewer kinds of events sent, or less with each", true},
	Incomplete:     {"a body that did not arrive whole, or not in time", "look at the sender's log, and at that of the proxy before heartbeat", true},
	Compressed:     {"a compressed body", "have them sent without Content-Encoding", false},
	NotUTF8:        {"a body that is not in UTF-8", "have them sent in UTF-8", false},
	NotJSON:        {"a body that is not JSON", "choose the content type application/json where the hook is set up", false},
	ManyValues:     {"a body of more values of JSON than are kept", "have less sent with each event", false},
	Unfit:          {"no prompt, or no key, can be made of it", "compare prompt: and key: of the trigger with what is sent, and keep out with match: what is not meant", false},
}

// Faults are all of them.
func Faults() (all []Fault) {
	for f := range faults {
		all = append(all, f)
	}
	return all
}

// What says what is wrong with requests that have the fault.
func (f Fault) What() string { return faults[f].what }

// Check says what to look at, and to change.
func (f Fault) Check() string { return faults[f].check }

// ByStranger reports whether a request with the fault may come from somebody who has
// nothing to do with the trigger.
func (f Fault) ByStranger(s Sender) bool { return faults[f].anybody && !s.service() }

// faultError is an error of a request that has a fault.
type faultError struct {
	fault Fault
	error
}

// Unwrap returns the error without the fault.
func (e *faultError) Unwrap() error { return e.error }

// fault is an error that matches kind.
func fault(f Fault, kind error, text string) error {
	return &faultError{f, fmt.Errorf("%w: %s", kind, text)}
}

// FaultOf returns the fault that an error of this package tells, or "".
func FaultOf(err error) Fault {
	if e, ok := errors.AsType[*faultError](err); ok {
		return e.fault
	}
	return ""
}

// Sender is the kind of program that sends a request, as far as the request tells, from
// a closed list. Whoever sends it may pretend to be any of them.
type Sender string

// The senders that nothing names.
const (
	standard Sender = "a sender of Standard Webhooks"
	unknown  Sender = "an unknown program"
)

// services are known by a header that they send with each delivery. Who imitates another
// one stands before it.
var services = []struct {
	header string
	sender Sender
}{
	{"X-Forgejo-Event", "Forgejo"},
	{"X-Gitea-Event", "Gitea"},
	{"X-Gogs-Event", "Gogs"},
	{"X-Gitlab-Event", "GitLab"},
	{"X-Github-Event", "GitHub"},
	{"X-Event-Key", "Bitbucket"},
	{standardID, standard},
}

// programs are known by how their User-Agent begins.
var programs = []struct {
	agent   string
	sender  Sender
	service bool
}{
	{"GitHub-Hookshot/", "GitHub", true},
	{"GitLab/", "GitLab", true},
	{"Bitbucket-Webhooks/", "Bitbucket", true},
	{"Stripe/", "Stripe", true},
	{"curl/", "curl", false},
	{"Wget/", "Wget", false},
	{"python-", "a Python program", false},
	{"Go-http-client/", "a Go program", false},
	{"axios/", "a JavaScript program", false},
	{"node", "a JavaScript program", false},
	{"Mozilla/", "a browser", false},
}

// SenderOf returns the kind of program that has sent a request.
func SenderOf(h http.Header) Sender {
	for _, s := range services {
		if h.Get(s.header) != "" {
			return s.sender
		}
	}
	for _, p := range programs {
		if strings.HasPrefix(h.Get("User-Agent"), p.agent) {
			return p.sender
		}
	}
	return unknown
}

// service reports whether the sender is one that a person has told to send to this address.
func (s Sender) service() bool {
	for _, one := range services {
		if one.sender == s {
			return true
		}
	}
	for _, p := range programs {
		if p.sender == s {
			return p.service
		}
	}
	return false
}
