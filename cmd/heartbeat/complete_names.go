package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/store"
)

// completeNames lists what a word of a kind may be. Nothing here fails: a person
// who presses TAB wants no error.
func (a *app) completeNames(kind string, words []string) offers {
	var found offers
	switch kind {
	case "agent", "trigger", "session", "dead-letter", "entry", "later", "target", "approval":
		f, err := config.Load(a.fileAmong(words))
		if err == nil {
			owner.Identify(f)
		} else if f, _, err = owner.Recall(a.fileAmong(words)); err != nil {
			return nil
		}
		return slices.DeleteFunc(idOffers(kind, f, words), func(o offer) bool { return o.Word == anyID || !inbox.Typable(o.Word) })
	case "word":
		return wordOffers()
	case "topic":
		return topicOffers()
	case "file", "":
	default:
		for w := range strings.SplitSeq(kind, ",") {
			found = append(found, offer{w, ""})
		}
	}
	return found
}

// idOffers are agents, or what the named agents have; all agents if none is named.
func idOffers(kind string, f *config.Fleet, words []string) (found offers) {
	named := slices.DeleteFunc(slices.Clone(f.Agents), func(a *config.Agent) bool { return !slices.Contains(words, a.Name) })
	if len(named) == 0 {
		named = f.Agents
	}
	switch kind {
	case "session":
		if len(named) == 1 {
			found = sessionOffers(f, named[0])
		}
		fallthrough
	case "agent":
		for _, a := range f.Agents {
			found = append(found, offer{a.Name, a.Dir})
		}
		return found
	case "approval":
		return approvalOffers(f)
	case "target":
		for _, name := range slices.Sorted(maps.Keys(f.Targets)) {
			found = append(found, offer{name, string(f.Targets[name].Tier)})
		}
		return found
	}
	ctx, stop := context.WithTimeout(context.Background(), offerWithin)
	defer stop()
	for _, a := range named {
		found = append(found, agentOffers(ctx, kind, a)...)
	}
	return found
}

// agentOffers lists what an agent has of a kind: its triggers, or the prompts in one of
// its queues. A queue that cannot be read offers nothing.
func agentOffers(ctx context.Context, kind string, a *config.Agent) (found offers) {
	switch kind {
	case "trigger":
		for _, t := range a.Triggers {
			found = append(found, offer{t.Name, whenOf(&t, nil)})
		}
	case "dead-letter":
		if list, err := readDead(ctx, nil, a); err == nil {
			for _, d := range list.Entries {
				found = append(found, offer{d.name(), a.Name + ": " + d.reason()})
			}
		}
	case "later":
		if list, err := later.List(a); err == nil {
			for _, p := range list {
				found = append(found, offer{p.ID, a.Name + ": " + p.At.Local().Format(time.DateTime)})
			}
		}
	case "entry":
		if list, err := readQueue(settling(ctx), a, mostOffers); err == nil {
			for _, e := range list.Entries {
				found = append(found, offer{e.name(), a.Name + ": " + e.State})
			}
		}
	}
	return found
}

// approvalOffers are the requests that wait for an answer.
func approvalOffers(f *config.Fleet) (found offers) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil
	}
	waiting, _ := store.Ask(context.Background(), dir, approval.Waiting)
	for _, r := range waiting[max(0, len(waiting)-mostOffers):] {
		found = append(found, offer{r.ID, r.Agent + ": " + r.Question.String()})
	}
	return found
}

// mostOffers is how many ids of a kind are offered, offerWithin how long queues are
// read for them: somebody waits at a prompt.
const (
	mostOffers  = 50
	offerWithin = time.Second
)

// sessionOffers are the last sessions of an agent.
func sessionOffers(f *config.Fleet, a *config.Agent) (found offers) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil
	}
	for e, err := range journal.Read(dir) {
		if err == nil && e.Kind == journal.Ended && e.Agent == a.Name {
			h := sessionOf(e)
			found = append(found, offer{h.short, h.At.Local().Format(time.DateTime) + " " + h.Why.String()})
		}
	}
	return found[max(0, len(found)-mostOffers):]
}

// fileAmong returns the fleet's file as the words name it, or the one that is found.
func (a *app) fileAmong(words []string) string {
	path := ""
	for i, w := range words {
		if v, ok := strings.CutPrefix(w, "--file="); ok {
			path = v
		} else if (w == "-f" || w == "--file") && i+1 < len(words) {
			path = words[i+1]
		}
	}
	if path == "" {
		return a.file()
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + "/" + rest
		}
	}
	return path
}
