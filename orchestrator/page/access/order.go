package access

import (
	"context"
	"fmt"
)

// The orders that a person gives by a command.
const (
	MakeLink  = "link"
	MakeToken = "token"
	EndTokens = "revoke"
)

// Order is what a person has done to a fleet's tokens: by a command, which asks the run, or,
// without one, has the store itself.
type Order struct {
	Do string `json:"do"`
	// Name is what is made is called; Role is that of a link.
	Name string `json:"name,omitempty"`
	Role Role   `json:"role,omitempty"`
	// All or Names say what ends.
	All   bool     `json:"all,omitempty"`
	Names []string `json:"names,omitempty"`
}

// Looks reports whether an order gives nobody more than a look.
func (o Order) Looks() bool { return o.Do == MakeLink && o.Role == Look }

// Done is what became of an order.
type Done struct {
	// Secret is that of what was made, Token what is known of it.
	Secret string `json:"secret,omitempty"`
	Token  Token  `json:"token,omitzero"`
	// Host is what Keeper.Host returns.
	Host string `json:"host,omitempty"`
	// Revoked are those that have ended.
	Revoked []Token `json:"revoked,omitempty"`
}

// Do carries an order out.
func (k *Keeper) Do(ctx context.Context, o Order) (d Done, err error) {
	switch {
	case o.Do == MakeLink && (o.Role == Look || o.Role == Act):
		if d.Host, err = k.Host(ctx); err == nil {
			d.Secret, d.Token, err = k.Link(ctx, o.Name, o.Role)
		}
	case o.Do == MakeToken:
		d.Secret, d.Token, err = k.Command(ctx, o.Name)
	case o.Do == EndTokens:
		d.Revoked, err = k.Revoke(ctx, o.All, o.Names...)
	default:
		err = fmt.Errorf("cannot change the page's tokens: it is not known what %q %q means", o.Do, o.Role)
	}
	return d, err
}
