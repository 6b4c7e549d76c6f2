package config

import (
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Service is what an address serves.
type Service string

// The services.
const (
	ServesWebhooks Service = "webhooks" // the paths of webhook triggers
	ServesMetrics  Service = "metrics"  // /metrics, /healthz, /readyz
	ServesPage     Service = "page"     // below /page/
)

// Listen is an address at which `heartbeat run` serves.
type Listen struct {
	// Network is tcp or unix; Address is HOST:PORT or the absolute path of a socket.
	Network, Address string
	Serves           []Service
	// SecretFile is the absolute path of a file with the secret that a request for
	// metrics needs, or "".
	SecretFile string
	// Mode are the permissions of a socket.
	Mode fs.FileMode
	// Open lets the user that runs the fleet look at the page over a socket without a
	// token.
	Open bool
}

// String returns the address as a person writes it.
func (l Listen) String() string {
	if l.Network == "unix" {
		return "unix:" + l.Address
	}
	return l.Address
}

// Local reports whether only processes of this machine reach the address.
func (l Listen) Local() bool {
	if l.Network == "unix" {
		return true
	}
	host, _, _ := net.SplitHostPort(l.Address)
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Loopback is the host of an address that names none.
const Loopback = "127.0.0.1"

// mostSocket is how long the path of a socket may be: macOS has room for 104 bytes,
// Linux for 108 (unix(7)), the last one a NUL.
const mostSocket = 103

// modes are the permissions of a socket by its access.
var modes = map[string]fs.FileMode{"owner": 0o600, "group": 0o660, "everybody": 0o666}

// listening is an address with its place in the file.
type listening struct {
	Listen
	where place
}

// listens reads the addresses.
func (l *loader) listens(t table, f *Fleet) {
	p, ok := t["listen"]
	if !ok || empty(p.node) {
		return
	}
	if p = p.here(); p.node.Kind != yaml.SequenceNode {
		l.problem(p, "must be a list, not "+kind(p.node), `for example [{address: ":8321", serve: [webhooks]}]`)
		return
	}
	for i, element := range p.node.Content {
		one, ok := l.listen(p.below(i, element))
		if !ok {
			continue
		}
		if n := slices.IndexFunc(l.claims.listening, func(o listening) bool { return o.String() == one.String() }); n >= 0 {
			l.problem(one.where, fmt.Sprintf("%s is given twice, first on line %d", one, l.claims.listening[n].where.node.Line), "one address serves several: serve: [webhooks, metrics]")
			continue
		}
		l.claims.listening = append(l.claims.listening, one)
		f.Listen = append(f.Listen, one.Listen)
	}
}

func (l *loader) listen(p place) (one listening, ok bool) {
	t, ok := l.table(p, listenKeys, nil)
	if !ok {
		return one, false
	}
	where, ok := t["address"]
	if !ok {
		l.absence(p.lacking("address"), `write address: ":8321", or address: unix:heartbeat.sock`)
		return one, false
	}
	one.where = where.here()
	one.Network, one.Address, ok = l.endpoint(where)
	one.Serves = l.services(p, t)
	one.SecretFile = l.secretFile(t)
	one.Mode = l.access(t, one.Network)
	one.Open = l.boolean(t, "open")
	if where, given := t["open"]; given && (one.Network == "tcp" || !slices.Contains(one.Serves, ServesPage)) {
		l.problem(where.named(), "is for sockets (unix:PATH) that serve the page", "remove it")
	}
	metrics := slices.Contains(one.Serves, ServesMetrics)
	if secret, given := t["secret-file"]; given && !metrics {
		l.problem(secret.named(), "is for metrics, which this address does not serve", "a webhook trigger has a secret-file of its own")
	}
	if ok && metrics && one.SecretFile == "" && !one.Local() {
		l.problem(one.where, "metrics and the agents' names could be read by everybody who reaches "+one.Address, "write secret-file: FILE beside it, or address: "+loopbackOf(one.Address))
	}
	return one, ok
}

// loopbackOf returns an address that only this machine reaches, with the same port.
func loopbackOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return strconv.Quote(":" + port)
}

// endpoint reads HOST:PORT, :PORT or unix:PATH.
func (l *loader) endpoint(p place) (network, address string, ok bool) {
	text, ok := l.substitute(p)
	if !ok {
		return "", "", false
	}
	if path, socket := strings.CutPrefix(text, "unix:"); socket {
		path = l.joined(p.from.base, path)
		if len(path) > mostSocket {
			l.problem(p, fmt.Sprintf("the path of a socket is at most %d bytes long, and this one is %d", mostSocket, len(path)), "put it into a folder with a shorter path")
			return "", "", false
		}
		l.names(p, path)
		return "unix", path, true
	}
	host, port, err := net.SplitHostPort(text)
	number, outside := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || outside != nil || number == 0:
		l.problem(p, fmt.Sprintf("%q is not HOST:PORT, :PORT or unix:PATH", cut(text)), `for example ":8321", which only this machine reaches`)
		return "", "", false
	case host == "" || host == "localhost":
		host = Loopback
	case net.ParseIP(host) == nil:
		l.problem(p, fmt.Sprintf("%q is not an address of this machine", cut(host)), "write its IP address; 0.0.0.0 and [::] are all of them")
		return "", "", false
	}
	return "tcp", net.JoinHostPort(host, port), true
}

func (l *loader) services(p place, t table) (all []Service) {
	where, ok := t["serve"]
	if !ok {
		l.absence(p.lacking("serve"), "write serve: [webhooks], or serve: [webhooks, metrics]")
		return nil
	}
	known := []Service{ServesWebhooks, ServesMetrics, ServesPage}
	l.texts(where, "for example [webhooks]") // for its problems
	if where = where.here(); where.node.Kind != yaml.SequenceNode {
		return nil
	}
	if len(where.node.Content) == 0 {
		l.problem(where, "is empty", "for example [webhooks]")
	}
	for i, element := range where.node.Content {
		switch text := Service(follow(element).Value); {
		case slices.Contains(all, text) || strings.TrimSpace(string(text)) == "":
		case slices.Contains(known, text):
			all = append(all, text)
		default:
			l.problem(where.below(i, element), fmt.Sprintf("%q is not served", cut(string(text))), "allowed: webhooks, metrics, page")
		}
	}
	return all
}

// access reads who may connect to a socket.
func (l *loader) access(t table, network string) fs.FileMode {
	if p, ok := t["access"]; ok && network == "tcp" {
		l.problem(p.named(), "is for sockets (unix:PATH)", "remove it")
	}
	return modes[enum(l, t, "access", "owner", []string{"owner", "group", "everybody"})]
}

// secretFile returns the path of a file with a secret. It is read when it is needed, as the
// secret may change while a fleet runs; that it cannot be read now is a warning.
func (l *loader) secretFile(t table) string {
	p, ok := t["secret-file"]
	if !ok {
		return ""
	}
	path, _ := l.expand(p)
	l.names(p, path)
	if path != "" {
		l.claims.agreed = append(l.claims.agreed, hidden{p, Secret{File: path}})
	}
	return path
}
