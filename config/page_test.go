package config

import (
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	t.Parallel()
	const agents = "version: 1\nagents: {a: {dir: a}}\n"
	const served = agents + "listen: [{address: \":1\", serve: [page]}]\n"
	for _, tt := range []struct{ text, problem, warning string }{
		{served, "", ""},
		{served + `page: {address: "https://fleet.example.org:8443/", proxies: ["127.0.0.1", "::1", "10.0.0.0/8", socket]}`, "", ""},
		{served + "page:", "", ""},
		{served + `page: {address: "http://localhost:1"}`, "", ""},
		{served + `page: {address: "http://fleet.example.org"}`, "", "gets the tokens of browsers"},
		{agents + `page: {address: "https://fleet.example.org"}`, "", "no address serves the page"},
		{agents + "listen: [{address: \"0.0.0.0:1\", serve: [page]}]\n", "", "the page is served without TLS to other machines"},
		{agents + "listen: [{address: \"0.0.0.0:1\", serve: [page]}]\npage: {address: \"https://a.example\"}", "", ""},
		{served + `page: {address: "fleet.example.org"}`, "is not an address (for example https://fleet.example.org)", ""},
		{served + `page: {address: "https://a:b@c.example"}`, "is not an address", ""},
		{served + `page: {address: "https://a.example/x"}`, "is more than a scheme, a host and a port (the page is served below /page/ there: https://a.example)", ""},
		{served + `page: {proxies: "127.0.0.1"}`, "must be a list", ""},
		{served + `page: {proxies: [nginx]}`, `"nginx" is not an address, a network or socket`, ""},
		{served + `page: {proxies: ["0.0.0.0/0"]}`, "is everybody", ""},
		{served + `page: {proxies: ["::"]}`, "is everybody", ""},
		{served + `page: {serve: [page]}`, "where it is served, listen says", ""},
		{"version: 1\nagents: {a: {dir: a, trigger: {webhook: /page/x, prompt: x}}}\nlisten: [{address: \":1\", serve: [webhooks, page]}]", "paths below /page/ are the page's", ""},
		{"version: 1\nagents: {a: {dir: a, trigger: {webhook: /pages, prompt: x}}}\nlisten: [{address: \":1\", serve: [webhooks, page]}]", "", ""},
	} {
		f, err := parseText("/nonexistent/heartbeat.yaml", []byte(tt.text))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if (tt.problem == "") != (err == nil) || !strings.Contains(said, tt.problem) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.problem)
			continue
		}
		var warned strings.Builder
		for _, w := range f.Warnings {
			if strings.Contains(w.String(), "page") || strings.Contains(w.String(), "tokens") {
				warned.WriteString(w.String())
			}
		}
		if (tt.warning == "") != (warned.String() == "") || !strings.Contains(warned.String(), tt.warning) {
			t.Errorf("%s: warned %q, want %q", tt.text, warned.String(), tt.warning)
		}
	}
}
