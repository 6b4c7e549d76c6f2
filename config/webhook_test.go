package config

import (
	"strings"
	"testing"
)

// TestWhatCanBeSentAgain: a signature of the body alone proves no more than that somebody sent
// it once. Each trigger that shows such a sender, and has no key of the body, is told; no other
// is.
func TestWhatCanBeSentAgain(t *testing.T) {
	t.Parallel()
	const says = "whoever has seen a request of "
	for fields, service := range map[string]string{
		`webhook: /github, secret-file: s`:                                          "GitHub",
		`webhook: /x, secret-file: s, match: {headers: {X-GitHub-Event: issues}}`:   "GitHub",
		`webhook: /x, secret-file: s, match: {headers: {X-Hub-Signature-256: x}}`:   "GitHub",
		`webhook: /gitea, secret-file: s`:                                           "Gitea",
		`webhook: /x, secret-file: s, match: {headers: {X-Forgejo-Event: push}}`:    "Forgejo",
		`webhook: /x, secret-file: s, match: {headers: {X-Gogs-Event: push}}`:       "Gogs",
		`webhook: /x, secret-file: s, match: {headers: {X-Event-Key: "repo:push"}}`: "Bitbucket",
		`webhook: /x, secret-file: s, key: '{{.Header "X-GitHub-Delivery"}}'`:       "GitHub",
		`webhook: /github, secret-file: s, key: "{{.JSON.issue.id}}"`:               "",
		`webhook: /github, secret-file: s, key: "{{.Body}}"`:                        "",
		`webhook: /github`:            "", // whoever asks may
		`webhook: /x, secret-file: s`: "",
		`webhook: /gitlab, secret-file: s, match: {headers: {X-Gitlab-Event: "Issue Hook"}}`:     "",
		`webhook: /x, secret-file: s, match: {headers: {Webhook-Id: x}, json: {action: opened}}`: "",
	} {
		f := mustLoad(t, write(t, "version: 1\nlisten: [{address: \":1\", serve: [webhooks]}]\nagents: {a: {dir: a, trigger: {"+fields+", prompt: x}}}\n"))
		told := ""
		for _, w := range f.Warnings {
			if rest, is := strings.CutPrefix(w.Message, says); is {
				told, _, _ = strings.Cut(rest, " ")
			}
		}
		if told != service {
			t.Errorf("%s: told of %q, want %q", fields, told, service)
		}
	}
}
