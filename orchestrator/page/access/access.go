// Package access decides who may see a fleet's page, and who may act on it.
package access

// Role is what somebody may do on the page.
type Role string

// The roles. Who may act may also look.
const (
	Look Role = "look"
	Act  Role = "act"
)

// Roles are all of them.
func Roles() []Role { return []Role{Look, Act} }

// Who is somebody who asks for the page.
type Who struct {
	// Token is the id of the token that they have; "": none, they look over a socket of
	// this user.
	Token string
	// Name is the token's, as the person called it who made its link.
	Name string
	Role Role
	// From is whose address they have, as far as it is believed: one for all over a socket.
	From string
	// CSRF is what their forms carry.
	CSRF string
}

// Acts reports whether they may act.
func (w Who) Acts() bool { return w.Role == Act }
