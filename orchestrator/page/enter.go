package page

import (
	"net/http"

	"heartbeat/orchestrator/page/access"
)

// offer shows the button with which a browser takes a link's token. Opening the link does not
// take it, because programs that preview links in chats open them, too.
func (p *Page) offer(w http.ResponseWriter, r *http.Request) {
	link, no := p.opt.Guard.Offers(r, r.PathValue("link"))
	if no != nil {
		p.refuse(w, r, no)
		return
	}
	html, err := p.draw("offer", struct {
		Link string
		Acts bool
	}{r.PathValue("link"), link.Role == access.Act})
	if err != nil {
		p.plainly(w, http.StatusInternalServerError, "This cannot be drawn", "")
		return
	}
	p.layout(w, http.StatusOK, frame{Sheet: Sheet{Title: "Sign in", Crumb: "Sign in", Parts: []Part{{ID: "offer", HTML: html}}}})
}

func (p *Page) enter(w http.ResponseWriter, r *http.Request) {
	token, no := p.opt.Guard.Enters(w, r)
	if no != nil {
		p.refuse(w, r, no)
		return
	}
	p.opt.Log.Info("a link of the page was opened", "name", token.Name, "role", string(token.Role), "id", token.ID)
	http.Redirect(w, r, Root, http.StatusSeeOther)
}

func (p *Page) leave(w http.ResponseWriter, r *http.Request) {
	who, no := p.opt.Guard.Leaves(w, r)
	if no != nil {
		p.refuse(w, r, no)
		return
	}
	if err := p.opt.Guard.Left(w, r, who); err != nil {
		p.plainly(w, http.StatusServiceUnavailable, "Not done", err.Error())
		return
	}
	p.opt.Log.Info("a browser has left the page", "name", who.Name, "id", who.Token)
	p.plainly(w, http.StatusOK, "Signed out", "This browser sees nothing of the fleet any more. To sign in again, type heartbeat page link on the fleet's machine, and open the address here.")
}
