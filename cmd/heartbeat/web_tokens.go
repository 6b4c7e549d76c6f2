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
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
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
	f, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	stateDir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	keeper := access.NewKeeper(stateDir, nil)
	if c.Action == "tokens" {
		return c.tokens(keeper, a)
	}
	if c.Action != "link" || c.Role == string(access.Act) {
		if err := c.mayHand(a, f, keeper); err != nil {
			return nil, fmt.Errorf("cannot %s: %w", c.act(), err)
		}
	}
	if c.Action == "revoke" {
		return c.revoke(keeper)
	}
	if stateDir, err = owner.Claim(f); err != nil {
		return nil, err
	}
	keeper = access.NewKeeper(stateDir, nil)
	if c.Action == "token" {
		return c.command(keeper, a.ours())
	}
	res, err := c.link(f, keeper, a.ours())
	if _, asked := askStatus(ctx, f); err == nil && errors.Is(asked, control.ErrNotRunning) {
		a.warn("nobody serves the page now: " + a.ours() + " run does")
	}
	return res, err
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

func (c pageCmd) link(f *config.Fleet, keeper *access.Keeper, ours string) (result, error) {
	base, err := pageAddress(f, keeper)
	if err != nil {
		return nil, err
	}
	secret, link, err := keeper.Link(c.Name, access.Role(c.Role))
	if errors.Is(err, access.ErrMany) {
		return nil, &failure{exitError, ours + " page revoke --all, or wait ten minutes", err}
	}
	if err != nil {
		return nil, err
	}
	return pageLink{base + config.PagePath + "enter/" + secret, link.Name, link.ID, link.Role, link.Until}, nil
}

// pageAddress is where people find the page of a fleet: as its file says or, where it
// does not, at the first address that serves it; on this machine alone by the fleet's own name.
func pageAddress(f *config.Fleet, keeper *access.Keeper) (string, error) {
	if f.Page.Address != nil {
		return f.Page.Address.String(), nil
	}
	socket := ""
	for _, l := range f.Listen {
		switch {
		case !slices.Contains(l.Serves, config.ServesPage):
		case l.Network == "unix":
			socket = cmp.Or(socket, l.Address)
		case l.Local():
			host, err := keeper.Host()
			_, port, _ := net.SplitHostPort(l.Address)
			return "http://" + net.JoinHostPort(host, port), err
		default:
			return "http://" + reachable(l.Address), nil
		}
	}
	if socket != "" {
		return "", &failure{
			exitError, "for a proxy before it write, at the top of the file, page: {address: \"https://NAME\", proxies: [socket]}; open: true beside the socket lets your own user look without a link",
			fmt.Errorf("cannot make a link: the page is served at the socket %s alone, and nothing says what name a browser finds it by", socket),
		}
	}
	return "", &failure{exitError, `write, at the top of the file, listen: [{address: ":8322", serve: [page]}]`, errors.New("cannot make a link: no address serves the page")}
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

func (c pageCmd) command(keeper *access.Keeper, ours string) (result, error) {
	secret, made, err := keeper.Command(c.Name)
	if errors.Is(err, access.ErrMany) {
		return nil, &failure{exitError, ours + " page revoke NAME", err}
	}
	if err != nil {
		return nil, err
	}
	return commandToken{secret, made}, nil
}

func (t commandToken) text(p *page) {
	p.printf("%s\n\n", t.Secret)
	p.saidf("This is %q, good until %s, and is shown this once: keep it where no agent can read it, such as a password manager. heartbeat has no copy. approve and reject ask for it where the file says approvals: {by: page}.", t.Name, t.Until.Local().Format("2006-01-02"))
}

// pageTokens are those that are good.
type pageTokens struct {
	Tokens []access.Token `json:"tokens"`
	Links  []access.Token `json:"links"`
	ours   string
}

func (pageCmd) tokens(k *access.Keeper, a *app) (result, error) {
	tokens, links, err := k.Tokens()
	return pageTokens{tokens, links, a.ours()}, err
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

func (c pageCmd) revoke(k *access.Keeper) (result, error) {
	if (len(c.Tokens) == 0) != c.All {
		return nil, usagef("heartbeat page revoke NAME, or heartbeat page revoke --all", "name tokens or --all, one of the two")
	}
	gone, err := k.Revoke(c.All, c.Tokens...)
	if errors.Is(err, access.ErrNone) {
		return nil, &failure{exitError, "heartbeat page tokens lists them", err}
	}
	if err != nil {
		return nil, err
	}
	return pageRevoked{gone}, nil
}

func (r pageRevoked) text(p *page) {
	if len(r.Revoked) == 0 {
		p.printf("there was no token\n")
	}
	for _, t := range r.Revoked {
		p.printf("%s (%s): revoked\n", t.Name, t.ID)
	}
}
