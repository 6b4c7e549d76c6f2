package adopt

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
	"heartbeat/sources"
)

// WriteFiles writes what a store holds into files, as versions before 2026-12 read them in their
// state directory, below a new folder: the way back. It returns their paths in it. What such a
// version does not know, such as pauses of triggers, it passes over; and what agents did over time
// (series/), which nothing is decided from.
func WriteFiles(ctx context.Context, r *store.Reader, dir string) ([]string, error) {
	err := os.Mkdir(dir, 0o700)
	if err != nil {
		return nil, fmt.Errorf("cannot write the store as files: %w", err)
	}
	to := &folder{dir: dir}
	err = r.Read(ctx, func(v *store.View) error {
		for _, write := range back {
			if err := write(v, to); err != nil {
				return err
			}
		}
		return nil
	})
	if err = cmp.Or(err, to.sync()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write the store as files into %q: %w", dir, err), os.RemoveAll(dir)) // half of it would be taken for all
	}
	return to.files, nil
}

// Back returns the commands of a shell that bring a fleet back to what WriteFiles has written
// below dir: what only later versions know is moved aside.
func Back(stateDir, dir string) []string {
	quoted := settings.Quote(stateDir)
	newer := settings.Quote(filepath.Join(stateDir, "newer"))
	move := []string{"mv"}
	for _, pattern := range []string{store.Name + "*", Folder, store.Backups, Barrier} {
		if found, _ := filepath.Glob(filepath.Join(stateDir, pattern)); len(found) > 0 {
			move = append(move, quoted+"/"+pattern)
		}
	}
	return []string{"heartbeat stop", "mkdir " + newer, strings.Join(append(move, newer), " "), "cp -r " + settings.Quote(dir) + "/. " + quoted}
}

// back write one part of a store each; those that have nothing write no file.
var back = []func(*store.View, *folder) error{
	backOrders, backTokens, backEvents, backIdentities, backPauses, backHolds, backTriggers, backConversations, backNotices, backMessages, backAwaited, backRequests, backStopHooks, backAccounts, backUsage,
}

// folder is where files are written to.
type folder struct {
	dir   string
	files []string
}

// lines makes a file that write fills, with a line for each value.
func (f *folder) lines(name string, write func(put func(line []byte) error) error) (err error) {
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	in, err := durable.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	file, err := in.OpenFile(filepath.Base(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	f.files = append(f.files, name)
	buffered := bufio.NewWriter(file)
	err = write(func(line []byte) error {
		_, err := buffered.Write(append(line, '\n'))
		return err
	})
	return errors.Join(cmp.Or(err, buffered.Flush(), file.Sync()), file.Close(), in.Close())
}

// json makes a file of one value.
func (f *folder) json(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return f.lines(name, func(put func([]byte) error) error { return put(data) })
}

// sync makes the names durable.
func (f *folder) sync() (err error) {
	seen := map[string]bool{}
	for _, name := range append(f.files, ".", "..") {
		dir := filepath.Dir(filepath.Join(f.dir, name))
		if name == "." || name == ".." {
			dir = filepath.Join(f.dir, name)
		}
		if seen[dir] {
			continue
		}
		seen[dir] = true
		in, opened := durable.Open(dir)
		if opened == nil {
			opened = errors.Join(in.Sync(), in.Close())
		}
		err = errors.Join(err, opened)
	}
	return err
}

func backOrders(v *store.View, to *folder) error {
	type order struct {
		Key    string    `json:"key"`
		At     time.Time `json:"at"`
		Done   bool      `json:"done,omitempty"`
		Failed bool      `json:"failed,omitempty"`
		Answer string    `json:"answer,omitempty"`
	}
	var all []order
	err := v.Each(`SELECT token, form, what, at, done, failed, answer FROM orders ORDER BY at`, nil, func(scan store.Scan) error {
		var o order
		var token, form, what string
		var at int64
		err := scan(&token, &form, &what, &at, &o.Done, &o.Failed, &o.Answer)
		o.Key, o.At = token+" "+form+" "+what, store.Time(at)
		all = append(all, o)
		return err
	})
	if err != nil || all == nil {
		return err
	}
	return to.json("page/orders.json", all)
}

func backTokens(v *store.View, to *folder) error {
	type secret struct {
		access.Token
		Hash string `json:"sha256"`
	}
	kept := struct {
		Host     string   `json:"host,omitempty"`
		Links    []secret `json:"links"`
		Tokens   []secret `json:"tokens"`
		Commands []secret `json:"commands,omitempty"` // the first of those versions has none
	}{}
	all, host, err := access.Secrets(v, time.Now())
	for _, s := range all {
		list := &kept.Tokens
		switch {
		case s.Link:
			list = &kept.Links
		case s.Role == access.Command:
			list = &kept.Commands
		}
		*list = append(*list, secret{s.Token, s.Hash})
	}
	if kept.Host = host; err != nil || all == nil && host == "" {
		return err
	}
	return to.json("page/tokens.json", kept)
}

// backEvents writes a line for each event. One that is damaged stays so.
func backEvents(v *store.View, to *folder) error {
	return to.lines("journal.jsonl", func(put func([]byte) error) error {
		return v.Each(`SELECT body, crc FROM events ORDER BY n`, nil, func(scan store.Scan) error {
			var body []byte
			var crc int64
			if err := scan(&body, &crc); err != nil {
				return err
			}
			table := crc32.MakeTable(crc32.Castagnoli)
			right := crc == int64(crc32.Checksum(body, table))
			if len(body) > 0 && crc >= 0 {
				body = body[:len(body)-1]
				sum := crc32.Checksum(body, table)
				if !right {
					sum ^= 1
				}
				body = fmt.Appendf(body, `,"crc":"%08x"}`, sum)
			}
			return put(body)
		})
	})
}

func backIdentities(v *store.View, to *folder) error {
	type identity struct {
		Name     string    `json:"name"`
		Dir      string    `json:"dir"`
		Key      string    `json:"key"`
		Triggers string    `json:"triggers,omitempty"`
		Gone     time.Time `json:"gone,omitzero"`
	}
	all, err := memory.Read(v)
	if err != nil || len(all) == 0 {
		return err
	}
	kept := struct{ Agents []identity }{}
	for _, i := range all {
		kept.Agents = append(kept.Agents, identity{i.Name, i.Dir, i.Key, i.Triggers, i.Gone})
	}
	return to.json("identities.json", kept)
}

func backPauses(v *store.View, to *folder) error {
	all, err := memory.ReadPauses(v)
	if err != nil || len(all) == 0 {
		return err
	}
	kept := struct {
		Since map[string]time.Time `json:"since"`
		Until map[string]time.Time `json:"until,omitempty"`
		By    map[string]string    `json:"by,omitempty"`
	}{map[string]time.Time{}, map[string]time.Time{}, map[string]string{}}
	for key, p := range all {
		kept.Since[key] = p.Since
		if !p.Until.IsZero() {
			kept.Until[key] = p.Until
		}
		if p.By != "" {
			kept.By[key] = p.By
		}
	}
	return to.json("paused.json", kept)
}

func backHolds(v *store.View, to *folder) error {
	type hold struct {
		Since      time.Time `json:"since"`
		Why        string    `json:"why"`
		Fix        string    `json:"fix,omitempty"`
		Answers    string    `json:"answers,omitempty"`
		Definition string    `json:"definition"`
	}
	all, err := memory.ReadHolds(v)
	for key, h := range all {
		if err == nil {
			err = to.json("holds/"+key+".json", hold{h.Since, h.Why, h.Fix, h.Answers, h.Definition})
		}
	}
	return err
}

func backTriggers(v *store.View, to *folder) error {
	type memo struct {
		memory.Definition
		Key     string        `json:"key"`
		Gone    time.Time     `json:"gone,omitzero"`
		Fired   time.Time     `json:"fired,omitzero"`
		Delay   time.Duration `json:"delay,omitempty"`
		Was     time.Duration `json:"was,omitempty"`
		Changed time.Time     `json:"changed,omitzero"`
		Seen    sources.Seen  `json:"seen,omitempty"`
		Kept    []string      `json:"kept,omitempty"`
		Polled  time.Time     `json:"polled,omitzero"`
		Recent  []time.Time   `json:"recent,omitempty"`
		// The first of those versions has none of these.
		Refused []memory.Refused `json:"refused,omitempty"`
		Paused  memory.Paused    `json:"paused,omitzero"`
	}
	type kept struct {
		Triggers []memo         `json:"triggers"`
		Used     map[string]int `json:"used,omitempty"`
	}
	all, used, err := memory.Remembered(v)
	for key, triggers := range all {
		k := kept{Used: used[key]}
		for _, t := range triggers {
			k.Triggers = append(k.Triggers, memo{t.Definition, t.Key, t.Gone, t.Fired, t.Delay, t.Was, t.Changed, t.Seen, t.Kept, t.Polled, t.Recent, t.Refused, t.Paused})
		}
		if err == nil {
			err = to.json("triggers/"+key+".json", k)
		}
	}
	return err
}

func backConversations(v *store.View, to *folder) error {
	type conversation struct {
		ID       string   `json:"id"`
		Dir      string   `json:"dir"`
		Sessions []string `json:"sessions,omitempty"`
	}
	all := map[string]conversation{}
	err := v.Each(`SELECT agent, id, dir, before, session FROM conversations`, nil, func(scan store.Scan) error {
		var key, before, session string
		var c conversation
		err := scan(&key, &c.ID, &c.Dir, &before, &session)
		for _, s := range []string{before, session} { // the last one comes last
			if s != "" {
				c.Sessions = append(c.Sessions, s)
			}
		}
		all[key] = c
		return err
	})
	for key, c := range all {
		if err == nil {
			err = to.json("conversations/"+key+".json", c)
		}
	}
	return err
}

func backNotices(v *store.View, to *folder) error {
	type item struct {
		notice.Notice
		Due time.Time `json:"due"`
	}
	type message struct {
		Key      string          `json:"key"`
		Made     time.Time       `json:"made"`
		Notices  []notice.Notice `json:"notices"`
		Attempts int             `json:"attempts"`
	}
	type box struct {
		Waiting []item    `json:"waiting,omitempty"`
		Sending *message  `json:"sending,omitempty"`
		Next    time.Time `json:"next,omitzero"`
		Failing time.Time `json:"failing,omitzero"`
		Why     string    `json:"why,omitempty"`
		Arrived time.Time `json:"arrived,omitzero"`
		Dropped int       `json:"dropped,omitempty"`
		Unnamed bool      `json:"unnamed,omitempty"`
	}
	type mark struct {
		Dead    time.Time `json:"dead,omitzero"`
		Reply   time.Time `json:"reply,omitzero"`
		ReplyID string    `json:"reply_id,omitempty"`
	}
	type since struct {
		ID    string    `json:"id,omitempty"`
		Since time.Time `json:"since"`
		Why   string    `json:"why,omitempty"`
	}
	s, err := memo.Read(v)
	if err != nil || len(s.Told)+len(s.Boxes)+len(s.Marks)+len(s.Heads)+len(s.Replied) == 0 && s.Ping == nil {
		return err
	}
	kept := struct {
		Told    notice.Memory    `json:"told"`
		Boxes   map[string]box   `json:"boxes"`
		Marks   map[string]mark  `json:"marks"`
		Ping    *since           `json:"ping,omitempty"`
		Heads   map[string]since `json:"heads,omitempty"`
		Replied []string         `json:"replied,omitempty"`
	}{Told: s.Told, Boxes: map[string]box{}, Marks: map[string]mark{}, Heads: map[string]since{}, Replied: s.Replied}
	for target, b := range s.Boxes {
		old := box{Next: b.Next, Failing: b.Failing, Why: b.Why, Arrived: b.Arrived, Dropped: b.Dropped, Unnamed: b.Unnamed}
		for _, i := range b.Waiting {
			old.Waiting = append(old.Waiting, item(i))
		}
		if b.Sending != nil {
			old.Sending = new(message(*b.Sending))
		}
		kept.Boxes[target] = old
	}
	for agent, m := range s.Marks {
		kept.Marks[agent] = mark(*m)
	}
	if s.Ping != nil {
		kept.Ping = &since{Since: s.Ping.Since, Why: s.Ping.Why}
	}
	for agent, h := range s.Heads {
		kept.Heads[agent] = since{ID: h.ID, Since: h.Since}
	}
	return to.json("notices.json", kept)
}

func backMessages(v *store.View, to *folder) error {
	if found, err := v.One(`SELECT n FROM messages`, nil, new(int64)); err != nil || !found {
		return err
	}
	return to.lines("notices.jsonl", func(put func([]byte) error) error {
		return v.Each(`SELECT body FROM messages ORDER BY n`, nil, func(scan store.Scan) error {
			var body []byte
			if err := scan(&body); err != nil {
				return err
			}
			return put(body)
		})
	})
}

// backAwaited writes a file for each reply, named by a hash of which it is.
func backAwaited(v *store.View, to *folder) error {
	all, err := awaited.All(v)
	for _, r := range all {
		if err == nil {
			sum := sha256.Sum256([]byte(r.Agent + "\x00" + r.ID + "\x00" + r.Target))
			err = to.json("awaited/"+hex.EncodeToString(sum[:12])+".json", r)
		}
	}
	return err
}

// backStopHooks names each hook by a hash of its command line.
func backStopHooks(v *store.View, to *folder) error {
	type hook struct {
		Command string    `json:"command"`
		Agents  []string  `json:"agents"`
		Since   time.Time `json:"since"`
	}
	all, err := stophooks.All(v)
	if err != nil || len(all) == 0 {
		return err
	}
	kept := struct {
		Hooks map[string]hook `json:"hooks"`
	}{map[string]hook{}}
	for _, h := range all {
		sum := sha256.Sum256([]byte(h.Command))
		kept.Hooks[hex.EncodeToString(sum[:8])] = hook(h)
	}
	return to.json("foreign-stop-hooks.json", kept)
}

// backRequests writes a file for each request.
func backRequests(v *store.View, to *folder) error {
	waiting, err := approval.Waiting(v)
	if err != nil {
		return err
	}
	done, err := approval.Done(v)
	for _, r := range append(waiting, done...) {
		name := r.ID + ".json"
		if !r.Waits() {
			name = filepath.Join("done", name)
		}
		if err == nil {
			err = to.json(filepath.Join("approvals", name), r)
		}
	}
	return err
}

func backAccounts(v *store.View, to *folder) error {
	type kept struct {
		Until  time.Time      `json:"until,omitzero"`
		Since  time.Time      `json:"since,omitzero"`
		Source account.Source `json:"source,omitempty"`
		Reason string         `json:"reason,omitempty"`
		Limits client.Limits  `json:"limits,omitzero"`
	}
	all, err := account.Read(v)
	if err != nil || len(all) == 0 {
		return err
	}
	files := map[account.ID]kept{}
	for id, k := range all {
		files[id] = kept(k)
	}
	return to.json("accounts.json", files)
}

// backUsage writes a file for each agent. A record's time was its key.
func backUsage(v *store.View, to *folder) error {
	agents, err := usage.Agents(v)
	for _, agent := range agents {
		if err != nil {
			return err
		}
		err = to.lines(filepath.Join(usageFolder, agent+".jsonl"), func(put func([]byte) error) error {
			var failed error
			var last time.Time
			talks := map[string]usage.Kept{} // by session; each record had its own
			err := usage.Each(v, agent, time.Time{}, func(r usage.Record) {
				if !r.At.After(last) {
					r.At = last.Add(1)
				}
				last = r.At
				if r.Kept.Transcript == "" {
					r.Kept.Transcript, r.Kept.From = talks[r.Session].Transcript, talks[r.Session].From
				}
				talks[r.Session] = r.Kept
				line, err := json.Marshal(struct {
					usage.Record
					Number int `json:"number,omitempty"` // the time is the key
				}{Record: r})
				if err == nil && failed == nil {
					failed = put(line)
				}
				failed = errors.Join(failed, err)
			})
			return errors.Join(err, failed)
		})
	}
	return err
}
