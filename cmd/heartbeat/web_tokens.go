package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rsc.io/qr"

	"heartbeat/config"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

type pageCmd struct {
	Action string   `arg:"" enum:"link,token,tokens,revoke" help:"link, token, tokens or revoke."`
	Tokens []string `arg:"" optional:"" name:"token" help:"With revoke: names or ids of tokens."`
	Role   string   `placeholder:"ROLE" enum:"look,act" default:"look" help:"With link: what its browser may do: look, or act, too (${default})."`
	Name   string   `placeholder:"NAME" help:"With link or token: what the token is called, like phone; the journal names it with each act."`
	All    bool     `help:"With revoke: all tokens and links."`
	tokenFlag
}

// Help implements kong's HelpProvider.
func (pageCmd) Help() string {
	return `The page shows the fleet in a browser, at the addresses of listen: that serve it;
"heartbeat help page" has more. link prints an address that works once, for ten
minutes, and its QR code on a terminal: the browser that opens it gets a token, for 90
days. token makes one for the command line, for 90 days, and shows it this once: it
answers approvals where the file says approvals: {by: page}. tokens lists all. revoke
ends some of them, at once. Sessions of agents can make and end none.

Examples:

    heartbeat page link --name laptop
    heartbeat page link --role act --name phone
    heartbeat page token --name laptop
    heartbeat page tokens
    heartbeat page revoke phone
    heartbeat page revoke --all`
}

func (c pageCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Action != "revoke" && (len(c.Tokens) > 0 || c.All) {
		return nil, usagef("heartbeat page revoke NAME", "names and --all go with revoke")
	}
	if c.Action != "link" && (c.Name != "" && c.Action != "token" || c.Role == string(access.Act)) {
		return nil, usagef("heartbeat page link --role act --name phone", "--role goes with link, --name with link or token")
	}
	if c.Name != "" && !isTokenName(c.Name) {
		return nil, usagef("heartbeat page link --name phone", "--name: letters, digits and - _ . @ ' or spaces, at most 40, a letter or digit first")
	}
	if c.Action == access.EndTokens && (len(c.Tokens) == 0) != c.All {
		return nil, usagef("heartbeat page revoke NAME, or heartbeat page revoke --all", "name tokens or --all, one of the two")
	}
	f, client, err := a.running()
	if err != nil {
		return nil, err
	}
	stateDir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	list, err := store.Ask(ctx, stateDir, func(v *store.View) (access.List, error) { return access.Read(v, time.Now()) })
	if err != nil {
		return nil, err
	}
	if c.Action == "tokens" {
		return pageTokens{list, a.ours()}, nil
	}
	token := ""
	if needsProof(f, c.order()) && list.HasCommand() {
		if token, err = c.token(a); err != nil {
			return nil, fmt.Errorf("cannot %s: %w", c.act(), err)
		}
	}
	if c.Action == access.MakeLink {
		return c.link(ctx, a, f, client, token)
	}
	done, _, err := c.hand(ctx, a, f, client, token)
	if err != nil {
		return nil, err
	}
	if c.Action == access.MakeToken {
		return commandToken{done.Secret, done.Token}, nil
	}
	return pageRevoked{done.Revoked}, nil
}

func (c pageCmd) order() access.Order {
	return access.Order{Do: c.Action, Name: c.Name, Role: access.Role(c.Role), All: c.All, Names: c.Tokens}
}

// hand has the fleet's run carry out what the command is to do, or does it without one. served
// is true if a run has done it.
func (c pageCmd) hand(ctx context.Context, a *app, f *config.Fleet, client *control.Client, token string) (done access.Done, served bool, err error) {
	ask := func(ctx context.Context) (access.Done, error) {
		done, err := client.Tokens(ctx, c.order(), token)
		served = err == nil
		return done, err
	}
	done, err = toRunOrNext(ctx, a, ask, func() (done access.Done, err error) {
		stateDir, err := owner.Claim(f)
		if err != nil {
			return done, err
		}
		err = withTokens(ctx, stateDir, func(k *access.Keeper) error {
			done, err = hand(ctx, f, k, c.order(), token)
			return err
		})
		return done, err
	})
	return done, served, err
}

// withTokens has use read and change who may see the page of a fleet that no run has.
func withTokens(ctx context.Context, stateDir string, use func(*access.Keeper) error) error {
	return adopt.Use(ctx, stateDir, func(s *store.Store) error {
		k, err := access.Open(ctx, s, nil)
		if err != nil {
			return err
		}
		return use(k)
	})
}

// isTokenName says what a token may be called. (As a regular expression it would cost
// each start of the program 1 ms.)
func isTokenName(name string) bool {
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	for i, r := range name {
		if !letter(r) && (i == 0 || !strings.ContainsRune(" _.@'-", r)) {
			return false
		}
	}
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= 40
}

// pageLink is an address that is good once.
type pageLink struct {
	URL   string      `json:"url"`
	Name  string      `json:"name"`
	ID    string      `json:"id"`
	Role  access.Role `json:"role"`
	Until time.Time   `json:"until"`
}

func (c pageCmd) link(ctx context.Context, a *app, f *config.Fleet, client *control.Client, token string) (result, error) {
	address, err := pageAddress(f)
	if err != nil {
		return nil, err
	}
	done, served, err := c.hand(ctx, a, f, client, token)
	if err != nil {
		return nil, err
	}
	if !served {
		a.warn("nobody serves the page now: " + a.ours() + " run does")
	}
	l := done.Token
	return pageLink{address(done.Host) + config.PagePath + "enter/" + done.Secret, l.Name, l.ID, l.Role, l.Until}, nil
}

// pageAddress is where people find the page of a fleet: as its file says or, where it
// does not, at the first address that serves it; on this machine alone by the fleet's own name,
// host.
func pageAddress(f *config.Fleet) (at func(host string) string, err error) {
	is := func(address string) func(string) string { return func(string) string { return address } }
	if f.Page.Address != nil {
		return is(f.Page.Address.String()), nil
	}
	socket := ""
	for _, l := range f.Listen {
		switch {
		case !slices.Contains(l.Serves, config.ServesPage):
		case l.Network == "unix":
			socket = cmp.Or(socket, l.Address)
		case l.Local():
			_, port, _ := net.SplitHostPort(l.Address)
			return func(host string) string { return "http://" + net.JoinHostPort(host, port) }, nil
		default:
			return is("http://" + reachable(l.Address)), nil
		}
	}
	if socket != "" {
		return nil, &failure{
			exitError, "for a proxy before it write, at the top of the file, page: {address: \"https://NAME\", proxies: [socket]}; open: true beside the socket lets your own user look without a link",
			fmt.Errorf("cannot make a link: the page is served at the socket %s alone, and nothing says what name a browser finds it by", socket),
		}
	}
	return nil, &failure{exitError, `write, at the top of the file, listen: [{address: ":8322", serve: [page]}]`, errors.New("cannot make a link: no address serves the page")}
}

// reachable is an address as a browser reaches it: one that stands for all of this
// machine's is one of them.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return address
	}
	all, _ := net.InterfaceAddrs()
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	return net.JoinHostPort("localhost", port)
}

func (l pageLink) text(p *page) {
	p.printf("%s\n\n", l.URL)
	if p.reset != "" { // a terminal with colours
		p.qr(l.URL)
	}
	p.saidf("Works once, until %s. The browser that opens it is called %q and %s.", l.Until.Local().Format("15:04"), l.Name, may(l.Role))
}

// may says what a role lets a browser do.
func may(r access.Role) string {
	if r == access.Act {
		return "can control the fleet"
	}
	return "can look"
}

// qr adds a text as a QR code: two rows of it in a line, dark on light whatever the
// terminal's colours are.
func (p *page) qr(text string) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return // it is too long, and stands above as it is
	}
	const margin = 2
	for y := -margin; y < code.Size+margin; y += 2 {
		var line strings.Builder
		for x := -margin; x < code.Size+margin; x++ {
			upper, lower := code.Black(x, y), code.Black(x, y+1)
			switch {
			case upper && lower:
				line.WriteString("█")
			case upper:
				line.WriteString("▀")
			case lower:
				line.WriteString("▄")
			default:
				line.WriteString(" ")
			}
		}
		p.coloured(inkOnPaper, line.String())
		p.printf("\n")
	}
	p.printf("\n")
}

// inkOnPaper is black on white.
const inkOnPaper = "\x1b[38;5;16;48;5;231m"

// commandToken is a token for the command line, which is shown once.
type commandToken struct {
	Secret string `json:"token"`
	access.Token
}

func (t commandToken) text(p *page) {
	p.printf("%s\n\n", t.Secret)
	p.saidf("This is %q, good until %s, and is shown this once: keep it where no agent can read it, such as a password manager. heartbeat has no copy. approve and reject ask for it where the file says approvals: {by: page}.", t.Name, t.Until.Local().Format("2006-01-02"))
}

// pageTokens are those that are good.
type pageTokens struct {
	access.List
	ours string
}

func (t pageTokens) text(p *page) {
	if len(t.Tokens)+len(t.Links) == 0 {
		p.saidf("nobody has a token: %s page link makes a link for one", t.ours)
		return
	}
	now := time.Now()
	var rows [][]cell
	for _, one := range t.Tokens {
		rows = append(rows, plain(one.ID, one.Name, string(one.Role), one.Made.Local().Format("2006-01-02 15:04"), status.Age(now.Sub(one.Used)), one.Until.Local().Format("2006-01-02")))
	}
	for _, one := range t.Links {
		rows = append(rows, plain(one.ID, one.Name, string(one.Role), one.Made.Local().Format("2006-01-02 15:04"), "not yet: a link", "in "+status.Age(one.Until.Sub(now))))
	}
	p.table([]string{"ID", "NAME", "ROLE", "MADE", "USED", "ENDS"}, rows)
}

// pageRevoked are the tokens and links that are not good any more.
type pageRevoked struct {
	Revoked []access.Token `json:"revoked"`
}

func (r pageRevoked) text(p *page) {
	if len(r.Revoked) == 0 {
		p.printf("there was no token\n")
	}
	for _, t := range r.Revoked {
		p.printf("%s (%s): revoked\n", t.Name, t.ID)
	}
}
