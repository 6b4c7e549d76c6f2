package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Page is what the file says of the page that Listen serves (ServesPage).
type Page struct {
	// Address is where people find it, or nil: by the numbers of an address, or as
	// localhost.
	Address *url.URL
	// Proxies are the addresses of those whose X-Forwarded headers are believed. Socket
	// is true for those who connect to a socket.
	Proxies []netip.Prefix
	Socket  bool
}

// PagePath is what the page's paths begin with: a proxy can tell them from webhooks.
const PagePath = "/page/"

// PageLink returns the address of one of the page's pages, as people open it; "": the
// page is not served, or the file does not say where people find it.
func (f *Fleet) PageLink(below ...string) string {
	serves := func(l Listen) bool { return slices.Contains(l.Serves, ServesPage) }
	if f.Page.Address == nil || !slices.ContainsFunc(f.Listen, serves) {
		return ""
	}
	return f.Page.Address.JoinPath(append([]string{PagePath}, escaped(below)...)...).String()
}

func escaped(parts []string) (all []string) {
	for _, part := range parts {
		all = append(all, url.PathEscape(part))
	}
	return all
}

func (l *loader) page(t table) (page Page) {
	p, ok := t["page"]
	if !ok || empty(p.node) {
		return page
	}
	fields, ok := l.table(p, pageKeys, func(key string) string {
		if key == "listen" || key == "serve" {
			return `where it is served, listen says: listen: [{address: ":8322", serve: [page]}]`
		}
		return ""
	})
	if !ok {
		return page
	}
	if !slices.ContainsFunc(l.claims.listening, func(o listening) bool { return slices.Contains(o.Serves, ServesPage) }) {
		l.warn(p.named(), "no address serves the page", `write, at the top of the file, listen: [{address: ":8322", serve: [page]}]`)
	}
	if where, ok := fields["address"]; ok {
		page.Address = l.pageAddress(where)
	}
	if where, ok := fields["proxies"]; ok {
		page.Proxies, page.Socket = l.proxies(where)
	}
	return page
}

func (l *loader) pageAddress(p place) *url.URL {
	text, ok := l.filled(p)
	if !ok {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil:
		l.problem(p, "is not an address", "for example https://fleet.example.org")
		return nil
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		l.problem(p, "is more than a scheme, a host and a port", "the page is served below "+PagePath+" there: https://"+u.Host)
		return nil
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		l.warn(p, "who can read along on the way gets the tokens of browsers, too", "put a proxy with TLS before it, and write https")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}
}

func (l *loader) proxies(p place) (all []netip.Prefix, socket bool) {
	const hint = `for example ["127.0.0.1"], ["10.0.0.0/24"], or [socket] for who connects to a socket`
	l.texts(p, hint) // for its problems
	if p = p.here(); p.node.Kind != yaml.SequenceNode {
		return nil, false
	}
	for i, element := range p.node.Content {
		text := strings.TrimSpace(follow(element).Value)
		one, err := netip.ParsePrefix(text)
		if a, bad := netip.ParseAddr(text); bad == nil && a.Zone() == "" {
			one, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
		}
		switch {
		case text == "":
		case text == "socket":
			socket = true
		case err != nil:
			l.problem(p.below(i, element), fmt.Sprintf("%q is not an address, a network or socket", cut(text)), hint)
		case one.Bits() == 0 || one.Addr().IsUnspecified():
			l.problem(p.below(i, element), cut(text)+" is everybody: who asks could say to be anybody", "name the proxy's address")
		default:
			all = append(all, one.Masked())
		}
	}
	return all, socket
}

// checkPage warns of a page on a network without TLS, and refuses webhooks in its place.
func (l *loader) checkPage(f *Fleet) {
	served := false
	for _, one := range l.claims.listening {
		if !slices.Contains(one.Serves, ServesPage) {
			continue
		}
		served = true
		if !one.Local() && (f.Page.Address == nil || f.Page.Address.Scheme != "https") {
			l.warn(one.where, "the page is served without TLS to other machines: who can read along on the way gets the tokens of browsers, too",
				"write address: "+loopbackOf(one.Address)+" and put a proxy with TLS before it")
		}
	}
	for _, w := range l.claims.webhooks {
		if served && strings.HasPrefix(w.path+"/", PagePath) {
			l.problem(w.where, "paths below "+PagePath+" are the page's", "another path")
		}
	}
}
