package access

import (
	"context"
	"errors"
	"net/http"
)

// Enters gives the browser that sends a link's form a token, once.
func (g *Guard) Enters(w http.ResponseWriter, r *http.Request) (Token, *Refusal) {
	c, no := g.comes(r)
	if no == nil {
		no = g.form(w, r, c.secure, mostEntry)
	}
	if no == nil {
		no = g.mayEnter(r)
	}
	if no != nil {
		return Token{}, no
	}
	// A wrong one changes nothing, and costs no lock.
	link := r.PostForm.Get("link")
	secret, made, err := "", Token{}, ErrWrong
	if _, good := g.tokens.Offer(link); good {
		secret, made, err = g.tokens.Redeem(r.Context(), link)
	}
	switch {
	case errors.Is(err, ErrWrong):
		return Token{}, g.wrongOf(c, BadLink)
	case errors.Is(err, ErrMany):
		return Token{}, refuse(NoRoom)
	case err != nil:
		g.log.Error("the page's tokens cannot be changed", "err", err)
		return Token{}, refuse(NotKept)
	}
	if had, err := r.Cookie(g.cookieName(c.secure)); err == nil {
		g.replaced(r.Context(), had.Value)
	}
	http.SetCookie(w, g.bake(c.secure, secret, int(TokenLasts.Seconds())))
	return made, nil
}

// mayEnter refuses who is no person. Where nobody can tell, as of a browser beside us on
// macOS, and for another user of this machine, a link is good that lets look alone: reading
// is nobody's act.
func (g *Guard) mayEnter(r *http.Request) *Refusal {
	no := g.aPerson(r)
	if no == nil || !no.unseen && no.Reason != OtherUser {
		return no
	}
	if link, good := g.tokens.Offer(r.PostForm.Get("link")); !good || link.Role != Look {
		return no
	}
	return nil
}

// Offers returns what a link gives that was not used yet. A wrong one is a try, as where
// it is sent, and learns nothing else.
func (g *Guard) Offers(r *http.Request, secret string) (Token, *Refusal) {
	c, no := g.comes(r)
	if no != nil {
		return Token{}, no
	}
	if link, good := g.tokens.Offer(secret); good {
		return link, nil
	}
	return Token{}, g.wrong(r, c, BadLink)
}

// replaced ends the token that a browser had before it got another one: nobody has it
// any more.
func (g *Guard) replaced(ctx context.Context, secret string) {
	former, good := g.tokens.Find(ctx, secret)
	if !good {
		return
	}
	if _, err := g.tokens.Revoke(context.WithoutCancel(ctx), false, former.ID); err != nil && !errors.Is(err, ErrNone) {
		g.log.Warn("the token that a browser had before stays good", "err", err)
	}
}

// Left ends the token of who leaves, and its cookie.
func (g *Guard) Left(w http.ResponseWriter, r *http.Request, who Who) error {
	c, no := g.comes(r)
	if no != nil {
		return no
	}
	http.SetCookie(w, g.bake(c.secure, "", -1))
	_, err := g.tokens.Revoke(context.WithoutCancel(r.Context()), false, who.Token)
	return err
}

// Named decides whether a request may see what everybody may who reaches the page:
// its style, and the form of a link.
func (g *Guard) Named(r *http.Request) *Refusal {
	_, no := g.comes(r)
	return no
}

// bake makes the cookie. Its name over TLS is one that browsers take over TLS alone
// (RFC 6265bis, cookie name prefixes): none that was set over HTTP passes for it.
func (g *Guard) bake(secure bool, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: g.cookieName(secure), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

func (g *Guard) cookieName(secure bool) string {
	if secure {
		return "__Host-" + g.cookie
	}
	return g.cookie
}
