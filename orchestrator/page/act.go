package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/once"
)

// actWithin is how long an act may take. Its answer has 90 s in all (doors).
const actWithin = 75 * time.Second

// said is the outcome of an act.
type said struct {
	Text   string
	Failed bool
}

// act carries out what a form asks for, once, and redirects to the page of the form.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	who, no := p.opt.Guard.Acts(w, r)
	if no != nil {
		p.refuse(w, r, no)
		return
	}
	d, o, ok := parseDeed(r.PostForm)
	if !ok {
		p.plainly(w, http.StatusBadRequest, "Not done", "That form is not one of this page.")
		return
	}
	o.By = who.Name
	// It is done even if the browser does not wait for the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actWithin)
	defer cancel()
	done, again, err := p.opt.Book.Do(ctx, who.Token, r.PostForm.Get("key"), o.what(d), func() (string, error) {
		return p.do(ctx, who, d, o)
	})
	if err != nil {
		p.plainly(w, http.StatusConflict, "Not done", sentence(err))
		return
	}
	if again {
		p.opt.Log.Info("an act was asked for again, and done once", "what", d.name, "by", who.Name)
	}
	p.fleets.forget()
	p.needed.forget()
	if d.moves {
		p.answered(w, who, done)
		return
	}
	http.Redirect(w, r, backTo(r.PostForm.Get("back"), r.PostForm.Get("key"), d, o), http.StatusSeeOther)
}

// answered shows the outcome of an act at once, because the page may have another address
// after it.
func (p *Page) answered(w http.ResponseWriter, who access.Who, r once.Record) {
	p.layout(w, http.StatusOK, frame{Sheet: Sheet{Title: "The configuration", Crumb: "The configuration"}, Who: who, Said: p.words(r)})
}

// saidLate is the age from which on the outcome of an act is shown with its time: a person who
// sends a form again has to see that nothing was done now.
const saidLate = 10 * time.Second

func (p *Page) words(r once.Record) *said {
	s := &said{r.Answer, r.Failed}
	if p.opt.Now().Sub(r.At) > saidLate {
		s.Text += " (asked for at " + r.At.Local().Format("15:04:05") + ")"
	}
	return s
}

// do carries out a deed. It writes the journal first, so that the journal says who asked,
// even if this process dies.
func (p *Page) do(ctx context.Context, who access.Who, d *deed, o order) (string, error) {
	e := journal.Event{At: p.opt.Now(), Kind: journal.Acted, Detail: foreign.Text(strings.Join(append([]string{d.name}, o.Args...), " ")), By: foreign.Text(who.Name + " (" + who.Token + ")")}
	if d.words > 0 {
		e.Agent = o.Args[0]
	}
	p.opt.Note(e)
	answer, err := d.do(p, ctx, o)
	if err != nil {
		e.At, e.Reason = p.opt.Now(), foreign.Text("not done: "+err.Error())
		p.opt.Note(e)
	}
	return answer, err
}

// parseDeed returns the deed of a form's button.
func parseDeed(form url.Values) (*deed, order, bool) {
	words := strings.Split(form.Get("do"), " ")
	for i, d := range deeds {
		if d.name != words[0] || len(words) != d.words+1 {
			continue
		}
		for _, word := range words {
			if word == "" || len(word) > 300 || foreign.Line(word) != word {
				return nil, order{}, false
			}
		}
		if last := len(words) - 1; d.escaped {
			text, err := url.QueryUnescape(words[last])
			if err != nil || text == "" || foreign.Line(text) != text {
				return nil, order{}, false
			}
			words[last] = text
		}
		return &deeds[i], order{Args: words[1:], Form: form, Key: form.Get("key")}, true
	}
	return nil, order{}, false
}

// Text returns what was filled in for what the order is about: the last of its words, an agent
// or one of its requests.
func (o order) Text() string {
	return strings.ReplaceAll(o.Form.Get("text-"+o.Args[len(o.Args)-1]), "\r\n", "\n")
}

// what distinguishes the orders of one form: the button, and what was filled in for it.
func (o order) what(d *deed) string {
	what := strings.Join(append([]string{d.name}, o.Args...), " ")
	if d.text {
		sum := sha256.Sum256([]byte(o.Text()))
		what += " " + hex.EncodeToString(sum[:8])
	}
	return what
}

// id returns the id of the prompt that an order queues. No other order has the same.
func (o order) id() string {
	sum := sha256.Sum256([]byte(o.Key + " " + o.Args[0] + " " + o.Text()))
	return "page-" + hex.EncodeToString(sum[:8])
}

// backTo returns the address to which an act redirects: one of our own, which shows the outcome
// in the place of the form.
func backTo(at, key string, d *deed, o order) string {
	u, err := url.Parse(at)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path.Clean(u.Path)+"/", Root) {
		u = &url.URL{Path: Root}
	}
	q := u.Query()
	q.Set("done", key)
	to := url.URL{Path: path.Clean(u.Path), RawQuery: q.Encode()}
	if to.Path+"/" == Root {
		to.Path = Root
		if d.words > 0 {
			to.Fragment = partID("agent", o.Args[0])
		}
	} else if strings.HasPrefix(to.Path, Root+"agents/") {
		to.Fragment = d.place
	}
	return to.String()
}

// said returns the outcome of the last act of a form.
func (p *Page) said(ctx context.Context, who access.Who, key string) *said {
	r, ok := p.opt.Book.Last(ctx, who.Token, key)
	if !ok {
		return nil
	}
	return p.words(r)
}
