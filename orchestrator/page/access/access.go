// Package access decides who may see a fleet's page, and who may act on it.
package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
)

// Role is what somebody may do on the page.
type Role string

// The roles. Who may act may also look.
const (
	Look Role = "look"
	Act  Role = "act"
	// Command is that of a command line, which no browser has.
	Command Role = "command"
)

// Who is somebody who asks for the page.
type Who struct {
	// Token is the id of the token that they have; "": none, they look over a socket of
	// this user.
	Token string
	// Name is the token's, as the person called it who made its link.
	Name string
	Role Role
	// From is the address that they have, as far as it is believed: one for all over a socket.
	From string
	// CSRF is what their forms prove that they know. A page has it masked.
	CSRF string
}

// Masked is what a form carries for CSRF: another one each time, so that how well a page
// compresses says nothing of it to who can have a text in the page and see how long it is
// (BREACH).
func (w Who) Masked() string {
	secret, mask := []byte(w.CSRF), make([]byte, len(w.CSRF))
	_, _ = rand.Read(mask) // it does not fail
	subtle.XORBytes(secret, secret, mask)
	return hex.EncodeToString(append(mask, secret...))
}

// unmasked is the CSRF that a form carries; "": none.
func unmasked(given string) string {
	both, err := hex.DecodeString(given)
	if err != nil || len(both)%2 != 0 {
		return ""
	}
	mask, secret := both[:len(both)/2], both[len(both)/2:]
	subtle.XORBytes(secret, secret, mask)
	return string(secret)
}

// Acts reports whether they may act.
func (w Who) Acts() bool { return w.Role == Act }
