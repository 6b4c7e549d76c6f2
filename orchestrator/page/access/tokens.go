package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/state"
)

// How long a link may wait to be opened, and how long a token lasts.
const (
	LinkLasts  = 10 * time.Minute
	TokenLasts = 90 * 24 * time.Hour
)

// mostTokens and mostLinks are how many there may be at once.
const mostTokens, mostLinks = 200, 50

// usedEvery is how exactly it is known when a token was last used.
const usedEvery = time.Hour

// Token is what a browser has, or, as a link, may get once.
type Token struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	Role Role      `json:"role"`
	Made time.Time `json:"made"`
	// Used is when it was last used, to the hour; zero: never.
	Used  time.Time `json:"used,omitzero"`
	Until time.Time `json:"until"`
}

// secretive is a token with the hash of its secret. The secret itself is nowhere.
type secretive struct {
	Token
	Hash string `json:"sha256"`
}

// tokens is the file's content.
type tokens struct {
	// Host is the name of this machine that links have, see Keeper.Host; "": none yet.
	Host   string      `json:"host,omitempty"`
	Links  []secretive `json:"links"`
	Tokens []secretive `json:"tokens"`
	// Commands are the tokens of command lines. No browser has one.
	Commands []secretive `json:"commands,omitempty"`
}

// Errors of tokens.
var (
	ErrWrong = errors.New("the link is invalid, expired (10 minutes) or already used")
	ErrMany  = errors.New("there are too many already")
	ErrNone  = errors.New("there is no such token")
)

// Keeper keeps the tokens of a fleet in its state directory. Several processes, and
// goroutines, may use it at once.
type Keeper struct {
	stateDir string
	now      func() time.Time

	mu    sync.Mutex
	kept  tokens
	stamp durable.Stamp
	// tried is when Used was last written down, or could not be.
	tried map[string]time.Time // :: id →

	bounding sync.Mutex
	ends     map[string]time.Time // :: kind and id → when it ends at the latest; see load
}

// NewKeeper returns the keeper of a state directory; now is the clock, nil the
// system's.
func NewKeeper(stateDir string, now func() time.Time) *Keeper {
	if now == nil {
		now = time.Now
	}
	return &Keeper{stateDir: stateDir, now: now}
}

func (k *Keeper) file() string { return filepath.Join(k.stateDir, "page", "tokens.json") }

// Link makes what a link ends with: good once, for LinkLasts. name is what the token
// is called that it becomes; "": its id.
func (k *Keeper) Link(name string, role Role) (secret string, link Token, err error) {
	secret, id := newSecret(), newID()
	link = Token{ID: id, Name: cmp.Or(name, id), Role: role, Made: k.now(), Until: k.now().Add(LinkLasts)}
	err = k.change(func(t *tokens) error {
		if len(t.Links) >= mostLinks {
			return fmt.Errorf("cannot make a link: %w (%d)", ErrMany, mostLinks)
		}
		t.Links = append(t.Links, secretive{link, hashOf(secret)})
		return nil
	})
	return secret, link, err
}

// Host returns the name below localhost that this fleet's links have on this machine. Browsers
// send a cookie to every port of its host, whoever serves there: at a name of the fleet's own,
// which nobody else knows, it goes to this fleet alone. Browsers take each name below localhost
// for this machine (RFC 6761, section 6.3).
func (k *Keeper) Host() (string, error) {
	all, err := k.read()
	if err != nil || all.Host != "" {
		return all.Host, err
	}
	var host string
	err = k.change(func(t *tokens) error {
		t.Host = cmp.Or(t.Host, "heartbeat-"+strings.ToLower(newSecret()[:10])+".localhost")
		host = t.Host
		return nil
	})
	return host, err
}

// Offer returns a link that is good, by what it ends with, and leaves it so. ErrWrong: it
// is not good (any more).
func (k *Keeper) Offer(link string) (Token, error) {
	all, err := k.read()
	if err != nil {
		return Token{}, err
	}
	at := find(all.Links, link)
	if at < 0 {
		return Token{}, ErrWrong
	}
	return all.Links[at].Token, nil
}

// Redeem takes what a link ends with, and returns the secret of a token: the first
// time. ErrWrong: it is not good (any more).
func (k *Keeper) Redeem(link string) (secret string, made Token, err error) {
	secret = newSecret()
	err = k.change(func(t *tokens) error {
		at := find(t.Links, link)
		if at < 0 {
			return ErrWrong
		}
		if len(t.Tokens) >= mostTokens {
			return fmt.Errorf("cannot make a token: %w (%d): revoke some", ErrMany, mostTokens)
		}
		made = t.Links[at].Token
		made.Made, made.Used, made.Until = k.now(), k.now(), k.now().Add(TokenLasts)
		t.Links = slices.Delete(t.Links, at, at+1)
		t.Tokens = append(t.Tokens, secretive{made, hashOf(secret)})
		return nil
	})
	return secret, made, err
}

// Command makes a token for the command line, and returns its secret, which is kept
// nowhere: it proves who answers where a fleet's file says approvals: {by: page}.
func (k *Keeper) Command(name string) (secret string, made Token, err error) {
	secret, id := newSecret(), newID()
	made = Token{ID: id, Name: cmp.Or(name, id), Role: Command, Made: k.now(), Until: k.now().Add(TokenLasts)}
	err = k.change(func(t *tokens) error {
		if len(t.Commands) >= mostTokens {
			return fmt.Errorf("cannot make a token: %w (%d): revoke some", ErrMany, mostTokens)
		}
		t.Commands = append(t.Commands, secretive{made, hashOf(secret)})
		return nil
	})
	return secret, made, err
}

// FindCommand returns the token of a command line; ErrNone: the secret has none (any more).
func (k *Keeper) FindCommand(secret string) (Token, error) {
	var found Token
	err := k.change(func(t *tokens) error {
		at := find(t.Commands, secret)
		if at < 0 {
			return ErrNone
		}
		t.Commands[at].Used = k.now()
		found = t.Commands[at].Token
		return nil
	})
	return found, err
}

// HasCommand reports whether there is a token for the command line.
func (k *Keeper) HasCommand() (bool, error) {
	all, err := k.read()
	return len(all.Commands) > 0, err
}

// Find returns the token of a secret; ErrNone: it has none (any more).
func (k *Keeper) Find(secret string) (Token, error) {
	all, err := k.read()
	if err != nil {
		return Token{}, err
	}
	at := find(all.Tokens, secret)
	if at < 0 {
		return Token{}, ErrNone
	}
	found := all.Tokens[at].Token
	if now := k.now(); now.Sub(found.Used) >= usedEvery && k.tries(found.ID, now) {
		_ = k.change(func(t *tokens) error { // who cannot write it down may still look
			if at := find(t.Tokens, secret); at >= 0 {
				t.Tokens[at].Used = k.now()
			}
			return nil
		})
	}
	return found, nil
}

// tries reports whether a token's use is to be written down now: after a failure it is
// tried again as late as after a success.
func (k *Keeper) tries(id string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.tried[id]) < usedEvery {
		return false
	}
	if k.tried == nil || len(k.tried) > mostTokens {
		k.tried = map[string]time.Time{}
	}
	k.tried[id] = now
	return true
}

// Tokens returns those that are good, and the links that nobody has opened yet.
func (k *Keeper) Tokens() (tokens, links []Token, err error) {
	all, err := k.read()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range slices.Concat(all.Tokens, all.Commands) {
		tokens = append(tokens, t.Token)
	}
	for _, l := range all.Links {
		links = append(links, l.Token)
	}
	return tokens, links, nil
}

// Revoke ends the tokens and links that are called by their names or ids, or all; one
// that there is not changes nothing (ErrNone).
func (k *Keeper) Revoke(all bool, names ...string) (gone []Token, err error) {
	err = k.change(func(t *tokens) error {
		for _, name := range names {
			is := func(s secretive) bool { return s.ID == name || s.Name == name }
			if !slices.ContainsFunc(slices.Concat(t.Tokens, t.Links, t.Commands), is) {
				return fmt.Errorf("cannot revoke %q: %w", name, ErrNone)
			}
		}
		goes := func(s secretive) bool {
			if !all && !slices.Contains(names, s.ID) && !slices.Contains(names, s.Name) {
				return false
			}
			gone = append(gone, s.Token)
			return true
		}
		t.Tokens, t.Links, t.Commands = slices.DeleteFunc(t.Tokens, goes), slices.DeleteFunc(t.Links, goes), slices.DeleteFunc(t.Commands, goes)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// find returns where the token of a secret stands, or -1. It takes as long for each.
func find(all []secretive, secret string) int {
	hash, at := []byte(hashOf(secret)), -1
	for i, s := range all {
		if subtle.ConstantTimeCompare([]byte(s.Hash), hash) == 1 {
			at = i
		}
	}
	return at
}

// read returns what is good now. It reads the file only when that has changed.
func (k *Keeper) read() (tokens, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := durable.StampOf(os.Lstat(k.file()))
	if !k.stamp.Same(now) {
		t, err := k.load()
		if err != nil {
			return tokens{}, err
		}
		k.kept, k.stamp = t, now
	}
	return k.good(k.kept), nil
}

// load reads the file. What a clock that was ahead has put into it lasts no longer than what
// is made when this process first sees it.
func (k *Keeper) load() (t tokens, err error) {
	if err := state.Load(k.file(), &t); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tokens{}, err
	}
	k.bounding.Lock()
	defer k.bounding.Unlock()
	now, ends := k.now(), map[string]time.Time{}
	bound := func(kind string, all []secretive, lasts time.Duration) {
		for i := range all {
			one := &all[i]
			one.Used, one.Until = deadline.Since(one.Used, now), deadline.On(one.Until, now, lasts)
			key := kind + " " + one.ID
			if end, seen := k.ends[key]; seen && deadline.Left(end, now) < deadline.Left(one.Until, now) {
				one.Until = deadline.Shown(end, now)
			}
			ends[key] = one.Until
		}
	}
	bound("link", t.Links, LinkLasts)
	bound("token", t.Tokens, TokenLasts)
	bound("command", t.Commands, TokenLasts)
	k.ends = ends
	return t, nil
}

// good returns the tokens whose time is not over.
func (k *Keeper) good(t tokens) tokens {
	over := func(s secretive) bool { return deadline.Over(s.Until, k.now()) }
	good := func(all []secretive) []secretive { return slices.DeleteFunc(slices.Clone(all), over) }
	return tokens{t.Host, good(t.Links), good(t.Tokens), good(t.Commands)}
}

// lockPatience is how long to wait for another process that changes the tokens.
const lockPatience = 5 * time.Second

// change changes the file, unless do returns an error.
func (k *Keeper) change(do func(*tokens) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, err := flock.Lock(ctx, filepath.Join(k.stateDir, ".page-lock"))
	if err != nil {
		return fmt.Errorf("cannot change the page's tokens: %w", err)
	}
	defer func() { _ = unlock() }()
	t, err := k.load()
	if err != nil {
		return err
	}
	t = k.good(t)
	if err := do(&t); err != nil {
		return err
	}
	return state.Save(k.file(), t)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret returns 130 bits that nobody guesses.
func newSecret() string { return rand.Text() }

func newID() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
